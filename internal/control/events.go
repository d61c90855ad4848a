package control

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
)

// Events are what happens in sessions, as it happens.
type Events struct{ *core }

// Follow gives a session's log after a sequence number and then follows it, until sink returns an
// error or ctx ends. A user who follows is present (spec 5.4).
func (e *Events) Follow(ctx context.Context, session regie.ID, after int64, sink func(dispatch.Item) error) error {
	caller, err := e.authorize(ctx, "follow_session", session)
	if err != nil {
		return err
	}
	if err := e.exists(ctx, session); err != nil {
		return err
	}
	leave, err := e.enter(ctx, caller)
	if err != nil {
		return err
	}
	defer leave()
	return e.Dispatcher.Stream(ctx, session, after, sink)
}

// its frame does not lie under a stream that waits
//
//go:noinline
func (e *Events) exists(ctx context.Context, session regie.ID) error {
	_, _, err := e.Store.Session(ctx, session)
	return err
}

// Watch gives sink what happens in all sessions from now on, as Dispatcher.Watch. A restricted
// caller gets what happens in the workspaces that it sees. A user who watches is present.
func (e *Events) Watch(ctx context.Context, sink func(regie.Event) error) error {
	caller, err := e.authorize(ctx, "watch_sessions")
	if err != nil {
		return err
	}
	leave, err := e.enter(ctx, caller)
	if err != nil {
		return err
	}
	defer leave()
	if !caller.Restricted() {
		return e.Dispatcher.Watch(ctx, sink)
	}
	return e.Dispatcher.Watch(ctx, func(event regie.Event) error {
		if event.SessionID.IsZero() || caller.Sees(event.SessionID) { // an automation's is its workspace
			return sink(event)
		}
		switch regie.CodeOf(e.owns(ctx, caller, event.SessionID)) {
		case "":
			return sink(event)
		case regie.CodeNotFound:
			return nil
		default: // its workspace could not be read: the watcher looks at all sessions anew
			return sink(regie.Event{Type: regie.EventSession})
		}
	})
}

// enter counts a stream in, and returns what counts it out. A stream of a program does not tell
// whether a person is there: one with an API token, or through an interface for programs.
func (e *Events) enter(ctx context.Context, caller *access.Caller) (leave func(), err error) {
	if e.Present == nil || e.ReadOnly || dispatch.IsUnattended(ctx) || caller.Via == access.ViaToken ||
		caller.Surface != "" {
		return func() {}, nil
	}
	user, err := e.Owner(ctx)
	if err != nil {
		return nil, err
	}
	e.Present.Enter(ctx, user.ID)
	return func() { e.Present.Leave(user.ID) }, nil
}
