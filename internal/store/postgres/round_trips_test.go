package postgres_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestRoundTrips counts how often each transition of an exchange waits for the server, once its
// statements are prepared: docs/design.md says these figures.
func TestRoundTrips(t *testing.T) {
	p, url := storetest.NewProxy(t, change(t, storetest.Postgres(t), withFewConnections))
	s := open(t, postgres.Config{URL: url, Dir: t.TempDir()})
	s.SetSlots(slot.Default)
	w := storetest.NewWorld(t, s)
	counts := map[string]int64{}
	var trips int64
	began := time.Now()
	count := func(what string, fn func() error) {
		t.Helper()
		before := p.Trips.Load()
		if err := fn(); err != nil {
			t.Fatal(what, err)
		}
		counts[what] = p.Trips.Load() - before // the last exchange's count stays
		trips += counts[what]
	}
	const exchanges = 30
	fence := w.Start()
	for exchange := 1; exchange <= exchanges; exchange++ {
		reply := w.Reply(fence, exchange, regie.KindQuery, regie.KindQuery)
		count("reply", func() error { return w.AppendReply(fence, reply) })
		count("results", func() error { return w.CommitCalls(fence, w.Settled(exchange, reply.Calls)) })
	}
	perExchange := time.Since(began) / exchanges
	action := w.Reply(fence, exchanges+1, regie.KindAction)
	action.Calls[0].State, action.Calls[0].StartedAt = regie.CallStarted, time.Now()
	count("reply with an intent", func() error { return w.AppendReply(fence, action) })
	count("last result", func() error { return w.CommitCalls(fence, w.Settled(exchanges+1, action.Calls)) })
	count("answer", func() error { return w.AppendReply(fence, w.Answer(exchanges+2)) })
	for range 3 {
		in := w.Submission("once more")
		in.SessionID, in.New = fence.SessionID, nil
		var accepted store.Accepted
		count("message", func() (err error) { accepted, err = s.Submit(w.Ctx, in); return err })
		count("claim", func() error { _, err := s.Claim(w.Ctx, accepted.RoundID, "next"); return err })
		accepted.Fence.Epoch++
		count("end", func() error { return w.AppendReply(accepted.Fence, w.Answer(1)) })
	}
	t.Logf("round trips: %v; an exchange takes %s", counts, perExchange)
	for what, most := range map[string]int64{"reply": 2, "results": 3, "reply with an intent": 2, "last result": 3, "end": 4, "message": 7, "claim": 7} {
		if counts[what] > most {
			t.Errorf("%s takes %d round trips, at most %d are meant", what, counts[what], most)
		}
	}
}

// withFewConnections has the store prepare each statement once: the connection that came back last
// is used first.
func withFewConnections(_ *url.URL, query url.Values) { query.Set("pool_max_conns", "2") }
