package storetest

import (
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Full fills a store with rows in every state for the tests of its guards.
func (w *World) Full() {
	w.T.Helper()
	// Calls that are proposed, and one that is approved.
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery, regie.KindAction, regie.KindAction)
	asked := w.Approval(fence, store.Reply{Calls: reply.Calls[2:]})
	reply.Ask = &store.Asked{Approval: asked}
	w.must(w.AppendReply(fence, reply))
	_, err := w.Store.Decide(w.Ctx, store.Decide{
		ApprovalID: asked.ID, Request: "r", Decisions: []regie.Decision{
			{CallID: reply.Calls[2].ID, Answer: regie.AnswerAllow, By: "ada"},
		},
		Rules: []regie.Rule{{
			ID: regie.NewID(), Verdict: regie.VerdictAllow,
			Scope: regie.Scope{Tool: "t.action"}, Author: "ada",
		}},
	})
	w.must(err)
	w.Ask(1)
	// Rules: one that holds, one that was revoked.
	w.Standing(time.Time{})
	w.must(w.Store.RevokeRules(w.Ctx, store.RevokeRules{RuleIDs: []regie.ID{w.Standing(time.Time{}).ID}, By: "bob"}))
	// An action that runs.
	fence = w.Start()
	reply = w.Reply(fence, 1, regie.KindAction)
	reply.Calls[0].State, reply.Calls[0].StartedAt = regie.CallStarted, time.Now()
	w.must(w.AppendReply(fence, reply))
	// A query with its result, and an UNKNOWN action.
	fence = w.Start()
	reply = w.Reply(fence, 1, regie.KindQuery, regie.KindAction)
	w.must(w.AppendReply(fence, reply))
	w.must(w.CommitCalls(fence, store.Settle{Exchange: 1, Start: &reply.Calls[1]}))
	w.must(w.CommitCalls(fence, w.Half(reply)))
	// A summary on its way.
	w.must(w.Store.BeginSummary(w.Ctx, w.Start(), 1))
	// A round that failed, after two attempts.
	fence = w.Start()
	failure := store.Failure{Attempt: regie.Attempt{
		RoundID: fence.RoundID, Exchange: 1, Number: 1,
		Code: regie.CodeProviderBusy,
	}, Retry: &store.Open{Number: 1}}
	w.must(w.FailAttempt(fence, failure))
	failure.Attempt.Number, failure.Retry = 2, nil
	failure.Message = &regie.Message{
		ID: regie.NewID(), Sender: regie.SenderSystem, Author: regie.Author{Kind: regie.AuthorComponent, ID: "engine"},
		ExcludeFromPrompt: true,
		System:            &regie.SystemContent{Type: regie.SystemNetworkError},
	}
	failure.Advance = &store.Advance{Phase: regie.PhaseEnd, End: &store.End{Reason: regie.EndProviderError}}
	w.must(w.FailAttempt(fence, failure))
	// A message with an attachment and a client id, which starts a round under a pin.
	hash := resultOf(w.Store.PutBlob(w.Ctx, []byte("picture")))(w)
	rich := w.Submission("")
	rich.Message.ClientID, rich.Round.Pin, rich.Round.Policy = "client", hash, json.RawMessage("{}")
	rich.Message.Rich = []regie.Segment{
		{Attachment: &regie.Attachment{Blob: hash, MediaType: "image/png", Name: "a.png", Size: 7}},
	}
	resultOf(w.Store.Submit(w.Ctx, rich))(w)
}

// Half settles the query, and the action as UNKNOWN.
func (w *World) Half(reply store.Reply) store.Settle {
	settle := w.Settled(1, reply.Calls)
	settle.Advance, settle.Message = nil, nil
	settle.Settled[1].State, settle.Settled[1].Error = regie.CallUnknown,
		&regie.CallError{Code: regie.CodeOutcomeUnknown, Message: "?"}
	return settle
}
