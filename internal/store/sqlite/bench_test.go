package sqlite_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// BenchmarkQueryExchange is what one exchange of two queries costs the store: two transitions. Of
// many sessions, several are in a commit.
func BenchmarkQueryExchange(b *testing.B) {
	for _, sessions := range []int{1, 32} {
		b.Run(strconv.Itoa(sessions), func(b *testing.B) {
			s, err := sqlite.Open(b.Context(), sqlite.Config{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var group sync.WaitGroup
			var next atomic.Int64
			for range sessions {
				exchange := querySession(b, s)
				group.Go(func() {
					for number := 1; next.Add(1) <= int64(b.N); number++ {
						exchange(number)
					}
				})
			}
			group.Wait()
		})
	}
}

// querySession makes a session whose exchanges have two queries each.
func querySession(b *testing.B, s *sqlite.Store) (exchange func(number int)) {
	b.Helper()
	ctx := b.Context()
	user, err := s.EnsureUser(ctx, "bench")
	if err != nil {
		b.Fatal(err)
	}
	workspace, err := s.EnsureWorkspace(ctx, user.ID, regie.Workspace{Name: "w", Root: "/w"})
	if err != nil {
		b.Fatal(err)
	}
	session := regie.NewID()
	accepted, err := s.Submit(ctx, store.Submission{
		SessionID: session, Holder: "bench",
		New:     &regie.Session{ID: session, WorkspaceID: workspace.ID, UserID: user.ID, Agent: "main", Type: regie.SessionChat, Provider: "p", Model: "m"},
		Message: regie.Message{ID: regie.NewID(), Sender: regie.SenderUser, Author: regie.Author{Kind: regie.AuthorUser, ID: "u"}, Text: "go"},
		Round:   regie.Round{ID: regie.NewID(), Reason: regie.ReasonUserMessage, Agent: "main", Provider: "p", Model: "m", TraceID: "t"},
	})
	if err != nil {
		b.Fatal(err)
	}
	fence := accepted.Fence
	return func(number int) {
		reply := regie.Message{ID: regie.NewID(), Sender: regie.SenderAI, Author: regie.Author{Kind: regie.AuthorAgent, ID: "main"}, AI: &regie.AIReply{}}
		calls := make([]regie.Call, 2)
		for i := range calls {
			calls[i] = regie.Call{
				ID: regie.NewID(), RoundID: fence.RoundID, Exchange: number, Ordinal: i, MessageID: reply.ID, Origin: regie.OriginModel, Tool: "bench.noop",
				ProviderCallID: regie.NewID().String(), Kind: regie.KindQuery, Class: regie.ClassRead, Signature: regie.HashOf([]byte("x")), Arguments: `{"n":1}`, State: regie.CallProposed,
			}
			reply.AI.Parts = append(reply.AI.Parts, regie.Part{Type: regie.PartCall, CallID: calls[i].ID, Tool: calls[i].Tool, Arguments: regie.HashOf([]byte(calls[i].Arguments))})
		}
		counters := regie.Counters{Total: number}
		if _, err := s.AppendReply(ctx, fence, store.Reply{
			Message: reply, Calls: calls, Exchange: regie.Exchange{Number: number}, Advance: store.Advance{Phase: regie.PhaseCalls, Counters: counters},
		}); err != nil {
			b.Error(err)
			return
		}
		for i := range calls {
			calls[i].State, calls[i].Result = regie.CallSucceeded, "ok"
		}
		message := regie.Message{
			ID: regie.NewID(), Sender: regie.SenderSystem, Author: regie.Author{Kind: regie.AuthorComponent, ID: "engine"},
			System: &regie.SystemContent{Type: regie.SystemDataAdded, CallIDs: []regie.ID{calls[0].ID, calls[1].ID}},
		}
		if _, err := s.CommitCalls(ctx, fence, store.Settle{
			Exchange: number, Settled: calls, Message: &message,
			Advance: &store.Advance{Phase: regie.PhaseModel, Counters: counters, Open: &store.Open{Number: number + 1, Reason: regie.ExchangeData}},
		}); err != nil {
			b.Error(err)
		}
	}
}
