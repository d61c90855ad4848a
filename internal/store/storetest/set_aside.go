package storetest

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// inboxOf returns the inbox of the world's user.
func (w *World) inboxOf() store.Inbox {
	w.T.Helper()
	return resultOf(w.Store.Inbox(w.Ctx, store.InboxFilter{Root: "/w", UserID: w.User}))(w)
}

// setAside sets aside an approval, an unknown call and a session, until a time or no longer.
func setAside(w *World) {
	fence, reply, asked := w.Ask(1)
	other := w.Start()
	unknown := w.Reply(other, 1, regie.KindAction)
	w.must(w.AppendReply(other, unknown))
	call := unknown.Calls[0]
	w.must(w.CommitCalls(other, store.Settle{Exchange: 1, Start: &call}))
	call.State, call.Error = regie.CallUnknown, &regie.CallError{Code: regie.CodeOutcomeUnknown, Message: "?"}
	w.must(w.CommitCalls(other, store.Settle{Exchange: 1, Settled: []regie.Call{call}}))
	if inbox := w.inboxOf(); len(inbox.Unknown) != 1 || inbox.Unknown[0].ID != call.ID || len(inbox.SetAside) != 0 {
		w.T.Fatalf("the inbox holds %+v", inbox)
	}
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	for _, id := range []regie.ID{asked.ID, call.ID, fence.SessionID} {
		w.must(w.Store.SetItemAside(w.Ctx, store.Aside{UserID: w.User, ItemID: id, Until: until.Add(-time.Minute)}))
		w.must(w.Store.SetItemAside(w.Ctx, store.Aside{UserID: w.User, ItemID: id, Until: until}))
		w.equal("until when", w.inboxOf().SetAside[id], until)
	}
	w.equal("the deadline", w.inboxOf().Approvals[0].ExpiresAt, asked.ExpiresAt)
	w.must(w.Store.SetItemAside(w.Ctx, store.Aside{UserID: w.User, ItemID: asked.ID, Until: time.Now()}))
	w.equal("shown again", len(w.inboxOf().SetAside), 2)
	w.refused(regie.CodeNotFound, w.Store.SetItemAside(w.Ctx, store.Aside{UserID: w.User, ItemID: regie.NewID(), Until: until}))
	resultOf(w.decide(asked, "x", regie.Decision{CallID: reply.Calls[0].ID, Answer: regie.AnswerDeny}))(w)
	w.refused(regie.CodeConflict, w.Store.SetItemAside(w.Ctx, store.Aside{UserID: w.User, ItemID: asked.ID, Until: until}))
}

// extendDeadline keeps an approval and a question open, and refuses what was decided or has none.
func extendDeadline(w *World) {
	fence, reply, asked := w.Ask(1)
	until := asked.ExpiresAt.Add(time.Hour)
	extend := func(id regie.ID, to time.Time) error {
		return w.Store.ExtendDeadline(w.Ctx, store.Extension{ItemID: id, Until: to, By: "ada"})
	}
	w.must(extend(asked.ID, until))
	before := w.head(fence.SessionID)
	w.must(extend(asked.ID, until.Add(-time.Minute))) // never back
	w.equal("the log", w.head(fence.SessionID), before)
	w.equal("the deadline", w.inboxOf().Approvals[0].ExpiresAt, until)
	ready, next, err := w.Store.ExpireWaits(w.Ctx, asked.ExpiresAt)
	w.must(err)
	if len(ready) != 0 || !next.Equal(until) {
		w.T.Errorf("at the first deadline: %v, next %v", ready, next)
	}
	w.refused(regie.CodeConflict, extend(fence.SessionID, until))
	w.refused(regie.CodeNotFound, extend(regie.NewID(), until))
	resultOf(w.decide(asked, "x", regie.Decision{CallID: reply.Calls[0].ID, Answer: regie.AnswerDeny}))(w)
	w.unchanged(fence.SessionID, regie.CodeConflict, func() error { return extend(asked.ID, until.Add(time.Hour)) })

	fence = w.Start()
	reply = w.Reply(fence, 1, regie.KindQuery)
	question := regie.Question{
		ID: regie.NewID(), RoundID: fence.RoundID, CallID: reply.Calls[0].ID, Module: regie.Module{Kind: regie.ModuleChoice, Text: "which?"},
		ExpiresAt: time.Now().Add(time.Hour),
	}
	reply.Ask, reply.Park = &store.Asked{Questions: []regie.Question{question}}, true
	w.must(w.AppendReply(fence, reply))
	w.must(extend(question.ID, until))
	w.equal("the deadline of a question", w.inboxOf().Questions[0].ExpiresAt, until)
	w.head(fence.SessionID)
}
