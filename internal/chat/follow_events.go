package chat

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// Feed is what happens in a session, item by item.
type Feed struct {
	// Items are the events after the one from which Follow began, and the deltas.
	Items <-chan dispatch.Item
	// Ended tells once why there will be no more.
	Ended  <-chan error
	cancel context.CancelFunc
	done   chan struct{}
}

// Follow begins to follow a session after an event of its log.
func Follow(ctx context.Context, control Control, session regie.ID, after int64) *Feed {
	ctx, cancel := context.WithCancel(ctx)
	items, ended, done := make(chan dispatch.Item), make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		ended <- control.Events(ctx, session, after, func(item dispatch.Item) error {
			if item.Event != nil && item.Event.Removes() { // an engine in this process tells of it, and ends nothing
				return regie.Errorf(regie.CodeNotFound, "there is no session %s here", session)
			}
			select {
			case items <- item:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	return &Feed{Items: items, Ended: ended, cancel: cancel, done: done}
}

// Stop ends the following. It may be called more than once.
func (f *Feed) Stop() {
	f.cancel()
	<-f.done
}
