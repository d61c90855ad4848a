package control

import (
	"context"
	"path/filepath"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/undo"
)

// Undos take back what rounds did to files (decision 16). Nothing here calls a model.
type Undos struct{ *core }

// Plan says what an undo would do now, with its conflicts; it changes nothing.
func (u *Undos) Plan(ctx context.Context, in dispatch.UndoRequest) (regie.UndoPlan, error) {
	request, err := u.authorizeUndo(ctx, "plan_undo", in)
	if err != nil {
		return regie.UndoPlan{}, err
	}
	return u.Undoer.Plan(ctx, request)
}

// Undo undoes. With a conflict nothing happens. The answer says which files went back, and which
// did not because they were changed meanwhile.
func (u *Undos) Undo(ctx context.Context, in dispatch.UndoRequest) (regie.Undo, error) {
	operation := "undo"
	if in.Force {
		operation = "undo_by_force"
	}
	request, err := u.authorizeUndo(ctx, operation, in)
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

// authorizeUndo returns authorize for an undo, and returns it as the undoer takes it.
func (u *Undos) authorizeUndo(ctx context.Context, operation string, in dispatch.UndoRequest) (undo.Request, error) {
	caller, err := u.authorize(ctx, operation)
	if err == nil {
		err = u.confine(ctx, caller, &in)
	}
	if err != nil {
		return undo.Request{}, err
	}
	switch {
	case !in.Target.IsZero() && in.Short != "":
		return undo.Request{}, regie.Errorf(regie.CodeBadRequest, "the request names a run or an undo twice")
	case in.Target.IsZero() && in.Short == "" && in.SessionID.IsZero() && !filepath.IsAbs(in.Root):
		return undo.Request{}, regie.Errorf(regie.CodePathInvalid, "the workspace %q is not an absolute path", in.Root)
	}
	in.By = sanitize.Strip(u.author(caller, in.By))
	return undo.Request(in), nil
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
	root, err := u.root(ctx, caller, in.Root, named...)
	if len(named) == 0 || in.Root != "" {
		in.Root = root
	}
	return err
}
