//go:build faults && linux

package crash

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

const (
	// elsewhere is how long a request is asked of one engine after the other before the harness
	// gives up.
	elsewhere = 60 * time.Second
	// followFor bounds how long a log is followed at one engine: then another one is asked for the
	// rest.
	followFor = 300 * time.Millisecond
)

// anywhere is the control of a person who asks any engine of several, and another one where that
// has died or stands still. What was asked of the first may have been heard.
type anywhere struct{ clients []*client.Client }

// ask asks engines, in an order of chance, until one answers.
func ask[T any](ctx context.Context, a *anywhere, fn func(*client.Client) (T, error)) (out T, err error) {
	started := time.Now()
	for at := rand.IntN(len(a.clients)); ; at++ {
		out, err = fn(a.clients[at%len(a.clients)])
		if code := regie.CodeOf(err); code != regie.CodeEngineGone && code != regie.CodeLocked && code != regie.CodeDatabaseDown || time.Since(started) > elsewhere {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (a *anywhere) say(ctx context.Context, fn func(*client.Client) error) error {
	_, err := ask(ctx, a, func(c *client.Client) (struct{}, error) { return struct{}{}, fn(c) })
	return err
}

func (a *anywhere) Submit(ctx context.Context, in dispatch.RunRequest) (dispatch.Run, error) {
	return ask(ctx, a, func(c *client.Client) (dispatch.Run, error) { return c.Submit(ctx, in) })
}

func (a *anywhere) Interrupt(ctx context.Context, round regie.ID) error {
	return a.say(ctx, func(c *client.Client) error { return c.Interrupt(ctx, round) })
}

func (a *anywhere) Pause(ctx context.Context, round regie.ID) error {
	return a.say(ctx, func(c *client.Client) error { return c.Pause(ctx, round) })
}

func (a *anywhere) Resume(ctx context.Context, round regie.ID) error {
	return a.say(ctx, func(c *client.Client) error { return c.Resume(ctx, round) })
}

func (a *anywhere) Stop(ctx context.Context, session regie.ID) (dispatch.Stopped, error) {
	return ask(ctx, a, func(c *client.Client) (dispatch.Stopped, error) { return c.Stop(ctx, session) })
}

func (a *anywhere) Inbox(ctx context.Context, filter store.InboxFilter) (store.Inbox, error) {
	return ask(ctx, a, func(c *client.Client) (store.Inbox, error) { return c.Inbox(ctx, filter) })
}

func (a *anywhere) Decide(ctx context.Context, in dispatch.DecideRequest) (store.Resolved, error) {
	return ask(ctx, a, func(c *client.Client) (store.Resolved, error) { return c.Decide(ctx, in) })
}

func (a *anywhere) Answer(ctx context.Context, in dispatch.AnswerRequest) (store.Resolved, error) {
	return ask(ctx, a, func(c *client.Client) (store.Resolved, error) { return c.Answer(ctx, in) })
}

func (a *anywhere) Undo(ctx context.Context, in dispatch.UndoRequest) (regie.Undo, error) {
	return ask(ctx, a, func(c *client.Client) (regie.Undo, error) { return c.Undos.Undo(ctx, in) })
}

func (a *anywhere) List(ctx context.Context, filter store.RoundFilter) ([]store.RoundSummary, error) {
	return ask(ctx, a, func(c *client.Client) ([]store.RoundSummary, error) {
		return c.List(ctx, filter)
	})
}

// Events follows the log at one engine after the other, each time from where it stands.
func (a *anywhere) Events(ctx context.Context, session regie.ID, after int64, sink func(dispatch.Item) error) error {
	for ctx.Err() == nil {
		var failed error
		part, cancel := context.WithTimeout(ctx, followFor)
		_ = a.clients[rand.IntN(len(a.clients))].Events(part, session, after, func(item dispatch.Item) error {
			if item.Event != nil {
				after = item.Event.Seq
			}
			failed = sink(item)
			return failed
		})
		<-part.Done() // also where the engine is away
		cancel()
		if failed != nil {
			return failed
		}
	}
	return context.Cause(ctx)
}
