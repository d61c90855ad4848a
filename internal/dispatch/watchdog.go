package dispatch

import (
	"context"
	"errors"
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
// anew. One timer runs while there are rounds to look at. Moments are measured by a clock that
// nobody sets.

const (
	// lookEvery is how often the watchdog looks, which is also how long a round has to obey it, its
	// tools' last words included, before it is taken from who does not.
	lookEvery = 15 * time.Second
	// stalled is how much later than it was set for a timer comes where the process itself stood:
	// then nobody here could do anything.
	stalled = 5 * time.Second
)

// watchdog is that of this process. All of it but the time is under the dispatcher's lock.
type watchdog struct {
	after time.Duration // 0: there is none
	began time.Time
	timer *time.Timer   // nil while there is nothing to look at
	looks time.Duration // when it comes, since the watchdog began
	// lost are the rounds that nobody works on since they stopped here without an end, with the
	// moment at which they have stood still for too long.
	lost map[regie.ID]time.Duration
}

// Watchdog has rounds stopped in which nothing has happened for so long; zero stops none. It is
// called before Start.
func (d *Dispatcher) Watchdog(after time.Duration) {
	d.watchdog = watchdog{after: after, began: time.Now(), lost: map[regie.ID]time.Duration{}}
}

// notePulse returns told that a round lives (engine.Pulse).
func (d *Dispatcher) notePulse(h *holding) engine.Pulse {
	if d.watchdog.after == 0 {
		return nil
	}
	return func(within time.Duration) {
		due := int64(time.Since(d.watchdog.began) + within + d.watchdog.after)
		for before := h.due.Load(); (within == 0 || before < due) && !h.given.Load(); before = h.due.Load() {
			if h.due.CompareAndSwap(before, due) {
				return
			}
		}
	}
}

// armWatchdog has the watchdog look around, if it does not already. The lock is held.
func (d *Dispatcher) armWatchdog() {
	if w := &d.watchdog; w.after > 0 && w.timer == nil && d.ended == nil {
		w.looks = time.Since(w.began) + lookEvery
		w.timer = time.AfterFunc(lookEvery, d.lookAround)
	}
}

// stoodStill notes a round that stopped here without an end: nobody works on it, and it is not
// over.
func (d *Dispatcher) stoodStill(round regie.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := &d.watchdog; w.after > 0 && w.lost[round] == 0 {
		w.lost[round] = time.Since(w.began) + w.after
		d.armWatchdog()
	}
}

// lookAround is the timer's: it finds the rounds in which nothing has happened for too long.
func (d *Dispatcher) lookAround() {
	d.mu.Lock()
	if d.ended != nil {
		d.mu.Unlock()
		return
	}
	d.wg.Add(1)
	defer d.wg.Done()
	w := &d.watchdog
	now := time.Since(w.began)
	late := now-w.looks > stalled
	var gone []regie.ID
	for round, h := range d.running {
		due := time.Duration(h.due.Load())
		switch {
		case late && !h.given.Load() && due > 0: // nothing could happen here, so it has its time anew
			h.due.Store(int64(max(due, now+w.after)))
		case due == 0, due > now: // 0: it is being claimed
		case h.given.Load():
			gone = append(gone, round)
		default:
			h.given.Store(true)
			h.due.Store(int64(now + lookEvery))
			h.cancel(engine.Stopped{Word: regie.StopWatchdog, Quiet: w.after})
			d.log.Warn("nothing happens in a run: it is stopped", "round", round.String(), "after", w.after.String())
		}
	}
	for round, due := range w.lost {
		if d.running[round] == nil && due <= now {
			gone = append(gone, round)
		}
		if d.running[round] != nil || due <= now { // somebody has taken it up, or it is ended now
			delete(w.lost, round)
		}
	}
	if w.timer = nil; len(d.running)+len(w.lost) > 0 {
		d.armWatchdog()
	}
	d.mu.Unlock()
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
		d.dropHolding(round, h)
		d.wg.Done()
	}
	now, err := d.store.Round(ctx, round)
	if err != nil || now.State != regie.RoundRunning || now.Stop == regie.StopPause {
		if err != nil {
			d.stoodStill(round)
		}
		return
	}
	h, err = d.reserveRound(round)
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
	d.startRound(claimed, h)
}
