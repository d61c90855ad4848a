package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// BenchmarkExchange stores exchanges of two queries, in one session and in many at once: where
// nobody is told, where another node could be told but none lives, and where one lives and listens.
func BenchmarkExchange(b *testing.B) {
	for _, sessions := range []int{1, 16, 64} {
		for _, told := range []string{"nobody", "alone", "another"} {
			b.Run(fmt.Sprintf("%d/%s", sessions, told), func(b *testing.B) { exchanges(b, sessions, told) })
		}
	}
}

func exchanges(b *testing.B, sessions int, told string) {
	b.Helper()
	config := postgres.Config{URL: storetest.Postgres(b), Dir: b.TempDir()}
	if told != "nobody" {
		config.Others = postgres.Others{Holder: "bench", Heard: func(regie.ID) {}}
	}
	s := opened(b, config)
	defer s.Close()
	if told == "another" {
		var heard atomic.Int64
		config.Others = postgres.Others{Holder: "another", Heard: func(regie.ID) { heard.Add(1) }}
		other := opened(b, config)
		defer other.Close()
		if err := other.Lease(b.Context(), "another", time.Hour); err != nil {
			b.Fatal(err)
		}
		defer func() { b.ReportMetric(float64(heard.Load())/float64(b.N), "heard/op") }()
	}
	w := world(b, s)
	fences := make([]store.Fence, sessions)
	for i := range fences {
		accepted, err := s.Submit(b.Context(), w.Submission("go"))
		if err != nil {
			b.Fatal(err)
		}
		fences[i] = accepted.Fence
	}
	b.ResetTimer()
	var group sync.WaitGroup
	for i, fence := range fences {
		group.Go(func() {
			for exchange := 1; exchange <= b.N/sessions+min(1, max(0, b.N%sessions-i)); exchange++ {
				reply := w.Reply(fence, exchange, regie.KindQuery, regie.KindQuery)
				_, err := s.AppendReply(b.Context(), fence, reply)
				if err == nil {
					_, err = s.CommitCalls(b.Context(), fence, w.Settled(exchange, reply.Calls))
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

func opened(b *testing.B, config postgres.Config) *sqlite.Store {
	b.Helper()
	s, err := postgres.Open(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// world is storetest's without its test.
func world(b *testing.B, s *sqlite.Store) *storetest.World {
	b.Helper()
	w := &storetest.World{Store: s, Ctx: b.Context()}
	user, err := s.EnsureUser(w.Ctx, "ada")
	if err == nil {
		w.User = user.ID
		w.Workspace, err = s.EnsureWorkspace(w.Ctx, user.ID, regie.Workspace{Name: "w", Root: "/w", FoundBy: "git"})
	}
	if err != nil {
		b.Fatal(err)
	}
	return w
}
