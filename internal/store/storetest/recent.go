package storetest

import (
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// recentCalls gives the calls of one toolkit and session that were run, the newest first, as often
// as anybody wants one more.
func recentCalls(w *World) {
	fence := w.Start()
	var want []string
	for exchange := 1; exchange <= 15; exchange++ {
		reply := w.Reply(fence, exchange, regie.KindQuery, regie.KindQuery, regie.KindQuery)
		reply.Calls[1].Tool = "tt.query" // another toolkit, whose name begins alike
		reply.Calls[2].State, reply.Calls[2].NotRun, reply.Calls[2].Error = regie.CallNotRun, regie.NotRunInvalid,
			&regie.CallError{Code: regie.CodeBadArguments, Message: "x"}
		w.must(w.AppendReply(fence, reply))
		settle := w.Settled(exchange, reply.Calls)
		settle.Settled = settle.Settled[:2]
		w.must(w.CommitCalls(fence, settle))
		want = append(want, reply.Calls[0].ID.String())
	}
	slices.Reverse(want)
	other := w.Start()
	reply := w.Reply(other, 1, regie.KindAction, regie.KindQuery)
	w.must(w.AppendReply(other, reply))
	started := reply.Calls[0]
	started.Intent = []byte(`{"after":1}`)
	w.must(w.CommitCalls(other, store.Settle{Exchange: 1, Start: &started}))

	recent := func(session regie.ID, most int) (out []string) {
		err := w.Store.RecentCalls(w.Ctx, session, "t", func(c regie.Call) bool {
			out = append(out, c.ID.String())
			return len(out) < most
		})
		w.must(err)
		return out
	}
	w.equal("all", recent(fence.SessionID, 100), want)
	w.equal("some", recent(fence.SessionID, 3), want[:3])
	w.equal("one that has started", recent(other.SessionID, 9), []string{started.ID.String()})
	w.equal("of no session", len(recent(regie.NewID(), 9)), 0)
}
