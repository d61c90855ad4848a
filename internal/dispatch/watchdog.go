package dispatch

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// The watchdog (spec 5.1, decisions 43 and 44) stops rounds in which nothing happens any more. Each
// process looks at what runs there, because it alone knows what is under way: a round tells at each
// step that it lives, and for how long a model or a tool may take by its own timeout. What waits
// has no holder, so nobody looks at it; what a dead process left is taken up by others, and begins
// anew. One timer is armed for the earliest moment at which any round here could be due. Moments
// are measured by a clock that nobody sets.

const (
	// lostAfter is how long a round has to obey the watchdog, its tools' last words included,
	// before it is taken from who does not.
	lostAfter = 15 * time.Second
	// stalled is how much later than it was set for a timer comes where the process itself stood:
	// then nobody here could do anything.
	stalled = 5 * time.Second
	never   = time.Duration(math.MaxInt64)
)

// watchdog is that of this process. What is not said to be atomic is under the dispatcher's lock.
type watchdog struct {
	after time.Duration // 0: there is none
	began time.Time
	timer *time.Timer
	// lost are the rounds that nobody works on since they stopped here without an end, with the
	// moment at which they have stood still for too long.
	lost map[regie.ID]time.Duration
}

// Watchdog has rounds stopped in which nothing has happened for so long; zero stops none. It is
// called before Start.
func (d *Dispatcher) Watchdog(after time.Duration) {
	d.watchdog = watchdog{after: after, began: time.Now(), lost: map[regie.ID]time.Duration{}}
	d.watches.Store(int64(never))
}

// pulse is told that a round lives (engine.Pulse).
func (d *Dispatcher) pulse(h *holding) engine.Pulse {
	if d.watchdog.after == 0 {
		return nil
	}
	return func(within time.Duration) {
		due := time.Since(d.watchdog.began) + within + d.watchdog.after
		for {
			before := h.due.Load()
			if within > 0 && before >= int64(due) || h.given.Load() {
				return
			}
			if h.due.CompareAndSwap(before, int64(due)) {
				break
			}
		}
		if int64(due) < d.watches.Load() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.arm(due)
		}
	}
}

// arm has the watchdog look at a moment, unless it looks before. The lock is held.
func (d *Dispatcher) arm(due time.Duration) {
	if d.ended != nil || int64(due) >= d.watches.Load() {
		return
	}
	d.watches.Store(int64(due))
	if d.watchdog.timer != nil {
		d.watchdog.timer.Stop()
	}
	d.watchdog.timer = time.AfterFunc(due-time.Since(d.watchdog.began), d.lookAround)
}

// stoodStill notes a round that stopped here without an end: nobody works on it, and it is not
// over.
func (d *Dispatcher) stoodStill(round regie.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watchdog.after == 0 || d.watchdog.lost[round] != 0 {
		return
	}
	due := time.Since(d.watchdog.began) + d.watchdog.after
	d.watchdog.lost[round] = due
	d.arm(due)
}

// wentOn forgets it: the round has come to its end, or waits.
func (d *Dispatcher) wentOn(round regie.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.watchdog.lost, round)
}

// lookAround is the timer's: it finds the rounds in which nothing has happened for too long, and
// arms itself for the next one.
func (d *Dispatcher) lookAround() {
	d.mu.Lock()
	if d.ended != nil {
		d.mu.Unlock()
		return
	}
	d.wg.Add(1)
	defer d.wg.Done()
	now := time.Since(d.watchdog.began)
	late := now-time.Duration(d.watches.Load()) > stalled
	d.watches.Store(int64(never))
	var quiet, gone []regie.ID
	for round, h := range d.running {
		due := time.Duration(h.due.Load())
		switch {
		case due == 0: // it is being claimed
		case late && !h.given.Load(): // nothing could happen here, so it has its time anew
			h.due.Store(int64(max(due, now+d.watchdog.after)))
			d.arm(now + d.watchdog.after)
		case due > now:
			d.arm(due)
		case h.given.Load():
			gone = append(gone, round)
		default:
			h.given.Store(true)
			h.due.Store(int64(now + lostAfter))
			d.arm(now + lostAfter)
			h.cancel(engine.Stopped{Word: regie.StopWatchdog, Quiet: d.watchdog.after})
			quiet = append(quiet, round)
		}
	}
	for round, due := range d.watchdog.lost {
		switch {
		case d.running[round] != nil: // somebody has taken it up
			delete(d.watchdog.lost, round)
		case due > now:
			d.arm(due)
		default:
			delete(d.watchdog.lost, round)
			gone = append(gone, round)
		}
	}
	d.mu.Unlock()
	for _, round := range quiet {
		d.log.Warn("nothing happens in a run: it is stopped", "round", round.String(),
			"after", d.watchdog.after.String())
	}
	for _, round := range gone {
		d.endQuiet(context.WithoutCancel(d.base), round)
	}
}

// endQuiet takes a round from whoever does not obey, or up from where it was left, to end it. Who
// had it cannot write any more (invariant 8).
func (d *Dispatcher) endQuiet(ctx context.Context, round regie.ID) {
	d.mu.Lock()
	h := d.running[round]
	if h != nil && (h.over || !h.given.Load()) { // it obeys after all, or is another one by now
		d.mu.Unlock()
		return
	}
	if h != nil {
		h.lost = true
	}
	d.mu.Unlock()
	if h != nil { // its goroutine is not waited for any more
		d.drop(round, h)
		d.wg.Done()
	}
	now, err := d.store.Round(ctx, round)
	if err != nil || now.State != regie.RoundRunning || now.Stop == regie.StopPause {
		if err != nil {
			d.stoodStill(round)
		}
		return
	}
	h, err = d.reserve(round)
	if err != nil { // somebody runs it by now
		return
	}
	h.cancel(engine.Stopped{Word: regie.StopWatchdog, Quiet: d.watchdog.after})
	claimed, err := d.store.Claim(ctx, round, d.holder)
	if err != nil {
		d.letGo(ctx, round, h)
		if !errors.Is(err, store.ErrElsewhere) && !errors.Is(err, store.ErrQueued) &&
			regie.CodeOf(err) != regie.CodeConflict {
			d.log.Warn("a run in which nothing happens could not be ended yet", "round", round.String(), "code",
				string(regie.CodeOf(err)), "error", err)
			d.stoodStill(round)
		}
		return
	}
	fault.Point(fault.ClaimAfter)
	d.log.Warn("nobody goes on with a run: it is ended", "round", round.String())
	d.start(claimed, h)
}
