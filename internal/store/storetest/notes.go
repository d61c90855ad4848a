package storetest

import (
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// notice is a message about missing tools.
func notice(n regie.ToolNotice) *regie.Message {
	data, _ := json.Marshal(n)
	return &regie.Message{
		ID: regie.NewID(), Sender: regie.SenderSystem, Author: regie.Author{
			Kind: regie.AuthorComponent,
			ID:   regie.ComponentTools,
		}, ExcludeFromPrompt: true,
		ExecutionMetadata: data, System: &regie.SystemContent{Type: regie.SystemNetworkError, Summary: "away"},
	}
}

// notes says which tools are missing, and parks a round with a started call, without a holder,
// until its time has come (decisions 5 and 42).
func notes(w *World) {
	fence := w.Start()
	missing := []regie.Missing{{Toolkit: "bank", Why: "down"}}
	out := resultOf(w.Store.Note(w.Ctx, fence, store.Note{Message: notice(regie.ToolNotice{Missing: missing})}))(w)
	w.equal("parked by a mere word", out.Parked, false)
	reply := w.Reply(fence, 1, regie.KindAction, regie.KindAction)
	reply.Calls[0].State, reply.Calls[0].StartedAt, reply.Calls[0].Attempts = regie.CallStarted, time.Now(), 1
	w.must(w.AppendReply(fence, reply))
	started, open := reply.Calls[0].ID, reply.Calls[1].ID
	until := time.Now().Add(time.Hour)
	w.unchanged(fence.SessionID, regie.CodeConflict, func() error {
		_, err := w.Store.Note(w.Ctx, fence, store.Note{Waits: open, Until: until})
		return err
	})
	out = resultOf(w.Store.Note(w.Ctx, fence,
		store.Note{Message: notice(regie.ToolNotice{Missing: missing, CallID: started}), Waits: started, Until: until}))(w)
	w.equal("parked", out.Parked, true)
	w.state(fence.SessionID, regie.SessionWaitingNetwork)
	ready, next, err := w.Store.ExpireWaits(w.Ctx, time.Now())
	w.must(err)
	w.equal("too early", []any{len(ready), next.Equal(until.Truncate(time.Microsecond))}, []any{0, true})
	ready, _, err = w.Store.ExpireWaits(w.Ctx, until.Add(time.Second))
	w.must(err)
	w.equal("ready", []any{len(ready), ready[0].RoundID}, []any{1, fence.RoundID})
	claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "other"))(w)
	// It was released in good order, and yet the call may have had its effect.
	w.equal("the call", []any{
		claimed.Resumed, claimed.Calls[0].State, claimed.Calls[0].Recovered,
		claimed.Calls[0].Attempts, claimed.Calls[1].Recovered,
	},
		[]any{false, regie.CallStarted, true, 2, false})
	w.equal("resumes", claimed.Round.Counters.Resumes, 0)
	_, err = w.Store.Note(w.Ctx, fence, store.Note{Waits: started, Until: until})
	w.refused(regie.CodeStale, err)

	view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	w.equal("notices", len(view.Notices), 2)
	for i, call := range []regie.ID{{}, started} {
		got, ok := view.Notices[i].ToolNotice()
		w.equal("notice", []any{ok, got}, []any{true, regie.ToolNotice{Missing: missing, CallID: call}})
	}
	// A stop request refuses a wait; a pause allows a mere note.
	resultOf(w.Store.RequestStop(w.Ctx, fence.RoundID, regie.StopPause))(w)
	_, err = w.Store.Note(w.Ctx, claimed.Fence, store.Note{Waits: started, Until: until})
	w.refused(regie.CodeStopRequested, err)
	resultOf(w.Store.Note(w.Ctx, claimed.Fence, store.Note{Message: notice(regie.ToolNotice{Missing: missing})}))(w)
	resultOf(w.Store.Verify(w.Ctx, fence.SessionID))(w)
}
