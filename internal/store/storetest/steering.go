package storetest

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// leavesApprovals steers with messages that must not withdraw an approval: an open approval refuses
// them, a later one stays, a question is withdrawn.
func leavesApprovals(w *World) {
	steer := func(fence store.Fence) store.Submission {
		in := w.Submission("something else")
		in.SessionID, in.New, in.WhenBusy, in.LeavesApprovals = fence.SessionID, nil, store.Steer, true
		return in
	}
	asks := func(fence store.Fence, approval bool) store.Outcome {
		w.T.Helper()
		reply := w.Reply(fence, 1, regie.KindAction)
		reply.Park = true
		if approval {
			reply.Ask = &store.Asked{Approval: w.Approval(fence, reply)}
		} else {
			reply.Ask = &store.Asked{Questions: []regie.Question{{
				ID: regie.NewID(), RoundID: fence.RoundID, CallID: reply.Calls[0].ID,
				Module:    regie.Module{Kind: regie.ModuleChoice, Text: "which?", Options: []string{"a", "b"}},
				ExpiresAt: time.Now().Add(time.Hour),
			}}}
		}
		out := resultOf(w.Store.AppendReply(w.Ctx, fence, reply))(w)
		return out
	}
	says := func(in store.Submission) store.Accepted {
		w.T.Helper()
		out := resultOf(w.Store.Submit(w.Ctx, in))(w)
		return out
	}

	fence := w.Start()
	w.equal("parked", asks(fence, true).Parked, true)
	w.unchanged(fence.SessionID, regie.CodeMissingScope, func() error {
		_,
			err := w.Store.Submit(w.Ctx, steer(fence))
		return err
	})
	w.state(fence.SessionID, regie.SessionWaitingValidation)

	fence = w.Start()
	w.equal("parked", asks(fence, false).Parked, true)
	w.equal("woken", says(steer(fence)).Ready, true)
	batch := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "other"))(w)
	w.equal("the question", batch.Calls[0].NotRun, regie.NotRunSuperseded)
	w.head(fence.SessionID)

	fence = w.Start()
	says(steer(fence))
	w.equal("parked for an approval", asks(fence, true).Parked, true)
	w.state(fence.SessionID, regie.SessionWaitingValidation)
	w.head(fence.SessionID)

	fence = w.Start()
	says(steer(fence))
	w.equal("parked for a question", asks(fence, false).Parked, false)
	w.state(fence.SessionID, regie.SessionActive)
	w.head(fence.SessionID)
}
