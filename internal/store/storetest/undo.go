package storetest

import (
	"sync/atomic"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Acted runs a round with one action that succeeded, to its end.
func (w *World) Acted(in store.Submission) store.Fence {
	w.T.Helper()
	accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
	fence := accepted.Fence
	reply := w.Reply(fence, 1, regie.KindAction)
	c := &reply.Calls[0]
	c.State, c.StartedAt, c.Attempts, c.Intent = regie.CallStarted, time.Now(), 1, []byte(`{"path":"a"}`)
	w.must(w.AppendReply(fence, reply))
	w.must(w.CommitCalls(fence, w.Settled(1, reply.Calls)))
	w.must(w.AppendReply(fence, w.Answer(2)))
	return fence
}

// UndoOf returns an undo of a round with one file, with both contents stored.
func (w *World) UndoOf(fence store.Fence) regie.Undo {
	w.T.Helper()
	from := resultOf(w.Store.PutBlob(w.Ctx, []byte("after")))(w)
	to := resultOf(w.Store.PutBlob(w.Ctx, []byte("before")))(w)
	return regie.Undo{
		ID: regie.NewID(), SessionID: fence.SessionID, RoundID: fence.RoundID, By: "ada", Chat: true,
		Files: []regie.UndoFile{
			{
				Path: "a", From: regie.FileState{Hash: from, Size: 5, Perm: 0o644},
				To: regie.FileState{Hash: to, Size: 6, Perm: 0o600, DirPerm: 0o700},
			},
			{Path: "b", From: regie.FileState{Hash: from, Size: 5}},
		},
		Removes: []string{"d"}, Makes: []string{"e"}, Effects: []regie.Effect{
			{CallID: regie.NewID(), Tool: "x.pay", State: regie.CallUnknown, Arguments: "{}"},
		},
	}
}

// Finished says that one file was restored and the other was not.
func Finished(u store.HeldUndo) store.FinishUndo {
	files := append([]regie.UndoFile(nil), u.Files...)
	why := regie.Say("%s was changed while it was being undone, and is left as it is", "b")
	files[0].Outcome = regie.FileUndone
	files[1].Outcome, files[1].Code, files[1].Why = regie.FileNotUndone, regie.CodeFileChanged, &why
	return store.FinishUndo{UndoID: u.ID, Epoch: u.Epoch, Files: files, Message: regie.Message{
		ID: regie.NewID(), Sender: regie.SenderSystem, Author: regie.Author{Kind: regie.AuthorComponent, ID: "undo"},
		System: &regie.SystemContent{Type: regie.SystemUndone, Summary: "The person took it back."},
	}}
}

// undo intends an undo, which refuses rounds, removals and other undos of the workspace until it is
// done (decision 16).
func undo(w *World) {
	other := w.Acted(w.Submission("another"))
	fence := w.Acted(w.Submission("go"))
	u := w.UndoOf(fence)
	stored := resultOf(w.Store.BeginUndo(w.Ctx, u, "test"))(w)
	w.equal("state", []any{stored.State, stored.ID, stored.Seq, stored.DoneAt.IsZero()},
		[]any{regie.UndoIntended, u.ID, w.head(fence.SessionID), true})
	read := resultOf(w.Store.Undo(w.Ctx, u.ID))(w)
	w.equal("as it is read", read, stored.Undo)
	again, err := w.Store.BeginUndo(w.Ctx, u, "test") // a repeated request
	w.must(err)
	w.equal("again, and not held", again, store.HeldUndo{Undo: stored.Undo})

	taken := w.UndoOf(other)
	taken.ID = u.ID
	w.unchanged(other.SessionID, regie.CodeConflict, func() error {
		_,
			err := w.Store.BeginUndo(w.Ctx, taken, "test")
		return err
	})
	w.unchanged(other.SessionID, regie.CodeConflict, func() error {
		_,
			err := w.Store.BeginUndo(w.Ctx, w.UndoOf(other), "test")
		return err
	})
	w.unchanged(fence.SessionID, regie.CodeConflict, func() error {
		_,
			err := w.Store.Submit(w.Ctx, furtherSubmission(w, fence))
		return err
	})
	w.unchanged(fence.SessionID, regie.CodeConflict, func() error {
		_, err := w.Store.Remove(w.Ctx, store.Remove{SessionID: fence.SessionID})
		return err
	})
	open := resultOf(w.Store.OpenUndos(w.Ctx))(w)
	w.equal("open", []any{len(open), open[0].ID, open[0].Workspace.Root}, []any{1, u.ID, w.Workspace.Root})

	in := Finished(stored)
	short := in
	short.Files = in.Files[:1]
	w.unchanged(fence.SessionID, regie.CodeConflict, func() error {
		_,
			err := w.Store.FinishUndo(w.Ctx, short)
		return err
	})
	done := resultOf(w.Store.FinishUndo(w.Ctx, in))(w)
	w.equal("files", done.Files, in.Files)
	w.equal("done", []any{done.State, done.MessageID, done.Removes, done.Makes, done.Effects, done.Left()},
		[]any{regie.UndoDone, in.Message.ID, u.Removes, u.Makes, u.Effects, 1})
	head := w.head(fence.SessionID)
	in.Message.ID = regie.NewID()
	repeated := resultOf(w.Store.FinishUndo(w.Ctx, in))(w)
	w.equal("finished again", []any{repeated, w.head(fence.SessionID)}, []any{done, head})
	open = resultOf(w.Store.OpenUndos(w.Ctx))(w)
	w.equal("open afterwards", len(open), 0)
	checkSuperseded(w, fence.SessionID, []bool{true, true, true, true, false})
	resultOf(w.Store.Submit(w.Ctx, furtherSubmission(w, fence)))(w)
	w.unchanged(fence.SessionID, regie.CodeRoundInProgress, func() error {
		_,
			err := w.Store.BeginUndo(w.Ctx, w.UndoOf(fence), "test")
		return err
	})
	_, err = w.Store.Undo(w.Ctx, regie.NewID())
	w.refused(regie.CodeNotFound, err)
	nowhere := w.UndoOf(fence)
	nowhere.SessionID = regie.NewID()
	_, err = w.Store.BeginUndo(w.Ctx, nowhere, "test")
	w.refused(regie.CodeNotFound, err)
}

// furtherSubmission returns one more message of a session.
func furtherSubmission(w *World, fence store.Fence) store.Submission {
	in := w.Submission("and?")
	in.SessionID, in.New = fence.SessionID, nil
	return in
}

// checkSuperseded asserts which messages of a thread are superseded.
func checkSuperseded(w *World, session regie.ID, want []bool) {
	w.T.Helper()
	thread := resultOf(w.Store.Thread(w.Ctx, session, 0))(w)
	got := make([]bool, len(thread.Messages))
	for i := range thread.Messages {
		got[i] = thread.Messages[i].Superseded
	}
	w.equal("superseded", got, want)
	resultOf(w.Store.Verify(w.Ctx, session))(w)
}

// redo undoes an undo: its messages count again. Only a done undo can be undone.
func redo(w *World) {
	fence := w.Acted(w.Submission("go"))
	first := w.UndoOf(fence)
	second := w.UndoOf(fence)
	second.Undoes = first.ID
	w.unchanged(fence.SessionID, regie.CodeConflict, func() error {
		_,
			err := w.Store.BeginUndo(w.Ctx, second, "test")
		return err
	})
	third := w.UndoOf(fence)
	third.Undoes = second.ID
	for i, u := range []regie.Undo{first, second, third} {
		held := resultOf(w.Store.BeginUndo(w.Ctx, u, "test"))(w)
		resultOf(w.Store.FinishUndo(w.Ctx, Finished(held)))(w)
		gone := i%2 == 0
		checkSuperseded(w, fence.SessionID, append([]bool{gone, gone, gone, gone}, make([]bool, i+1)...))
	}
	view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	w.equal("undos", []any{len(view.Undos), view.Undos[2].Undoes}, []any{3, second.ID})
	rounds := resultOf(w.Store.Rounds(w.Ctx, store.RoundFilter{Limit: 10}))(w)
	w.equal("undone", rounds[0].Undone, true)
	forked := resultOf(w.Store.Fork(w.Ctx, store.Fork{From: fence.SessionID}))(w)
	checkSuperseded(w, forked.Session.ID, []bool{true, true, true, true, false, false, false})
}

// undoTaken: one holder takes an undo over from another. Only the later one finishes it (invariant
// 8).
func undoTaken(w *World) {
	fence := w.Acted(w.Submission("go"))
	first := resultOf(w.Store.BeginUndo(w.Ctx, w.UndoOf(fence), "first"))(w)
	second := resultOf(w.Store.ClaimUndo(w.Ctx, first.ID, "second"))(w)
	w.equal("claimed", second, store.HeldUndo{Undo: first.Undo, Epoch: first.Epoch + 1})
	w.unchanged(fence.SessionID, regie.CodeStale, func() error {
		_,
			err := w.Store.FinishUndo(w.Ctx, Finished(first))
		return err
	})
	done := resultOf(w.Store.FinishUndo(w.Ctx, Finished(second)))(w)
	w.equal("done", done.State, regie.UndoDone)
	again := resultOf(w.Store.ClaimUndo(w.Ctx, first.ID, "first"))(w)
	w.equal("a done one is nobody's", again, store.HeldUndo{Undo: done})
	_, err := w.Store.ClaimUndo(w.Ctx, regie.NewID(), "first")
	w.refused(regie.CodeNotFound, err)
	next := resultOf(w.Store.Submit(w.Ctx, furtherSubmission(w, fence)))(w)
	if next.Fence.Epoch <= second.Epoch {
		w.T.Errorf("the next round's epoch is %d, not above %d", next.Fence.Epoch, second.Epoch)
	}
}

// undoSources checks the data for planning an undo, and the candidates.
func undoSources(w *World) {
	first := w.Acted(w.Submission("one"))
	second := w.Acted(furtherSubmission(w, first))
	talked, err := w.Store.Submit(w.Ctx, furtherSubmission(w, first))
	w.must(err)
	w.must(w.AppendReply(talked.Fence, w.Answer(1)))
	candidates := func(filter store.UndoFilter) []regie.ID {
		found, err := w.Store.UndoCandidates(w.Ctx, filter)
		w.must(err)
		ids := []regie.ID{}
		for _, c := range found {
			if c.UndoID.IsZero() {
				ids = append(ids, c.RoundID)
			} else {
				ids = append(ids, c.UndoID)
			}
		}
		return ids
	}
	w.equal("in the workspace", candidates(store.UndoFilter{Root: w.Workspace.Root}),
		[]regie.ID{second.RoundID, first.RoundID})
	w.equal("in another one", candidates(store.UndoFilter{Root: "/other"}), []regie.ID{})
	w.equal("that talked", candidates(store.UndoFilter{SessionID: first.SessionID, Talk: true}),
		[]regie.ID{talked.RoundID, second.RoundID, first.RoundID})
	w.equal("the newest", candidates(store.UndoFilter{Limit: 1}), []regie.ID{second.RoundID})
	w.equal("named", candidates(store.UndoFilter{ID: talked.RoundID}), []regie.ID{talked.RoundID})
	_, err = w.Store.UndoCandidates(w.Ctx, store.UndoFilter{Short: "xyz"})
	w.refused(regie.CodeBadID, err)
	source, err := w.Store.UndoSource(w.Ctx, first.RoundID)
	w.must(err)
	w.equal("source", []any{
		len(source.Calls), source.Calls[0].RoundID, string(source.Calls[0].Intent), source.Text,
		source.Workspace.Root, source.Messages, len(source.Undos),
	},
		[]any{1, first.RoundID, `{"path":"a"}`, "one", w.Workspace.Root, 4, 0})
	later, err := w.Store.Later(w.Ctx, w.Workspace.ID, source.Calls[0].StartedAt)
	w.must(err)
	w.equal("later", []any{len(later.Calls), later.Calls[0].RoundID}, []any{1, second.RoundID})

	u := w.UndoOf(second)
	held, err := w.Store.BeginUndo(w.Ctx, u, "test")
	w.must(err)
	_, err = w.Store.FinishUndo(w.Ctx, Finished(held))
	w.must(err)
	w.equal("an undo by the end of its id", candidates(store.UndoFilter{Short: u.ID.String()[28:]}), []regie.ID{u.ID})
	later, err = w.Store.Later(w.Ctx, w.Workspace.ID, source.Calls[0].StartedAt)
	w.must(err)
	w.equal("later with the undo", []any{len(later.Undos), later.Undos[0].ID}, []any{1, u.ID})
	_, err = w.Store.UndoSource(w.Ctx, regie.NewID())
	w.refused(regie.CodeNotFound, err)
}

// undosTogether begins many undos at once: one is intended.
func undosTogether(w *World) {
	fence := w.Acted(w.Submission("go"))
	undos := make([]regie.Undo, 8)
	for i := range undos {
		undos[i] = w.UndoOf(fence)
	}
	var begun atomic.Int64
	together(len(undos), func(i int) {
		_, err := w.Store.BeginUndo(w.Ctx, undos[i], "test")
		if err == nil {
			begun.Add(1)
		} else if regie.CodeOf(err) != regie.CodeConflict {
			w.T.Error(err)
		}
	})
	w.equal("begun", begun.Load(), int64(1))
	open := resultOf(w.Store.OpenUndos(w.Ctx))(w)
	w.equal("open", len(open), 1)
}
