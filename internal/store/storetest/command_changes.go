package storetest

import (
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// runCommand runs a round to its end, with one action and the file changes that were found after
// it.
func runCommand(w *World, in store.Submission, state regie.CallState, changed json.RawMessage) store.Fence {
	w.T.Helper()
	accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
	fence := accepted.Fence
	reply := w.Reply(fence, 1, regie.KindAction)
	c := &reply.Calls[0]
	c.State, c.StartedAt, c.Attempts, c.Intent = regie.CallStarted, time.Now(), 1, []byte(`{"cwd":"."}`)
	w.must(w.AppendReply(fence, reply))
	settle := w.Settled(1, reply.Calls)
	settle.Settled[0].State, settle.Settled[0].Changed = state, changed
	if state == regie.CallUnknown {
		settle.Settled[0].Result, settle.Settled[0].Error = "", &regie.CallError{
			Code: regie.CodeOutcomeUnknown, Message: "outcome unknown",
		}
	}
	w.must(w.CommitCalls(fence, settle))
	w.must(w.AppendReply(fence, w.Answer(2)))
	return fence
}

// changed stores a call's file changes with its result, until the last session with the earlier
// contents is removed (decision 16).
func changed(w *World) {
	before := resultOf(w.Store.PutBlob(w.Ctx, []byte("what was there before a command")))(w)
	evidence, err := json.Marshal(map[string]any{"files": []regie.FileChange{
		{Path: "a", Before: regie.FileState{Hash: before, Size: 31, Perm: 0o644}, Kept: true},
	}})
	w.must(err)
	began := time.Now().Add(-time.Minute)
	first := runCommand(w, w.Submission("one"), regie.CallSucceeded, evidence)
	second := runCommand(w, w.Submission("two"), regie.CallUnknown, evidence)
	none := w.Acted(w.Submission("three"))
	for _, fence := range []store.Fence{first, second, none} {
		source := resultOf(w.Store.UndoSource(w.Ctx, fence.RoundID))(w)
		want := string(evidence)
		if fence == none {
			want = ""
		}
		w.equal("changed", string(source.Calls[0].Changed), want)
		resultOf(w.Store.Verify(w.Ctx, fence.SessionID))(w)
	}
	later := resultOf(w.Store.Later(w.Ctx, w.Workspace.ID, began))(w)
	var told []string
	for _, c := range later.Calls {
		told = append(told, string(c.State)+" "+string(c.Changed))
	}
	w.equal("later", told, []string{"SUCCEEDED " + string(evidence), "UNKNOWN " + string(evidence), "SUCCEEDED "})

	forked, err := w.Store.Fork(w.Ctx, store.Fork{
		SessionID: regie.NewID(), From: first.SessionID,
		At: w.head(first.SessionID),
	})
	w.must(err)
	thread := resultOf(w.Store.Thread(w.Ctx, forked.Session.ID, 0))(w)
	for _, calls := range thread.Calls {
		for i := range calls {
			w.equal("of a copy", len(calls[i].Changed), 0)
		}
	}

	resultOf(w.Store.Remove(w.Ctx, store.Remove{SessionID: first.SessionID}))(w)
	kept := resultOf(w.Store.Blob(w.Ctx, before))(w)
	w.equal("what another session names", string(kept), "what was there before a command")
	resultOf(w.Store.Verify(w.Ctx, first.SessionID))(w)
	resultOf(w.Store.Remove(w.Ctx, store.Remove{SessionID: second.SessionID}))(w)
	_, err = w.Store.Blob(w.Ctx, before)
	w.refused(regie.CodeNotFound, err)
}

// laterStarted: Later includes a started call without a result, because its effect may exist.
func laterStarted(w *World) {
	began := time.Now().Add(-time.Minute)
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindAction)
	c := &reply.Calls[0]
	c.State, c.StartedAt, c.Attempts, c.Intent = regie.CallStarted, time.Now(), 1, []byte(`{"path":"a"}`)
	w.must(w.AppendReply(fence, reply))
	later := resultOf(w.Store.Later(w.Ctx, w.Workspace.ID, began))(w)
	if len(later.Calls) != 1 || later.Calls[0].ID != c.ID || string(later.Calls[0].Intent) != `{"path":"a"}` {
		w.T.Errorf("later: %+v", later.Calls)
	}
}
