// Package metrics counts what a server's engine does, for Prometheus (spec 11.4). What it counts it takes from the events of the log as they are
// committed: what is counted is what happened, and nothing in the engine knows of it.
package metrics

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Metrics are the counters of one server. Its methods may be called from any goroutine.
type Metrics struct {
	registry  *prometheus.Registry
	rounds    *prometheus.CounterVec
	started   *prometheus.CounterVec
	exchanges prometheus.Counter
	calls     *prometheus.CounterVec
	took      *prometheus.HistogramVec
	caught    *prometheus.CounterVec
	tokens    *prometheus.CounterVec
	asked     *prometheus.CounterVec
	resets    prometheus.Counter
	fallbacks *prometheus.CounterVec
	requests  *prometheus.CounterVec
	answered  prometheus.Histogram
}

// Source is what is asked at each scrape.
type Source struct {
	// Inbox is what waits for people, without what is large.
	Inbox func(ctx context.Context) (store.Inbox, error)
	// Streams is how many are open.
	Streams func() float64
	// Spent is what was spent today, in millionths of a US dollar.
	Spent func(ctx context.Context) (int64, error)
}

// scrapeTime bounds the questions of one scrape.
const scrapeTime = 5 * time.Second

// New returns counters at zero.
func New(source Source) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "regie_" + name, Help: help}, labels)
	}
	m := &Metrics{
		registry:  prometheus.NewRegistry(),
		rounds:    counter("rounds_ended_total", "Rounds that ended, by why.", "reason"),
		started:   counter("rounds_started_total", "Rounds that began, by why.", "reason"),
		exchanges: prometheus.NewCounter(prometheus.CounterOpts{Name: "regie_exchanges_total", Help: "Replies of models that were stored."}),
		calls:     counter("tool_calls_total", "Calls that were settled, by tool and state.", "tool", "state"),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "regie_tool_call_seconds", Help: "How long calls took that ran.", Buckets: []float64{.001, .01, .1, 1, 10, 60, 600},
		}, []string{"tool"}),
		caught:    counter("tool_calls_caught_total", "Calls that were not run, by why: duplicates and loops among them.", "code"),
		tokens:    counter("tokens_total", "Tokens of model calls, by model and kind; what came from a provider's cache is part of the input.", "model", "kind"),
		asked:     counter("approvals_total", "Approvals, by what became of them.", "state"),
		resets:    prometheus.NewCounter(prometheus.CounterOpts{Name: "regie_stream_resets_total", Help: "Replies that were cut and begun anew."}),
		fallbacks: counter("fallbacks_total", "Model calls that another provider went on with, by who did not answer and why.", "instead_of", "code"),
		requests:  counter("http_requests_total", "Requests, by method and status.", "method", "status"),
		answered: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "regie_http_request_seconds", Help: "How long requests took, without streams.", Buckets: []float64{.001, .005, .025, .1, .5, 2.5, 10},
		}),
	}
	m.registry.MustRegister(m.rounds, m.started, m.exchanges, m.calls, m.took, m.caught, m.tokens, m.asked, m.resets, m.fallbacks, m.requests, m.answered,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &scrape{source})
	return m
}

// Handler answers a scrape.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, Timeout: 2 * scrapeTime})
}

// Answered counts a request.
func (m *Metrics) Answered(method string, status int, took time.Duration) {
	switch method {
	case http.MethodDelete, http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut:
	default:
		method = "other" // who asks cannot make counters
	}
	m.requests.WithLabelValues(method, strconv.Itoa(status)).Inc()
	if status != http.StatusSwitchingProtocols { // a WebSocket is open as long as it likes
		m.answered.Observe(took.Seconds())
	}
}

// Happened counts what a commit added to a log. Of erased bodies and of copies in a fork nothing is counted.
func (m *Metrics) Happened(events []regie.Event) {
	for i := range events {
		e := &events[i]
		var body struct {
			State    string          `json:"state"`
			Reason   string          `json:"reason"`
			End      string          `json:"end_reason"`
			Tool     string          `json:"tool"`
			Code     string          `json:"code"`
			Micros   int64           `json:"duration_us"`
			CopyOf   regie.ID        `json:"copy_of"`
			Copied   *regie.Copied   `json:"copied"`
			AI       json.RawMessage `json:"ai_message_json"`
			Author   regie.Author    `json:"author"`
			Usage    *regie.Usage    `json:"usage"`
			Instead  string          `json:"instead_of"`
			Resolved string          `json:"resolved_as"`
		}
		if json.Unmarshal(e.Body, &body) != nil || !body.CopyOf.IsZero() || body.Copied != nil {
			continue
		}
		switch e.Type {
		case regie.EventRound:
			switch {
			case body.State == string(regie.RoundEnded):
				m.rounds.WithLabelValues(body.End).Inc()
			case body.Reason != "":
				m.started.WithLabelValues(body.Reason).Inc()
			}
		case regie.EventMessage:
			m.replied(body.AI, body.Author.Model, body.Usage)
		case regie.EventToolResult:
			m.settled(body.Tool, body.State, body.Code, body.Resolved, body.Micros)
		case regie.EventApproval:
			m.asked.WithLabelValues(body.State).Inc()
		case regie.EventStreamReset:
			m.resets.Inc()
		case regie.EventFallback:
			m.fallbacks.WithLabelValues(body.Instead, body.Code).Inc()
		}
	}
}

func (m *Metrics) replied(reply json.RawMessage, model string, used *regie.Usage) {
	if len(reply) == 0 {
		return
	}
	m.exchanges.Inc()
	if used == nil {
		return
	}
	for kind, n := range map[string]int64{"input": used.Input, "output": used.Output, "cache_read": used.CacheRead, "cache_creation": used.CacheCreation} {
		if n > 0 {
			m.tokens.WithLabelValues(model, kind).Add(float64(n))
		}
	}
}

func (m *Metrics) settled(tool, state, code, resolved string, micros int64) {
	switch {
	case resolved != "": // it was counted when it was settled
		return
	case state == string(regie.CallNotRun): // its tool may be a word of the model's own, of which there is no end
		m.caught.WithLabelValues(code).Inc()
		return
	}
	m.calls.WithLabelValues(tool, state).Inc()
	if micros > 0 {
		m.took.WithLabelValues(tool).Observe(float64(micros) / 1e6)
	}
}

// scrape asks for what is not counted but is.
type scrape struct{ Source }

var (
	waiting = prometheus.NewDesc("regie_waiting", "What waits for people.", []string{"kind"}, nil)
	oldest  = prometheus.NewDesc("regie_waiting_oldest_seconds", "For how long the oldest of it has waited.", []string{"kind"}, nil)
	streams = prometheus.NewDesc("regie_streams", "Streams that are open.", nil, nil)
	spent   = prometheus.NewDesc("regie_spent_today_usd", "What model calls have cost today.", nil, nil)
)

// Describe implements prometheus.Collector.
func (*scrape) Describe(to chan<- *prometheus.Desc) {
	to <- waiting
	to <- oldest
	to <- streams
	to <- spent
}

// Collect implements prometheus.Collector. What cannot be asked is left out of the scrape, and said there.
func (s *scrape) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(streams, s.Streams())
	inbox, err := s.Inbox(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(waiting, err)
	} else {
		var approvals, questions []time.Time
		for i := range inbox.Approvals {
			approvals = append(approvals, inbox.Approvals[i].CreatedAt)
		}
		for i := range inbox.Questions {
			questions = append(questions, inbox.Questions[i].CreatedAt)
		}
		for kind, since := range map[string][]time.Time{"approval": approvals, "question": questions} {
			gauge(waiting, float64(len(since)), kind)
			age := time.Duration(0)
			for _, t := range since {
				age = max(age, time.Since(t))
			}
			gauge(oldest, age.Seconds(), kind)
		}
	}
	micros, err := s.Spent(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(spent, err)
		return
	}
	gauge(spent, float64(micros)/1e6)
}
