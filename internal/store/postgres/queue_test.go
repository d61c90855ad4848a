package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// brought is what queues brought to their processes.
type brought struct {
	mu      sync.Mutex
	rounds  map[regie.ID]int
	overdue int
	queues  []*postgres.Queue
	news    chan struct{}
}

// queues starts so many queues on a store's database.
func queues(t *testing.T, address string, s *sqlite.Store, n int) *brought {
	t.Helper()
	b := &brought{rounds: map[regie.ID]int{}, news: make(chan struct{}, 1024)}
	for range n {
		q := postgres.NewQueue(address, nil)
		t.Cleanup(q.Stop)
		b.queues = append(b.queues, q)
		err := q.Start(t.Context(), func(_ context.Context, id regie.ID) {
			b.mu.Lock()
			b.rounds[id]++
			b.mu.Unlock()
			b.news <- struct{}{}
		}, func(ctx context.Context) time.Time {
			ready, next, err := s.ExpireWaits(ctx, time.Now())
			if err != nil {
				t.Error(err)
			}
			b.mu.Lock()
			b.overdue += len(ready)
			b.mu.Unlock()
			b.news <- struct{}{}
			return next
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// until waits until what was brought satisfies want.
func (b *brought) until(t *testing.T, what string, want func() bool) {
	t.Helper()
	for {
		b.mu.Lock()
		done := want()
		b.mu.Unlock()
		if done {
			return
		}
		select {
		case <-b.news:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: not in 30 s", what)
		}
	}
}

// TestRoundJobs: each transition that leaves a round without a holder brings one process to it, and
// news of one that is still to be fetched add nothing; a transition that is not done leaves no job.
func TestRoundJobs(t *testing.T) {
	address := storetest.Postgres(t)
	s := open(t, postgres.Config{URL: address, Dir: t.TempDir()})
	w := storetest.NewWorld(t, s)
	in := w.Submission("for anybody")
	in.Holder = ""
	accepted, err := s.Submit(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	parked, _, asked := w.Ask(1)
	if _, err := s.Decide(t.Context(), store.Decide{
		ApprovalID: asked.ID, Request: "1", Decisions: []regie.Decision{{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow, By: "ada"}},
	}); err != nil {
		t.Fatal(err)
	}
	released := w.Start()
	for range 3 { // one job
		if err := s.Release(t.Context(), released); err != nil {
			t.Fatal(err)
		}
	}
	stale := w.Start()
	stale.Epoch--
	if err := s.Release(t.Context(), stale); regie.CodeOf(err) != regie.CodeStale {
		t.Fatal(err)
	}
	b := queues(t, address, s, 2)
	want := map[regie.ID]int{accepted.RoundID: 1, parked.RoundID: 1, released.RoundID: 1}
	b.until(t, "three rounds", func() bool { return len(b.rounds) == len(want) })
	resumed := w.Start()
	if _, err := s.RequestStop(t.Context(), resumed.RoundID, regie.StopPause); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), resumed); err != nil {
		t.Fatal(err)
	}
	b.until(t, "a round that was paused", func() bool { return b.rounds[resumed.RoundID] == 1 })
	if err := s.Resume(t.Context(), resumed.RoundID); err != nil {
		t.Fatal(err)
	}
	want[resumed.RoundID] = 2
	b.until(t, "a round that was resumed", func() bool { return b.rounds[resumed.RoundID] == 2 })
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, n := range want {
		if b.rounds[id] != n {
			t.Errorf("a round was brought %d times, not %d", b.rounds[id], n)
		}
	}
	if len(b.rounds) != len(want) {
		t.Errorf("%d rounds were brought, not %d", len(b.rounds), len(want))
	}
}

// TestDeadlineJobs has waits end soon and later, with two processes there: each is given up once,
// by one of them.
func TestDeadlineJobs(t *testing.T) {
	address := storetest.Postgres(t)
	s := open(t, postgres.Config{URL: address, Dir: t.TempDir()})
	w := storetest.NewWorld(t, s)
	b := queues(t, address, s, 2)
	// the last one is River's scheduler's
	deadlines := []time.Duration{300 * time.Millisecond, 1200 * time.Millisecond, 11 * time.Second}
	var latest time.Time
	for _, in := range deadlines {
		fence := w.Start()
		reply := w.Reply(fence, 1, regie.KindAction)
		asked := w.Approval(fence, reply)
		asked.ExpiresAt = time.Now().Add(in)
		latest = asked.ExpiresAt
		reply.Ask, reply.Park = &store.Asked{Approval: asked}, true
		if err := w.AppendReply(fence, reply); err != nil {
			t.Fatal(err)
		}
	}
	for i := range deadlines {
		b.until(t, "a deadline", func() bool { return b.overdue > i })
	}
	b.until(t, "the rounds that woke up", func() bool { return len(b.rounds) == len(deadlines) })
	t.Logf("the last one was given up %s after its time", time.Since(latest))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.overdue != len(deadlines) {
		t.Errorf("%d waits were given up, not %d", b.overdue, len(deadlines))
	}
}

// TestJobsAway takes the server away and brings it back: jobs go on.
func TestJobsAway(t *testing.T) {
	address := storetest.Postgres(t)
	s := open(t, postgres.Config{URL: address, Dir: t.TempDir()})
	proxy, through := storetest.NewProxy(t, address)
	b := queues(t, through, s, 1)
	w := storetest.NewWorld(t, s)
	give := func() regie.ID {
		t.Helper()
		fence := w.Start()
		if err := s.Release(t.Context(), fence); err != nil {
			t.Fatal(err)
		}
		return fence.RoundID
	}
	first := give()
	b.until(t, "before", func() bool { return b.rounds[first] == 1 })
	proxy.Down()
	second := give()
	proxy.Up()
	b.until(t, "after", func() bool { return b.rounds[second] > 0 })
	proxy.Cut()
	third := give()
	b.until(t, "after a cut", func() bool { return b.rounds[third] > 0 })
	proxy.Down()
	began := time.Now()
	b.queues[0].Stop()
	t.Logf("without a server the queue ended in %s", time.Since(began))
}
