package dispatch

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/regie-run/regie/internal/engine"
)

// closeGrace is what actions that run may still take when the process ends (decision 6).
const closeGrace = 5 * time.Second

// Drain stops rounds at their next stored step without cutting anything, starts no more, and waits
// until none runs or ctx ends. New requests go to the next process; running rounds can still be
// followed and stopped. Call Close afterwards.
func (d *Dispatcher) Drain(ctx context.Context) {
	d.queue.Stop()
	d.mu.Lock()
	d.stopStarting(ErrGone)
	running := slices.Collect(maps.Values(d.running))
	d.mu.Unlock()
	d.engine.Drain()
	for _, h := range running {
		select {
		case <-h.done:
		case <-ctx.Done():
			return
		}
	}
}

// stopStarting has nothing more begin. d.mu is held.
func (d *Dispatcher) stopStarting(why error) {
	if d.ended == nil {
		d.ended = why
		if d.watchdog.timer != nil {
			d.watchdog.timer.Stop()
		}
		close(d.closing)
	}
}

// Close ends what runs here without losing anything: each round stops at its next stored step and
// can be resumed. Running actions get some seconds to finish. Close waits for them. Later callers
// get the error why.
func (d *Dispatcher) Close(why error) {
	d.queue.Stop() // first: what it would bring from now on is for another process
	d.mu.Lock()
	d.stopStarting(why)
	select {
	case <-d.closed:
	default:
		close(d.closed)
	}
	for _, h := range d.running {
		h.soften(engine.ErrShutdown)
	}
	d.mu.Unlock()
	grace := time.AfterFunc(closeGrace, func() { d.cancel(engine.ErrShutdown) })
	defer grace.Stop()
	d.wg.Wait()
	d.cancel(engine.ErrShutdown)
	d.mu.Lock()
	ends := d.lease.leases != nil && !d.lease.released
	d.lease.released = true
	d.mu.Unlock()
	if ends {
		d.lease.end()
	}
}

// Ended returns why nothing is started any more, or nil.
func (d *Dispatcher) Ended() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended
}
