package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
)

// Queue brings to this process what no holder has: rounds that are to go on, and the deadlines of
// waits. What it brings is a hint: the rows say what there is to do, so the same may come twice, or
// to two processes. One that several processes share brings each hint to one of them, and takes its
// jobs from the transactions of the store.
type Queue interface {
	// Start begins to bring, on goroutines of the queue, until Stop: to round, a round that may be
	// without a holder; and to overdue, that a deadline may have passed. overdue returns the next
	// one, zero where none is. Both return when there is nothing left to do.
	Start(ctx context.Context, round func(ctx context.Context, id regie.ID),
		overdue func(ctx context.Context) (next time.Time)) error
	// Parked tells that a round was parked here: there may be an earlier deadline now. It never
	// blocks.
	Parked()
	// Stop ends what Start began, and waits for it. It may be called again, and without Start.
	Stop()
}

// maxSleep bounds how long the clock sleeps: what it missed, it finds then.
const maxSleep = time.Minute

// clock is the Queue of a process with a store of its own: it watches the earliest deadline. Rounds
// without a holder exist only at the start of the process.
type clock struct {
	kick  chan struct{} // holds one token at most
	ends  chan struct{}
	once  sync.Once
	group sync.WaitGroup
}

func newClock() *clock { return &clock{kick: make(chan struct{}, 1), ends: make(chan struct{})} }

// Start implements Queue.
func (c *clock) Start(ctx context.Context, _ func(context.Context, regie.ID),
	overdue func(context.Context) time.Time,
) error {
	c.group.Go(func() {
		for {
			sleep := maxSleep
			if next := overdue(ctx); !next.IsZero() {
				sleep = min(maxSleep, max(0, time.Until(next)))
			}
			timer := time.NewTimer(sleep)
			select {
			case <-timer.C:
			case <-c.kick:
			case <-c.ends:
				timer.Stop()
				return
			}
			timer.Stop()
		}
	})
	return nil
}

// Parked implements Queue.
func (c *clock) Parked() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// Stop implements Queue.
func (c *clock) Stop() {
	c.once.Do(func() { close(c.ends) })
	c.group.Wait()
}

// endOverdue expires overdue waits and resumes their rounds (decision 11).
func (d *Dispatcher) endOverdue(ctx context.Context) (next time.Time) {
	ready, next, err := d.store.ExpireWaits(ctx, time.Now())
	if err != nil && ctx.Err() == nil && d.base.Err() == nil {
		d.log.Error("expired waits could not be looked for", "code", string(regie.CodeOf(err)), "error", err)
	}
	if len(ready) > 0 {
		fault.Point(fault.ExpireAfter)
	}
	for _, round := range ready {
		d.tryWakeUp(ctx, round.RoundID)
	}
	return next
}
