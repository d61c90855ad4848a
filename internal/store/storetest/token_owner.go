package storetest

import (
	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

var begunCases = map[string]func(*World){"Begun": begun, "TakenBackByToken": takenBackByToken, "Unasked": unasked}

// begun: every view of a session shows the token that began it. A fork belongs to its caller's
// token, and messages of other tokens do not change the owner.
func begun(w *World) {
	one, other := regie.NewID(), regie.NewID()
	in := w.Submission("go")
	in.New.TokenID = one
	accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
	made, err := w.Store.CreateSession(w.Ctx, regie.Session{
		ID: regie.NewID(), WorkspaceID: w.Workspace.ID, UserID: w.User, Agent: "main", Type: regie.SessionChat,
		Provider: "p", Model: "m", TokenID: other,
	})
	w.must(err)
	next := w.Submission("me too")
	next.SessionID, next.New.ID, next.New.TokenID = in.SessionID, in.SessionID, other
	resultOf(w.Store.Submit(w.Ctx, next))(w)
	fork, err := w.Store.Fork(w.Ctx, store.Fork{
		SessionID: regie.NewID(), From: in.SessionID,
		At: accepted.Message.Seq, TokenID: other,
	})
	w.must(err)
	w.equal("the fork", fork.Session.TokenID, other)
	nobodys, err := w.Store.Fork(w.Ctx, store.Fork{
		SessionID: regie.NewID(),
		From:      in.SessionID, At: accepted.Message.Seq,
	})
	w.must(err)
	for _, c := range []struct{ session, token regie.ID }{
		{in.SessionID, one},
		{made.ID, other},
		{fork.Session.ID, other},
		{nobodys.Session.ID, regie.ID{}},
	} {
		session, _, err := w.Store.Session(w.Ctx, c.session)
		w.must(err)
		view := resultOf(w.Store.SessionView(w.Ctx, c.session, w.User))(w)
		list := resultOf(w.Store.Sessions(w.Ctx, store.SessionFilter{ID: c.session}))(w)
		w.equal("begun by", []regie.ID{session.TokenID, view.TokenID, list[0].TokenID},
			[]regie.ID{c.token, c.token, c.token})
	}
	rounds := resultOf(w.Store.Rounds(w.Ctx, store.RoundFilter{SessionID: in.SessionID}))(w)
	w.equal("of its round", rounds[0].Session.TokenID, one)
}

// takenBackByToken withdraws messages with a token: other tokens' messages are not found, even
// after the round has admitted them.
func takenBackByToken(w *World) {
	fence, one, other := w.Start(), regie.NewID(), regie.NewID()
	said := func(text string, token regie.ID) regie.ID {
		in := w.Submission(text)
		in.SessionID, in.New, in.Message.Author.TokenID = fence.SessionID, nil, token
		accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
		return accepted.Message.ID
	}
	mine, theirs, kept := said("mine", one), said("theirs", other), said("kept", one)
	owners := said("the owner's", regie.ID{})
	for _, id := range []regie.ID{theirs, owners} {
		_, err := w.Store.TakeBack(w.Ctx, fence.SessionID, id, one)
		w.refused(regie.CodeNotFound, err)
	}
	for range 2 {
		m := resultOf(w.Store.TakeBack(w.Ctx, fence.SessionID, mine, one))(w)
		w.equal("what came back", []any{m.Text, m.Author.TokenID}, []any{"mine", one})
	}
	_, err := w.Store.TakeBack(w.Ctx, fence.SessionID, mine, other)
	w.refused(regie.CodeNotFound, err)
	resultOf(w.Store.AppendReply(w.Ctx, fence, w.Answer(1)))(w)
	_, err = w.Store.TakeBack(w.Ctx, fence.SessionID, kept, one)
	w.refused(regie.CodeConflict, err)
	_, err = w.Store.TakeBack(w.Ctx, fence.SessionID, theirs, one)
	w.refused(regie.CodeNotFound, err)
}

// unasked ends a round without a running model call: the exchange fails without an attempt, its
// reservation is freed, and nothing is due.
func unasked(w *World) {
	fence := w.Start() // with 70 reserved
	in := store.Failure{
		Attempt: regie.Attempt{
			RoundID: fence.RoundID, Exchange: 1, Number: 1, Code: regie.CodeStopRequested,
			Error: "stopped", Money: regie.Money{Reserved: 70, Known: true},
		},
		Unasked: true, Advance: &store.Advance{
			Phase: regie.PhaseEnd,
			End:   &store.End{Reason: regie.EndInterrupted, Note: regie.Verbatim("stopped")},
		},
	}
	late := in
	late.Attempt.Number = 2
	w.unchanged(fence.SessionID, regie.CodeConflict, func() error { return w.FailAttempt(fence, late) })
	w.must(w.FailAttempt(fence, in))
	view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	w.equal("the exchange", []any{view.Exchanges[0].State, view.Exchanges[0].Error, len(view.Exchanges[0].Attempts)},
		[]any{regie.ExchangeFailed, "stopped", 0})
	w.equal("the money", view.Spent, regie.Spending{Known: true})
	w.equal("the round", []any{view.Round.State, view.Round.End}, []any{regie.RoundEnded, regie.EndInterrupted})
	w.head(fence.SessionID)
}
