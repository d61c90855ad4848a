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

// The watchdog (spec 5.1, decisions 43 and 44) stops rounds without progress. Each process looks at
// its own rounds, because only it knows what is under way: a round reports at each step that it
// lives, and how long a model or a tool may take by its own timeout. A waiting round has no holder
// and is not watched; another process takes up the rounds of a dead one, which begins the count
// anew. One timer runs while there are rounds to watch. Moments come from the monotonic clock.

const (
	// lookEvery is how often the watchdog looks, which is also how long a round has to obey it, its
	// tools' last words included, before it is taken from who does not.
	lookEvery = 15 * time.Second
	// stalled is the delay of a timer that shows that the process itself was suspended: no round
	// could make progress then.
	stalled = 5 * time.Second
)

// watchdog is that of this process. All of it but the time is under the dispatcher's lock.
type watchdog struct {
	d     *Dispatcher
	after time.Duration // 0: there is none
	began time.Time
	timer *time.Timer   // nil while there is nothing to look at
	looks time.Duration // when it comes, since the watchdog began
	// lost are the rounds that stopped here without an end, with the moment at which they have been
	// idle for too long.
	lost map[regie.ID]time.Duration
}

// Watchdog stops rounds without progress for so long; zero stops none. Call it before Start.
func (d *Dispatcher) Watchdog(after time.Duration) {
	d.watchdog = watchdog{d: d, after: after, began: time.Now(), lost: map[regie.ID]time.Duration{}}
}

// notePulse returns told that a round lives (engine.Pulse).
func (w *watchdog) notePulse(h *holding) engine.Pulse {
	if w.after == 0 {
		return nil
	}
	return func(within time.Duration) {
		due := int64(time.Since(w.began) + within + w.after)
		for before := h.due.Load(); (within == 0 || before < due) && !h.given.Load(); before = h.due.Load() {
			if h.due.CompareAndSwap(before, due) {
				return
			}
		}
	}
}

// arm has the watchdog look around, if it does not already. The lock is held.
func (w *watchdog) arm() {
	if w.after > 0 && w.timer == nil && w.d.ended == nil {
		w.looks = time.Since(w.began) + lookEvery
		w.timer = time.AfterFunc(lookEvery, w.lookAround)
	}
}

// noteLost notes a round that stopped here without an end: nothing works on it, and it is not
// over.
func (w *watchdog) noteLost(round regie.ID) {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	if w.after > 0 && w.lost[round] == 0 {
		w.lost[round] = time.Since(w.began) + w.after
		w.arm()
	}
}

// lookAround runs on the timer: it finds the rounds without progress for too long.
func (w *watchdog) lookAround() {
	w.d.mu.Lock()
	if w.d.ended != nil {
		w.d.mu.Unlock()
		return
	}
	w.d.wg.Add(1)
	defer w.d.wg.Done()
	now := time.Since(w.began)
	late := now-w.looks > stalled
	var gone []regie.ID
	for round, h := range w.d.running {
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
			w.d.log.Warn("nothing happens in a run: it is stopped", "round", round.String(), "after", w.after.String())
		}
	}
	for round, due := range w.lost {
		if w.d.running[round] == nil && due <= now {
			gone = append(gone, round)
		}
		if w.d.running[round] != nil || due <= now { // somebody has taken it up, or it is ended now
			delete(w.lost, round)
		}
	}
	if w.timer = nil; len(w.d.running)+len(w.lost) > 0 {
		w.arm()
	}
	w.d.mu.Unlock()
	for _, round := range gone {
		w.endQuiet(context.WithoutCancel(w.d.base), round)
	}
}

// endQuiet takes a round from a holder that does not obey, or takes up an abandoned one, to end it.
// The former holder cannot write any more (invariant 8).
func (w *watchdog) endQuiet(ctx context.Context, round regie.ID) {
	w.d.mu.Lock()
	h := w.d.running[round]
	if h != nil && (h.over || !h.given.Load()) { // it obeys after all, or is another one by now
		w.d.mu.Unlock()
		return
	}
	if h != nil {
		h.lost = true
	}
	w.d.mu.Unlock()
	if h != nil { // its goroutine is not waited for any more
		w.d.dropHolding(round, h)
		w.d.wg.Done()
	}
	now, err := w.d.store.Round(ctx, round)
	if err != nil || now.State != regie.RoundRunning || now.Stop == regie.StopPause {
		if err != nil {
			w.noteLost(round)
		}
		return
	}
	h, err = w.d.reserveRound(round)
	if err != nil { // somebody runs it by now
		return
	}
	h.cancel(engine.Stopped{Word: regie.StopWatchdog, Quiet: w.after})
	claimed, err := w.d.store.Claim(ctx, round, w.d.holder)
	if err != nil {
		w.d.letGo(ctx, round, h)
		if !errors.Is(err, store.ErrElsewhere) && !errors.Is(err, store.ErrQueued) &&
			regie.CodeOf(err) != regie.CodeConflict {
			w.d.log.Warn("a run in which nothing happens could not be ended yet", "round", round.String(), "code",
				string(regie.CodeOf(err)), "error", err)
			w.noteLost(round)
		}
		return
	}
	fault.Point(fault.ClaimAfter)
	w.d.log.Warn("nobody goes on with a run: it is ended", "round", round.String())
	w.d.startRound(claimed, h)
}
