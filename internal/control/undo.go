package control

import (
	"context"
	"path/filepath"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/undo"
)

// Undos take back what rounds did to files (decision 16). Nothing here calls a model.
type Undos struct{ *core }

// Plan says what an undo would do now, with its conflicts; it changes nothing.
func (u *Undos) Plan(ctx context.Context, in dispatch.UndoRequest) (regie.UndoPlan, error) {
	caller, err := u.authorize(ctx, "plan_undo")
	if err == nil {
		err = u.confine(ctx, caller, &in)
	}
	if err != nil {
		return regie.UndoPlan{}, err
	}
	return u.plan(ctx, in)
}

func (u *Undos) plan(ctx context.Context, in dispatch.UndoRequest) (regie.UndoPlan, error) {
	request, err := undoRequest(in)
	if err != nil {
		return regie.UndoPlan{}, err
	}
	return u.Undoer.Plan(ctx, request)
}

// Undo undoes. With a conflict nothing happens. The answer says which files went back, and which
// did not because they were changed meanwhile. A caller who may not read the session learns nothing
// of what was made there.
func (u *Undos) Undo(ctx context.Context, in dispatch.UndoRequest) (regie.Undo, error) {
	operation := "undo"
	if in.Force {
		operation = "undo_by_force"
	}
	caller, err := u.authorize(ctx, operation)
	if err == nil {
		err = u.confine(ctx, caller, &in)
	}
	if err != nil {
		return regie.Undo{}, err
	}
	in.By = u.author(caller, in.By)
	out, err := u.undo(ctx, in)
	if err != nil {
		return regie.Undo{}, u.refusal(ctx, caller, in, err)
	}
	if err := u.mayRead(ctx, caller, out.SessionID); regie.CodeOf(err) == regie.CodeNotFound {
		out.Files, out.Makes, out.Removes, out.Effects = []regie.UndoFile{}, nil, nil, nil
	} else if err != nil {
		return regie.Undo{}, err
	}
	return out, nil
}

func (u *Undos) undo(ctx context.Context, in dispatch.UndoRequest) (regie.Undo, error) {
	if err := u.writable(); err != nil {
		return regie.Undo{}, err
	}
	request, err := undoRequest(in)
	if err != nil {
		return regie.Undo{}, err
	}
	if u.StoreOnly { // nothing runs here, so nothing holds a lease yet
		if err := u.Dispatcher.Hold(ctx); err != nil {
			return regie.Undo{}, err
		}
	}
	return u.Undoer.Undo(ctx, request)
}

// refusal is why an undo was refused, as its caller may know it: only a caller who may read the
// session learns which files are in the way.
func (u *Undos) refusal(ctx context.Context, caller *access.Caller, in dispatch.UndoRequest, err error) error {
	if caller.Has(regie.ScopeRead) {
		return err
	}
	switch regie.CodeOf(err) {
	case regie.CodeBadRequest, regie.CodeBadID, regie.CodeNotFound, regie.CodeRoundInProgress, regie.CodeStalePreview,
		regie.CodeEngineGone, regie.CodeInternal:
		return err // about what was asked, and nothing that was made
	}
	plan, failed := u.plan(ctx, in) // it says which session is meant, however that was named
	if failed == nil && u.mayRead(ctx, caller, plan.SessionID) == nil {
		return err
	}
	if regie.CodeOf(err) == regie.CodeUndoConflict {
		return regie.Errorf(regie.CodeUndoConflict,
			"nothing was undone: files are not as the run left them; who may read the session is told which")
	}
	return regie.Errorf(regie.CodeOf(err), "the undo was refused; who may read the session is told why")
}

// confine settles what the undo of a restricted caller may be about.
func (u *Undos) confine(ctx context.Context, caller *access.Caller, in *dispatch.UndoRequest) error {
	if !caller.Restricted() {
		return nil
	}
	if err := refusePart(caller, in.Short); err != nil {
		return err
	}
	named := given(in.Target, in.SessionID)
	if err := u.owns(ctx, caller, named...); err != nil {
		return err
	}
	if err := u.ownsOrNew(ctx, caller, in.UndoID); err != nil {
		return err
	}
	roots, err := u.roots(ctx, caller, in.Root)
	switch {
	case err != nil:
		return err
	case len(named) > 0: // an id says where
		return nil
	case len(roots) != 1:
		return regie.Errorf(regie.CodeBadRequest, "say which workspace is meant")
	}
	in.Root = roots[0]
	return nil
}

func undoRequest(in dispatch.UndoRequest) (undo.Request, error) {
	switch {
	case !in.Target.IsZero() && in.Short != "":
		return undo.Request{}, regie.Errorf(regie.CodeBadRequest, "the request names a run or an undo twice")
	case in.Target.IsZero() && in.Short == "" && in.SessionID.IsZero() && !filepath.IsAbs(in.Root):
		return undo.Request{}, regie.Errorf(regie.CodePathInvalid, "the workspace %q is not an absolute path", in.Root)
	}
	return undo.Request{
		UndoID: in.UndoID, Target: in.Target, Short: in.Short, Root: in.Root, SessionID: in.SessionID,
		Chat: in.Chat, Force: in.Force, Plan: in.Plan,
		By: plain.Strip(in.By),
	}, nil
}
