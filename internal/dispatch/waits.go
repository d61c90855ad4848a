package dispatch

import (
	"context"

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

// resolved goes on with a round whose last answer is stored, also where whoever gave it does not
// wait for that any more: else it would run again only with the next engine.
func (d *Dispatcher) resolved(ctx context.Context, out store.Resolved, storeOnly bool) {
	if out.Ready && !storeOnly {
		d.tryWakeUp(context.WithoutCancel(ctx), out.RoundID)
	}
}
