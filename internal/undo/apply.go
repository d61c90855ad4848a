package undo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/workspace"
)

// carryOut restores the files of an intended undo, and stores each outcome. again says that another
// process may have started it: finished files are skipped. lost says why the workspace cannot be
// opened; then all files stay unchanged. If another process may have taken the undo over, it stops
// with CodeStale and changes no more files.
func (u *Undoer) carryOut(ctx context.Context, root *workspace.Root, lost error, held store.HeldUndo,
	again bool,
) (regie.Undo, error) {
	undo := held.Undo
	undo.Files = slices.Clone(undo.Files)
	for i := range undo.Files {
		f := &undo.Files[i]
		if lost != nil {
			leaveFile(f, lost)
			continue
		}
		if u.Holds != nil && !u.Holds() && !fault.Bug(fault.BugNoEpoch) {
			return undo, errTaken
		}
		if fault.Bug(fault.BugUndoBlind) && again {
			f.Outcome = regie.FileUndone
			continue
		}
		u.putBack(ctx, root, &undo, i, again)
		fault.Point(fault.UndoFile)
	}
	if lost == nil {
		root.RemoveEmpty(undo.Removes)
	}
	fault.Point(fault.UndoFiles)
	done, err := u.Store.FinishUndo(ctx, store.FinishUndo{
		UndoID: undo.ID, Epoch: held.Epoch,
		Files: undo.Files, Message: regie.Message{
			ID: regie.NewID(), Sender: regie.SenderSystem, Author: regie.Author{
				Kind: regie.AuthorComponent, ID: "undo",
			},
			System: &regie.SystemContent{Type: regie.SystemUndone, Summary: undoneText(&undo)},
		},
	})
	if err == nil {
		fault.Point(fault.UndoAfter)
	}
	return done, err
}

var errTaken = regie.Errorf(regie.CodeStale,
	"another engine has taken over the undo and finishes it")

// leaveFile notes that a file is as it was found, and why.
func leaveFile(f *regie.UndoFile, why error) {
	sentence := regie.SentenceOf(why)
	f.Outcome, f.Code, f.Why = regie.FileNotUndone, regie.CodeOf(why), &sentence
}

// putBack restores one file in one step, if it is unchanged since the plan.
func (u *Undoer) putBack(ctx context.Context, root *workspace.Root, undo *regie.Undo, i int, again bool) {
	f, tag := &undo.Files[i], fmt.Sprintf("%s-%d", undo.ID, i)
	now, err := readFile(root, f.Path)
	if again && f.To.Exists() { // a dead process may have left what was to take its place
		_ = root.Clear(f.Path, tag)
	}
	state := stateOf(now)
	switch {
	case err != nil:
		leaveFile(f, err)
		return
	case now.Path != f.Path:
		leaveFile(f, regie.Errorf(regie.CodeFileChanged, "a link created on the way leads to %s now", now.Path))
		return
	case isReached(state, f):
		f.Outcome = regie.FileUndone
		return
	case !state.Same(f.From):
		leaveFile(f, regie.Errorf(regie.CodeFileChanged, "%s was changed while it was being undone, and is left as it is",
			f.Path))
		return
	}
	tried, err := u.changeFile(ctx, root, now, f, tag)
	if err == nil {
		f.Outcome = regie.FileUndone
		return
	}
	if tried { // in the middle of the step that counts: what is there tells
		if now, failed := readFile(root, f.Path); failed == nil && isReached(stateOf(now), f) {
			f.Outcome = regie.FileUndone
			return
		}
	}
	leaveFile(f, err)
}

// isReached reports whether a file has its target state. Permissions count only if nothing else
// changes: otherwise they come with the content.
func isReached(now regie.FileState, f *regie.UndoFile) bool {
	return now.Same(f.To) && (!f.From.Same(f.To) || now.Perm == f.To.Perm)
}

// changeFile does the step.
func (u *Undoer) changeFile(ctx context.Context, root *workspace.Root, now workspace.Content, f *regie.UndoFile,
	tag string,
) (tried bool, err error) {
	if !f.To.Exists() {
		return root.Remove(now)
	}
	data, err := u.readBlob(ctx, f.To.Hash)
	if err != nil {
		return false, err
	}
	return root.Replace(workspace.Change{
		Before: now, Data: data, Tag: tag, Perm: f.To.Perm,
		DirPerm: f.To.DirPerm.Perm(),
	})
}

// maxTold bounds how many files the thread lists by name.
const maxTold = 50

// undoneText tells the model of an undo, because it believes that its files are unchanged.
func undoneText(u *regie.Undo) string {
	var b strings.Builder
	if u.Undoes.IsZero() {
		b.WriteString("The person took back what an earlier run of this session did to files.")
	} else {
		b.WriteString("The person took back an undo: what an earlier run of this session did to files, or the undo of that, stands again.")
	}
	back, left := []string{}, []string{}
	for i := range u.Files {
		if f := &u.Files[i]; f.Outcome == regie.FileUndone {
			back = append(back, f.Path)
		} else {
			left = append(left, f.Path)
		}
	}
	writeNames(&b, "As before", back)
	writeNames(&b, "Not taken back, because they were changed meanwhile or cannot be put back", left)
	if len(u.Effects) > 0 {
		var names []string
		for _, e := range u.Effects {
			names = append(names, e.Tool)
		}
		writeNames(&b, "What was done otherwise stands", names)
	}
	if len(u.Files) == 0 {
		b.Reset()
		b.WriteString("The person changed what of this conversation counts. No files were touched.")
	}
	if u.Chat {
		b.WriteString(" The messages of that run are no longer part of this conversation, or are part of it again, as you see it now.")
	}
	if len(u.Files) > 0 {
		b.WriteString(" Read a file again before you rely on what it holds.")
	}
	return b.String()
}

func writeNames(b *strings.Builder, what string, names []string) {
	if len(names) == 0 {
		return
	}
	more := ""
	if len(names) > maxTold {
		more = fmt.Sprintf(" and %d more", len(names)-maxTold)
		names = names[:maxTold]
	}
	fmt.Fprintf(b, " %s: %s%s.", what, strings.Join(names, ", "), more)
}
