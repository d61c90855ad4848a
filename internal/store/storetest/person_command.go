package storetest

import (
	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Own returns the reply of a person's own command, once its round has begun: its call starts at
// once.
func (w *World) Own(fence store.Fence) store.Reply {
	in := w.Reply(fence, 1, regie.KindAction)
	in.Message.Author, in.Message.ExcludeFromPrompt = regie.Author{Kind: regie.AuthorUser, ID: w.User.String()}, true
	in.Message.AI.Parts = in.Message.AI.Parts[1:]
	in.Calls[0].Origin, in.Calls[0].ProviderCallID = regie.OriginAPI, ""
	in.Exchange = regie.Exchange{Number: 1, Reason: regie.ExchangeCommand, Money: regie.Money{Known: true}}
	in.Advance.Counters = regie.Counters{}
	return in
}

// ownCommand stores a round that calls no model. Its exchange says so from the beginning, and costs
// nothing. It neither waits for another round nor begins twice. Its call has its intent before it
// runs, and one result.
func ownCommand(w *World) {
	submission := w.Submission("!make")
	submission.Command, submission.Reserved, submission.Message.ClientID = true, 0, "own"
	accepted := resultOf(w.Store.Submit(w.Ctx, submission))(w)
	fence := accepted.Fence
	view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	first := view.Exchanges[0]
	w.equal("what its exchange is", []any{view.Round.Reason, first.Reason, first.State},
		[]any{regie.ReasonUserMessage, regie.ExchangeCommand, regie.ExchangeOpen})

	again := submission
	again.Message.ID, again.Round.ID = regie.NewID(), regie.NewID()
	repeated := resultOf(w.Store.Submit(w.Ctx, again))(w)
	w.equal("the same once more", []any{repeated.Duplicate, repeated.RoundID}, []any{true, fence.RoundID})
	other := again
	other.Message.ClientID, other.WhenBusy = "other", store.Queue
	w.unchanged(fence.SessionID, regie.CodeRoundInProgress, func() error {
		_, err := w.Store.Submit(w.Ctx, other)
		return err
	})

	in := w.Own(fence)
	started := in.Calls[0]
	resultOf(w.Store.AppendReply(w.Ctx, fence, in))(w)
	started.State, started.Attempts, started.Intent = regie.CallStarted, 1, []byte(`{}`)
	resultOf(w.Store.CommitCalls(w.Ctx, fence, store.Settle{Exchange: 1, Start: &started}))(w)
	claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "other"))(w)
	taken := claimed.Calls[0]
	w.equal("whoever takes it up", []any{claimed.Exchange.Reason, taken.State, taken.Origin},
		[]any{regie.ExchangeCommand, regie.CallStarted, regie.OriginAPI})
	fence = claimed.Fence
	settle := w.Settled(1, []regie.Call{started})
	settle.Message.System.Type = regie.SystemActionsExecuted
	settle.Advance = &store.Advance{Phase: regie.PhaseEnd, End: &store.End{Reason: regie.EndCompleted}}
	resultOf(w.Store.CommitCalls(w.Ctx, fence, settle))(w)
	w.unchanged(fence.SessionID, regie.CodeConflict, func() error { // one result
		_, err := w.Store.CommitCalls(w.Ctx, fence, settle)
		return err
	})
	view = resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	call := view.Exchanges[0].Calls[0]
	w.equal("the end", []any{
		view.Round.End, view.Round.Counters, view.Round.Tokens, view.Spent,
		call.State, call.Origin,
	}, []any{
		regie.EndCompleted,
		regie.Counters{},
		int64(0),
		regie.Spending{Known: true},
		regie.CallSucceeded, regie.OriginAPI,
	})
	resultOf(w.Store.Verify(w.Ctx, fence.SessionID))(w)
	forked := resultOf(w.Store.Fork(w.Ctx, store.Fork{From: fence.SessionID, At: w.head(fence.SessionID)}))(w)
	thread := resultOf(w.Store.Thread(w.Ctx, forked.Session.ID, 0))(w)
	w.equal("the copy", []any{
		len(thread.Messages), thread.Messages[1].ExcludeFromPrompt,
		thread.Calls[thread.Messages[1].ID][0].Origin,
	}, []any{3, true, regie.OriginAPI})
}
