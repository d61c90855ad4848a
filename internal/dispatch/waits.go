package dispatch

import (
	"context"

	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// Resolve runs settle, which stores a person's decision, and resumes the round once nothing is left
// to decide, even if the caller has gone: otherwise it would run only with the next engine. With
// storeOnly it does not resume it.
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
