package app

import (
	"context"
	"net/http"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/metrics"
	"github.com/regie-run/regie/internal/store"
)

// newMetrics counts what the engine does from now on.
func (e *Engine) newMetrics(served *Served) *metrics.Metrics {
	counts := metrics.New(metrics.Source{
		Inbox: func(ctx context.Context) (store.Inbox, error) {
			return e.store.Inbox(ctx, store.InboxFilter{Brief: true})
		},
		Streams: func() float64 { return float64(served.open.Load()) },
		Deltas:  func() float64 { return float64(e.hub.Told()) },
		Users: func() float64 {
			users, _ := e.present.Connected()
			return float64(users)
		},
		Slots: e.store.SlotCounts,
		Spent: func(ctx context.Context) (int64, error) {
			spent, err := e.store.SpentToday(ctx, "")
			return spent.All.Cost, err
		},
	})
	e.hub.Observe(counts.Happened)
	e.counts.Store(counts)
	return counts
}

// countReplies lets the engine report to the metrics what no event contains, and to the log each
// round that ends.
func (e *Engine) countReplies(c *engine.Config) {
	c.Replied = func(r engine.Replied) {
		if counts := e.counts.Load(); counts != nil {
			counts.Replied(r.Provider, r.Model, r.Usage, r.Money, r.Cache)
		}
	}
	c.Ended = func(r regie.Round) {
		if counts := e.counts.Load(); counts != nil {
			counts.Ended(r.Counters.Total)
		}
		e.log.Info("run ended", "trace_id", r.TraceID, "session", r.SessionID.String(), "run", r.ID.String(),
			"reason", string(r.Reason), "end", string(r.End), "provider", r.Provider, "model", r.Model,
			"replies", r.Counters.Total, "duration_ms", time.Since(r.StartedAt).Milliseconds())
	}
}

// countRequests has requests counted, and waited for at the end.
func (s *Served) countRequests(next http.Handler, counts *metrics.Metrics) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.busy.Add(1)
		defer s.busy.Done()
		seen, begun := &statusWriter{ResponseWriter: w, status: http.StatusOK}, time.Now()
		next.ServeHTTP(seen, r)
		counts.Answered(r.Method, seen.status, time.Since(begun))
	})
}

// statusWriter notes the status of an answer. What else a response can do, it does by Unwrap.
type statusWriter struct {
	http.ResponseWriter
	status int
	begun  bool
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	// the others are no answer yet
	if !w.begun && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		w.begun, w.status = true, status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Flush implements http.Flusher, for who looks for nothing else.
func (w *statusWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
