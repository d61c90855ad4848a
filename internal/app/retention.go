package app

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
)

const (
	// keepAPI is how long a session of an OpenAI-compatible client is kept after something last
	// happened in it (decision 35); apiSweep bounds how long its end is slept through, and how many
	// go at once.
	keepAPI  = 24 * time.Hour
	apiSweep = 10 * time.Minute
	apiBatch = 100
	// keepDeliveries is how long the outbox of notifications is kept.
	keepDeliveries = 30 * 24 * time.Hour
)

// sweepAPI removes expired sessions of OpenAI-compatible clients until ctx ends. The store decides
// which, so the sweep resumes after a restart.
func (e *Engine) sweepAPI(ctx context.Context, log *slog.Logger) {
	for {
		next, err := e.removeUnused(ctx, time.Now())
		err = cmp.Or(err, e.store.RemoveUploads(ctx, time.Now().Add(-2*control.UploadsKept)))
		err = cmp.Or(err, e.store.RemoveDeliveries(ctx, time.Now().Add(-keepDeliveries)))
		if err != nil && ctx.Err() == nil {
			log.Warn("unused sessions of clients, uploaded images and old notifications could not be removed", "code",
				string(regie.CodeOf(err)), "error", err)
		}
		sleep := apiSweep
		if !next.IsZero() {
			sleep = min(sleep, max(time.Second, time.Until(next.Add(keepAPI))))
		}
		if sleepFor(ctx, sleep) != nil {
			return
		}
	}
}

// removeUnused removes what is due at a moment, and returns when something last happened in the
// session that is due next. One that cannot go now, because a run of it is open, is tried again at
// the next look.
func (e *Engine) removeUnused(ctx context.Context, now time.Time) (next time.Time, err error) {
	due, next, err := e.store.Unused(ctx, now.Add(-keepAPI), apiBatch)
	for _, session := range due {
		in := dispatch.RemoveRequest{SessionID: session, By: "retention"}
		if _, failed := e.service.Sessions.Remove(access.AsOwner(ctx), in); failed != nil &&
			regie.CodeOf(failed) != regie.CodeRoundInProgress {
			err = failed
		}
	}
	return next, err
}
