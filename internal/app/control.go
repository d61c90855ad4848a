package app

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// RequestControl implements dispatch.Control.
func (l *local) RequestControl(ctx context.Context, session regie.ID) (store.Controlled, error) {
	if l.readOnly {
		return store.Controlled{}, errRunsNothing
	}
	s, _, err := l.store.Session(ctx, session)
	if err != nil {
		return store.Controlled{}, err
	}
	return l.dispatcher.RequestControl(ctx, session, s.Type)
}

// ReleaseControl implements dispatch.Control.
func (l *local) ReleaseControl(ctx context.Context, session regie.ID) error {
	if l.readOnly {
		return errRunsNothing
	}
	return l.dispatcher.ReleaseControl(ctx, session)
}
