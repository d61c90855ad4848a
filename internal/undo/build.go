package undo

import (
	"context"
	"errors"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

// maxArguments bounds the displayed arguments of an effect, in bytes.
const maxArguments = 200

// builder makes a plan of a source.
type builder struct {
	*Undoer
	in     Request
	source store.UndoSource
	target regie.ID // the undo that is to be undone; zero: the round
	show   bool     // with diffs

	shown int // bytes of diffs so far
}

// undoneTarget returns the undo that is the target; nil if the target is the round.
func (b *builder) undoneTarget() *regie.Undo {
	for i := range b.source.Undos {
		if u := &b.source.Undos[i]; !b.target.IsZero() && u.ID == b.target {
			return u
		}
	}
	return nil
}

// targetChanges returns the target's file changes in order, and its other effects.
func (b *builder) targetChanges(ctx context.Context) (out []regie.FileChange, effects []regie.Effect) {
	if u := b.undoneTarget(); u != nil {
		return regie.ChangesOf(u), nil
	}
	for i := range b.source.Calls {
		c := &b.source.Calls[i]
		done := c.State == regie.CallSucceeded
		var why *regie.Sentence
		// a sub-agent's calls stand for themselves
		if !done && c.State != regie.CallUnknown || c.Class == regie.ClassResumable {
			continue
		}
		// changes of a call with an unknown outcome are undone only if its files were compared
		// afterwards
		if done || len(c.Changed) > 0 {
			made, err := b.changesOf(ctx, c)
			if out = append(out, made...); err == nil && done {
				continue
			}
			if err != nil && !errors.Is(err, errNotFiles) {
				sentence := regie.SentenceOf(err)
				why = &sentence
			}
		}
		effects = append(effects, regie.Effect{
			CallID: c.ID, Tool: c.Tool, State: c.State,
			Arguments: briefCall(c), Why: why,
		})
	}
	return out, effects
}

var errNotFiles = regie.Errorf(regie.CodeToolError, "the tool changes no files that could be put back")

// changesOf asks the tool of a call for its file changes.
func (b *builder) changesOf(ctx context.Context, c *regie.Call) ([]regie.FileChange, error) {
	target, _, ok := b.Tools(ctx).Lookup(c.Tool)
	if !ok {
		return nil, errNotFiles
	}
	changes := tool.SidesOf(target).Changes
	if changes == nil {
		return nil, errNotFiles
	}
	return changes(ctx, &tool.Invocation{
		CallID: c.ID, RoundID: c.RoundID, SessionID: c.SessionID,
		Workspace: b.source.Workspace, Intent: c.Intent, Changed: c.Changed,
	})
}

func briefCall(c *regie.Call) string {
	arguments := c.Arguments
	if len(c.Executed) > 0 {
		arguments = string(c.Executed)
	}
	return sanitize.Line(string([]rune(arguments)[:min(len([]rune(arguments)), maxArguments)]))
}

// canUndo reports whether something of the target can still be undone, conflicts aside.
func (b *builder) canUndo(ctx context.Context) bool {
	changes, _ := b.targetChanges(ctx)
	files, _ := mergeChanges(changes)
	undone, _ := regie.Standing(b.source.Undos, b.target)
	return len(remainingFiles(files, undone)) > 0 || b.includesChat()
}

// includesChat reports whether the undo is about the messages too.
func (b *builder) includesChat() bool {
	_, gone := regie.Standing(b.source.Undos, b.target)
	if !gone.IsZero() || b.source.Messages == 0 {
		return false
	}
	if u := b.undoneTarget(); u != nil {
		return u.Chat
	}
	return b.in.Chat
}

// makePlan looks at each file and decides its step.
func (b *builder) makePlan(ctx context.Context) (regie.UndoPlan, error) {
	s := &b.source
	p := regie.UndoPlan{
		Undo: regie.Undo{
			SessionID: s.Session.ID, RoundID: s.Round.ID, Undoes: b.target, State: regie.UndoPlanned,
			By: b.in.By, Chat: b.includesChat(), Files: []regie.UndoFile{},
		},
		Root: s.Workspace.Root, SessionName: s.Session.Name, Text: s.Text, Previews: []regie.FilePreview{},
	}
	if s.Round.State != regie.RoundEnded || s.Session.State != regie.SessionIdle &&
		s.Session.State != regie.SessionClosed {
		return p, store.RunIsOpen(s.Session.State)
	}
	changes, effects := b.targetChanges(ctx)
	all, made := mergeChanges(changes)
	undone, gone := regie.Standing(s.Undos, b.target)
	files := remainingFiles(all, undone)
	p.Effects = effects
	if p.Chat {
		p.Messages = s.Messages
	}
	if len(files) == 0 && !p.Chat {
		return p, b.explainNothing(undone, gone)
	}
	root, err := workspace.Open(s.Workspace.Root)
	if err != nil {
		return p, regie.Errorf(regie.CodeOf(err), "the workspace is not where it was: %v", err)
	}
	defer root.Close()
	for i := range files {
		if err := b.planFile(ctx, root, files[i], &p); err != nil {
			return p, err
		}
	}
	slices.Sort(p.Makes)
	p.Makes, p.Removes = slices.Compact(p.Makes), made
	p.Plan, err = planHash(&p)
	return p, err
}

// explainNothing says why there is nothing to do.
func (b *builder) explainNothing(undone map[string]regie.ID, chat regie.ID) error {
	for _, id := range undone {
		chat = id
	}
	switch {
	case !chat.IsZero():
		return regie.Errorf(regie.CodeConflict, "it is already undone; to revert that: regie undo %s", chat.String())
	case !b.target.IsZero():
		return regie.Errorf(regie.CodeConflict, "this undo changed no files, so there is nothing to take back")
	default:
		return regie.Errorf(regie.CodeConflict, "this run changed no files that can be put back")
	}
}

// planFile adds what becomes of one file.
func (b *builder) planFile(ctx context.Context, root *workspace.Root, m merged, p *regie.UndoPlan) error {
	content, err := readFile(root, m.path)
	now := found{state: stateOf(content), really: content.Path, err: err}
	var then []byte
	var lost error
	if m.before.Exists() && !now.state.Same(m.before) {
		if then, lost = b.formerContent(ctx, m); regie.CodeOf(lost) == regie.CodeEngineGone || ctx.Err() != nil {
			return lost
		}
	}
	s := decideStep(m, now, lost)
	if (s.conflict == nil || s.conflict.Forceable) && s.file.To.Exists() && !s.file.From.Exists() {
		missing, err := root.Missing(m.path)
		if err != nil {
			return err
		}
		p.Makes = append(p.Makes, missing...)
	}
	p.Files = append(p.Files, s.file)
	if !b.show {
		p.Previews = append(p.Previews, regie.FilePreview{Conflict: s.conflict})
		return nil
	}
	preview := previewFile(&s, m, content.Data, then)
	if b.shown += len(preview.Diff); b.shown > maxShown {
		preview.Diff = ""
		preview.Warnings = append(preview.Warnings, regie.Say("too large to show here"))
	}
	p.Previews = append(p.Previews, preview)
	return nil
}

// readFile reads a file as an undo sees it.
func readFile(root *workspace.Root, name string) (workspace.Content, error) {
	return root.LoadEntry(name, maxLooked)
}

// formerContent returns the earlier content of a file.
func (b *builder) formerContent(ctx context.Context, m merged) ([]byte, error) {
	if !m.kept {
		return nil, regie.Errorf(regie.CodeNotFound, "its former content was not stored")
	}
	return b.readBlob(ctx, m.before.Hash)
}

func (u *Undoer) readBlob(ctx context.Context, hash regie.Hash) ([]byte, error) {
	data, err := u.Store.Blob(ctx, hash)
	switch {
	case regie.CodeOf(err) == regie.CodeNotFound:
		return nil, regie.Errorf(regie.CodeNotFound, "its former content is no longer stored: it was erased")
	case err != nil:
		return nil, err
	case regie.HashOf(data) != hash:
		return nil, regie.Errorf(regie.CodeCorrupt, "its saved copy is damaged")
	}
	return data, nil
}

func stateOf(c workspace.Content) regie.FileState {
	if !c.Exists {
		return regie.FileState{}
	}
	out := regie.FileState{Hash: regie.HashOf(c.Data), Size: c.Size, Perm: c.Perm}
	if !c.Link {
		out.Perm = regie.PermOf(c.Perm)
	}
	return out
}
