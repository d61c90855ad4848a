package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scrape reads the present values, such as queues, at each scrape.
type scrape struct{ Source }

var (
	waiting = prometheus.NewDesc("regie_waiting", "What waits for people.", []string{"kind"}, nil)
	oldest  = prometheus.NewDesc("regie_waiting_oldest_seconds",
		"For how long the oldest of it has waited.", []string{"kind"}, nil)
	streams = prometheus.NewDesc("regie_streams", "Streams that are open.", nil, nil)
	deltas  = prometheus.NewDesc("regie_stream_deltas_total",
		"Pieces of replies that were handed to who listens; where nobody does there are none.", nil, nil)
	users  = prometheus.NewDesc("regie_users_connected", "Users who are there.", nil, nil)
	queue  = prometheus.NewDesc("regie_queue_length", "Rounds that wait for a slot.", []string{"kind"}, nil)
	queued = prometheus.NewDesc("regie_queue_oldest_seconds",
		"For how long the oldest of them has waited.", []string{"kind"}, nil)
	held = prometheus.NewDesc("regie_slots_taken", "Slots that are held by running rounds, or reserved.",
		[]string{"kind"}, nil)
	spent = prometheus.NewDesc("regie_spent_today_usd", "What model calls have cost today.", nil, nil)
)

// Describe implements prometheus.Collector.
func (*scrape) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{waiting, oldest, streams, deltas, users, queue, queued, held, spent} {
		to <- d
	}
}

// Collect implements prometheus.Collector. A value that cannot be read becomes an invalid metric.
func (s *scrape) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(streams, s.Streams())
	gauge(users, s.Users())
	to <- prometheus.MustNewConstMetric(deltas, prometheus.CounterValue, s.Deltas())
	s.queue(ctx, to, gauge)
	inbox, err := s.Inbox(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(waiting, err)
	} else {
		var approvals, questions, unknown []time.Time
		for i := range inbox.Approvals {
			approvals = append(approvals, inbox.Approvals[i].CreatedAt)
		}
		for i := range inbox.Questions {
			questions = append(questions, inbox.Questions[i].CreatedAt)
		}
		for i := range inbox.Unknown {
			unknown = append(unknown, inbox.Unknown[i].SettledAt)
		}
		for kind, since := range map[string][]time.Time{
			"approval": approvals, "question": questions, "unknown": unknown,
		} {
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

// queue reports running and waiting sessions. It reports absent kinds as 0, so that an alert sees
// their end.
func (s *scrape) queue(ctx context.Context, to chan<- prometheus.Metric,
	gauge func(d *prometheus.Desc, v float64, labels ...string),
) {
	counts, err := s.Slots(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(queue, err)
		return
	}
	for _, kind := range []string{"chat", "automation", "api"} {
		waits, taken, age := 0, 0, time.Duration(0)
		for i := range counts {
			switch c := &counts[i]; {
			case string(c.Kind) != kind:
			case c.State == "QUEUED":
				waits, age = waits+c.Sessions, max(0, time.Since(c.Since))
			default:
				taken += c.Sessions
			}
		}
		gauge(queue, float64(waits), kind)
		gauge(queued, age.Seconds(), kind)
		gauge(held, float64(taken), kind)
	}
}
