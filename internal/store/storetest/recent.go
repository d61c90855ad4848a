package storetest

import (
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// recentCalls returns the calls of one toolkit and session that ran, the newest first.
func recentCalls(w *World) {
	fence := w.Start()
	var want []string
	for exchange := 1; exchange <= 15; exchange++ {
		reply := w.Reply(fence, exchange, regie.KindQuery, regie.KindQuery, regie.KindQuery)
		reply.Calls[1].Tool = "tt.query" // a toolkit with a name that begins alike
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

	recent := func(session regie.ID) (out []string) {
		for _, c := range resultOf(w.Store.RecentCalls(w.Ctx, session, "t"))(w) {
			out = append(out, c.ID.String())
		}
		return out
	}
	w.equal("all", recent(fence.SessionID), want)
	w.equal("one that has started", recent(other.SessionID), []string{started.ID.String()})
	w.equal("of no session", len(recent(regie.NewID())), 0)
}
