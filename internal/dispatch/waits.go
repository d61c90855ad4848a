package dispatch

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// Decide stores a person's decisions and goes on with the round, once all of it is decided.
func (d *Dispatcher) Decide(ctx context.Context, in store.Decide, storeOnly bool) (store.Resolved, error) {
	fault.Point(fault.DecideBefore)
	out, err := d.store.Decide(ctx, in)
	if err == nil {
		fault.Point(fault.DecideAfter)
		d.resolved(ctx, out, storeOnly)
	}
	return out, err
}

// Answer stores a person's answer to a question and goes on with the round.
func (d *Dispatcher) Answer(ctx context.Context, in store.AnswerQuestion, storeOnly bool) (store.Resolved, error) {
	fault.Point(fault.DecideBefore)
	out, err := d.store.Answer(ctx, in)
	if err == nil {
		fault.Point(fault.DecideAfter)
		d.resolved(ctx, out, storeOnly)
	}
	return out, err
}

func (d *Dispatcher) resolved(ctx context.Context, out store.Resolved, storeOnly bool) {
	if out.Ready && !storeOnly {
		d.tryWakeUp(ctx, out.RoundID)
	}
}

// maxSleep bounds how long the clock sleeps: what it missed, it finds then.
const maxSleep = time.Minute

// clock ends the waits whose deadline has passed, until the dispatcher closes (decision 11).
func (d *Dispatcher) clock() {
	defer d.wg.Done()
	for {
		ready, next, err := d.store.ExpireWaits(d.base, time.Now())
		if err != nil && d.base.Err() == nil {
			d.log.Error("expired waits could not be looked for", "code", string(regie.CodeOf(err)), "error", err)
		}
		if len(ready) > 0 {
			fault.Point(fault.ExpireAfter)
		}
		for _, round := range ready {
			d.tryWakeUp(d.base, round.RoundID)
		}
		sleep := maxSleep
		if !next.IsZero() {
			sleep = min(maxSleep, max(0, time.Until(next)))
		}
		timer := time.NewTimer(sleep)
		select {
		case <-timer.C:
		case <-d.kick:
		case <-d.closing:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// wound tells the clock that there may be an earlier deadline now.
func (d *Dispatcher) wound() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}
