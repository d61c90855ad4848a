package app

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// enter counts a stream in, and returns what counts it out. One that was opened with an API token
// is a program's, which does not tell whether a person is there.
func (l *local) enter(ctx context.Context) (leave func(), err error) {
	caller := access.From(ctx)
	if l.present == nil || l.readOnly || dispatch.IsUnattended(ctx) || caller != nil &&
		caller.Via == access.ViaToken {
		return func() {}, nil
	}
	user, err := l.user(ctx)
	if err != nil {
		return nil, err
	}
	l.present.Enter(ctx, user.ID)
	return func() { l.present.Leave(user.ID) }, nil
}

// presence is what is known of people being there.
func (l *local) presence() *dispatch.Present { return l.present }

// mode says whether the owner of a session is there.
func (l *local) mode(ctx context.Context, owner regie.ID) (store.Mode, error) {
	if l.present == nil {
		return "", nil
	}
	there, err := l.present.Of(ctx, owner)
	return there.Mode, err
}

// unseen is Control for programs: what they follow is not a person's being there.
type unseen struct{ *local }

// Events implements dispatch.Control.
func (u unseen) Events(ctx context.Context, session regie.ID, after int64, sink func(dispatch.Item) error) error {
	if _, _, err := u.store.Session(ctx, session); err != nil {
		return err
	}
	return u.dispatcher.Stream(ctx, session, after, sink)
}

// Watch implements dispatch.Control.
func (u unseen) Watch(ctx context.Context, sink func(regie.Event) error) error {
	return u.dispatcher.Watch(ctx, sink)
}
