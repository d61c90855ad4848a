// Package metrics counts what a server's engine does, for Prometheus (spec 11.4). It counts most
// from the events of the log as they are committed. The engine reports what no event holds: which
// model replied and at what cost. Gauges are read at each scrape, from tables that do not grow with
// the history.
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
	refused   *prometheus.CounterVec
	cost      *prometheus.CounterVec
	unpriced  *prometheus.CounterVec
	cache     *prometheus.CounterVec
	trips     prometheus.Histogram
}

// Source provides the values that each scrape reads.
type Source struct {
	// Inbox returns the open waits for people, without large contents.
	Inbox func(ctx context.Context) (store.Inbox, error)
	// Streams returns the number of open streams.
	Streams func() float64
	// Deltas returns the number of deltas handed to listeners.
	Deltas func() float64
	// Users returns the number of users.
	Users func() float64
	// Slots returns running and queued sessions.
	Slots func(ctx context.Context) ([]store.SlotCount, error)
	// Spent returns today's cost, in millionths of a US dollar.
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
		registry: prometheus.NewRegistry(),
		rounds:   counter("rounds_ended_total", "Rounds that ended, by why.", "reason"),
		started:  counter("rounds_started_total", "Rounds that began, by why.", "reason"),
		exchanges: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "regie_exchanges_total",
			Help: "Replies of models that were stored.",
		}),
		calls: counter("tool_calls_total", "Calls that were settled, by tool and state.", "tool", "state"),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "regie_tool_call_seconds", Help: "How long calls took that ran.",
			Buckets: []float64{.001, .01, .1, 1, 10, 60, 600},
		}, []string{"tool"}),
		caught: counter("tool_calls_caught_total",
			"Calls that were not run, by why: duplicates and loops among them.", "code"),
		tokens: counter("tokens_total",
			"Tokens of model calls, by provider, model and kind; what came from a provider's cache is part of the input.", "provider", "model", "kind"),
		cost: counter("cost_usd_total", "What replies of models cost, where that is known.", "provider", "model"),
		unpriced: counter("replies_of_unknown_cost_total", "Replies of models of which nobody knows what they cost.",
			"provider", "model"),
		cache: counter("response_cache_total", "Questions to the response cache, by what came of them.", "result"),
		trips: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "regie_round_exchanges", Help: "How many replies of models a round took.",
			Buckets: []float64{1, 2, 3, 5, 8, 13, 20, 50},
		}),
		asked: counter("approvals_total", "Approvals, by what became of them.", "state"),
		resets: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "regie_stream_resets_total",
			Help: "Replies that were cut and begun anew.",
		}),
		fallbacks: counter("fallbacks_total",
			"Model calls that another provider went on with, by who did not answer and why.", "instead_of", "code"),
		refused: counter("http_refused_total",
			"Requests that were not let in, by why: origin, address, token, tries, scope, limit, store.", "reason"),
		requests: counter("http_requests_total", "Requests, by method and status.", "method", "status"),
		answered: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "regie_http_request_seconds", Help: "How long requests took, without streams.",
			Buckets: []float64{.001, .005, .025, .1, .5, 2.5, 10},
		}),
	}
	own := []prometheus.Collector{
		m.rounds, m.started, m.exchanges, m.calls, m.took, m.caught, m.tokens, m.asked, m.resets,
		m.fallbacks, m.requests, m.answered,
		m.cost, m.unpriced, m.cache, m.refused, m.trips, &scrape{source},
	}
	m.registry.MustRegister(own...)
	m.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// an alert sees the first one
	for _, end := range []regie.RoundEnd{regie.EndWatchdog, regie.EndProviderError, regie.EndNoProgress} {
		m.rounds.WithLabelValues(string(end))
	}
	return m
}

// Handler answers a scrape.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, Timeout: 2 * scrapeTime,
	})
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

// Refused counts a request that was not let in.
func (m *Metrics) Refused(reason string) { m.refused.WithLabelValues(reason).Inc() }

// Happened counts the events of a commit, without erased bodies and copies in a fork.
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
			if len(body.AI) > 0 {
				m.exchanges.Inc()
			}
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

// Replied counts a stored reply of a model. cache is the outcome of the response cache, "" if it
// was not used.
func (m *Metrics) Replied(provider, model string, used regie.Usage, money regie.Money, cache string) {
	if cache != "" {
		m.cache.WithLabelValues(cache).Inc()
	}
	if cache == "hit" { // no model was called
		return
	}
	for kind, n := range map[string]int64{
		"input": used.Input, "output": used.Output, "cache_read": used.CacheRead,
		"cache_creation": used.CacheCreation,
	} {
		if n > 0 {
			m.tokens.WithLabelValues(provider, model, kind).Add(float64(n))
		}
	}
	if money.Known {
		m.cost.WithLabelValues(provider, model).Add(float64(max(0, money.Cost)) / 1e6)
	} else {
		m.unpriced.WithLabelValues(provider, model).Inc()
	}
}

// Ended counts a round that ended after that many replies.
func (m *Metrics) Ended(exchanges int) { m.trips.Observe(float64(exchanges)) }

func (m *Metrics) settled(tool, state, code, resolved string, micros int64) {
	switch {
	case resolved != "": // it was counted when it was settled
		return
	case state == string(regie.CallNotRun): // the model may invent any number of tool names
		m.caught.WithLabelValues(code).Inc()
		return
	}
	m.calls.WithLabelValues(tool, state).Inc()
	if micros > 0 {
		m.took.WithLabelValues(tool).Observe(float64(micros) / 1e6)
	}
}
