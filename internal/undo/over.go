package undo

import (
	"context"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/workspace"
)

// maxOver bounds how many undos are assumed to be done before one is planned.
const maxOver = 100

// overlay is what files would be after undos that are planned and not done: of several undos that a
// person is shown together each is planned on those before it.
type overlay struct {
	files map[string]regie.FileState
	dirs  map[string]bool // directories that would have been made
}

// over plans the undos that are assumed to be done, in their order. An undo in whose way something
// stands would not be done, so what is planned on it does not count either: the plan of that one
// says what it is.
func (u *Undoer) over(ctx context.Context, in Request) (*overlay, error) {
	if len(in.Over) == 0 {
		return nil, nil
	}
	if len(in.Over) > maxOver {
		return nil, regie.Errorf(regie.CodeBadRequest, "at most %d undos are planned on one another", maxOver)
	}
	out := &overlay{files: map[string]regie.FileState{}, dirs: map[string]bool{}}
	for _, id := range in.Over {
		source, target, err := u.find(ctx, Request{Target: id, Chat: in.Chat})
		if err != nil {
			return nil, err
		}
		b := builder{
			Undoer: u, in: Request{Target: id, Chat: in.Chat, Force: in.Force},
			source: source, target: target, over: out,
		}
		plan, err := b.plan(ctx)
		if err != nil {
			return nil, err
		}
		for i := range plan.Files {
			if c := plan.Previews[i].Conflict; c != nil && !c.Forceable { // it would be left as it is
				continue
			}
			out.files[plan.Files[i].Path] = plan.Files[i].To
		}
		for _, dir := range plan.Makes {
			out.dirs[dir] = true
		}
	}
	return out, nil
}

// assumed is a file as the undos before this one would leave it; known is false where they do not
// touch it.
func (b *builder) assumed(ctx context.Context, name string) (content workspace.Content, known bool, err error) {
	if b.over == nil {
		return content, false, nil
	}
	state, known := b.over.files[name]
	content.Path = name
	if !known || !state.Exists() {
		return content, known, nil
	}
	content.Exists, content.Perm, content.Size, content.Link = true, state.Perm, state.Size, state.IsLink()
	// it is as it is found, and not kept yet
	if content.Data, err = b.blob(ctx, state.Hash); regie.CodeOf(err) == regie.CodeNotFound {
		now, failed := b.root.LoadEntry(name, maxLooked)
		if content.Data, err = now.Data, failed; err == nil && regie.HashOf(now.Data) != state.Hash {
			err = regie.Errorf(regie.CodeFileChanged, "%s is being changed while it is looked at", name)
		}
	}
	return content, true, err
}

// skips reports whether a run is among those that are assumed to be undone.
func (r *Request) skips(round regie.ID) bool { return slices.Contains(r.Over, round) }

// maxBack is how many runs of a session are looked at for those since a message.
const maxBack = 1000

// back is the message or the run that a person names.
func (u *Undoer) back(ctx context.Context, name string) (regie.ID, error) {
	if id, err := regie.ParseID(name); err == nil {
		return id, nil
	}
	found, err := u.Store.UndoCandidates(ctx, store.UndoFilter{Short: name})
	switch {
	case err != nil:
		return regie.ID{}, err
	case len(found) != 1:
		return regie.ID{}, regie.Errorf(regie.CodeNotFound,
			"%s is not the id of one run: name a run, or a message by its whole id", name)
	}
	return found[0].RoundID, nil
}

// linked reports whether a link that goes with the undo stands on the way to a path.
func (b *builder) linked(root *workspace.Root, name string) bool {
	blocker := b.blocker(name)
	if blocker == "" {
		return false
	}
	found, err := look(root, blocker)
	return err == nil && found.Link && found.Path == blocker
}
