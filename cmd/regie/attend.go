package main

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// beats is how often a chat says that a person sits before it: twice within the shortest time of
// presence.
const beats = 15 * time.Second

// attend says that a person is there, until the function that it returns is called, which waits for
// the end of it (spec 5.4): the streams of an API token do not say it, a program may follow them.
// Where that does not get through the chat goes on without it; who may not say it says it no more.
func attend(ctx context.Context, beat func(context.Context) (dispatch.Presence, error)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(beats)
		defer ticker.Stop()
		for {
			switch _, err := beat(ctx); regie.CodeOf(err) {
			case regie.CodeMissingScope, regie.CodeForbidden, regie.CodeNoToken, regie.CodeTokenEnded:
				return
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
