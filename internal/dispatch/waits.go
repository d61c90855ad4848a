package dispatch

import (
	"context"

	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// Resolve has settle store a person's word on what a round waits for, and goes on with the round
// once nothing is left to be said, also where whoever said it does not wait for that any more: else
// it would run again only with the next engine. With storeOnly it does not go on.
func (d *Dispatcher) Resolve(ctx context.Context, storeOnly bool,
	settle func(context.Context) (store.Resolved, error),
) (store.Resolved, error) {
	fault.Point(fault.DecideBefore)
	out, err := settle(ctx)
	if err != nil {
		return out, err
	}
	fault.Point(fault.DecideAfter)
	if out.Ready && !storeOnly {
		d.tryWakeUp(context.WithoutCancel(ctx), out.RoundID)
	}
	return out, nil
}
