package app

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/undo"
)

// PlanUndo implements dispatch.Undoing.
func (l *local) PlanUndo(ctx context.Context, in dispatch.UndoRequest) (regie.UndoPlan, error) {
	request, err := undoRequest(in)
	if err != nil {
		return regie.UndoPlan{}, err
	}
	return l.undoer.Plan(ctx, request)
}

// Undo implements dispatch.Undoing.
func (l *local) Undo(ctx context.Context, in dispatch.UndoRequest) (regie.Undo, error) {
	if err := l.mayStore(); err != nil {
		return regie.Undo{}, err
	}
	request, err := undoRequest(in)
	if err != nil {
		return regie.Undo{}, err
	}
	if l.storeOnly { // nothing runs here, so nothing holds a lease yet
		if err := l.dispatcher.Hold(ctx); err != nil {
			return regie.Undo{}, err
		}
	}
	return l.undoer.Undo(ctx, request)
}

func undoRequest(in dispatch.UndoRequest) (undo.Request, error) {
	switch {
	case !in.Target.IsZero() && in.Short != "":
		return undo.Request{}, regie.Errorf(regie.CodeBadRequest, "the request names a run or an undo twice")
	case in.Target.IsZero() && in.Short == "" && in.Back == "" && in.SessionID.IsZero() && !filepath.IsAbs(in.Root):
		return undo.Request{}, regie.Errorf(regie.CodePathInvalid, "the workspace %q is not an absolute path", in.Root)
	}
	return undo.Request{
		UndoID: in.UndoID, Target: in.Target, Short: in.Short, Root: in.Root, SessionID: in.SessionID, Back: in.Back,
		Over: in.Over, Chat: in.Chat, Force: in.Force, Plan: in.Plan,
		By: plain.Strip(author(in.By)),
	}, nil
}

// unhindered runs what starts a round of a session when no undo of it is under way, and again where
// one came first.
func (l *local) unhindered(ctx context.Context, session regie.ID, fn func() error) error {
	const tries = 3
	for try := 1; ; try++ {
		if err := l.undoer.Idle(ctx, session); err != nil {
			return err
		}
		err := fn()
		if !errors.Is(err, store.ErrUndoing) || try == tries {
			return err
		}
		if err := l.undoer.Settle(ctx, session); err != nil {
			return err
		}
	}
}
