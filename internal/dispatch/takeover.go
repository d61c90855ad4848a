package dispatch

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

const (
	// adoptEvery is how often a process looks for what others have left, adoptAtOnce how many
	// rounds it takes up side by side: one that cannot be had for now must not keep the others.
	adoptEvery, adoptAtOnce = leaseTTL / 3, 8
	// A round that could not be taken up, or that stopped here without an end, is left alone for a
	// while, longer each time.
	firstRest, lastRest = 2 * time.Second, 10 * time.Minute
)

// leftAlone is how long a round is left alone.
type leftAlone struct {
	tries int
	until time.Time
	since time.Time // the first of them
}

// takeover resumes what other processes left. Its fields are under the dispatcher's lock.
type takeover struct {
	d       *Dispatcher
	undos   func(context.Context) error // ends those that were left in the middle
	undoing bool                        // it runs
	// by round: what this engine could not go on with, where other engines share the database
	alone map[regie.ID]leftAlone
}

// Undos registers the function that finishes undos of dead processes. Call it before Start, which
// runs finish before anything that could write the same files; it runs again at each look for
// orphans.
func (d *Dispatcher) Undos(finish func(context.Context) error) { d.takeover.undos = finish }

// finishUndos has undos finished that others left, one such look at a time.
func (t *takeover) finishUndos() {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	if t.d.ended != nil || t.undos == nil || t.undoing {
		return
	}
	t.undoing = true
	t.d.wg.Go(func() {
		if err := t.undos(t.d.base); err != nil && t.d.base.Err() == nil {
			t.d.log.Warn("an undo that was left in the middle is left as it is", "error", err)
		}
		t.d.mu.Lock()
		defer t.d.mu.Unlock()
		t.undoing = false
	})
}

// keepAdopting takes over what others left, until the dispatcher closes. What waits for one
// session's lock holds up nothing but this.
func (t *takeover) keepAdopting() {
	defer t.d.wg.Done()
	tick := time.NewTicker(adoptEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-t.d.closing:
			return
		case <-tick.C:
		}
		if n%3 == 0 { // what another process could not say any more before it died
			t.d.hub.Missed()
		}
		if t.d.Left() <= 0 { // nothing is taken up by who cannot keep it
			continue
		}
		t.finishUndos()
		if err := t.adoptOrphans(t.d.base); err != nil && t.d.base.Err() == nil {
			t.d.log.Warn("what other engines left could not be looked for", "error", err)
		}
	}
}

// adoptOrphans resumes running rounds without a holder: those of a dead process, or those that this
// one could not finish.
func (t *takeover) adoptOrphans(ctx context.Context) error {
	ran := t.d.runsHere() // asked before: what ends here between the two looks was not left by anybody
	found, err := t.d.store.Orphans(ctx, t.d.holder)
	if err != nil {
		return err
	}
	t.d.slots.startRounds(ctx, regie.ID{})
	left := t.dueRounds(found, ran)
	// the other engines look at the same ones
	rand.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	t.resumeRounds(ctx, left)
	t.d.ResumeProviderWaits(ctx)
	return nil
}

// resumeRounds resumes rounds without a holder, several at a time, and returns those that run here
// now, in order.
func (t *takeover) resumeRounds(ctx context.Context, rounds []regie.ID) (taken []regie.ID) {
	failures := make([]error, len(rounds))
	var group sync.WaitGroup
	free := make(chan struct{}, adoptAtOnce)
	for i, round := range rounds {
		select {
		case <-t.d.closing:
			failures[i] = errHeld
		case free <- struct{}{}:
			group.Go(func() {
				failures[i] = t.d.resumeRound(ctx, round)
				<-free
			})
		}
	}
	group.Wait()
	for i, err := range failures {
		switch {
		case err == nil:
			taken = append(taken, rounds[i])
			continue
		case errors.Is(err, errHeld), errors.Is(err, store.ErrElsewhere),
			errors.Is(err, store.ErrQueued), ctx.Err() != nil:
			continue
		case regie.CodeOf(err) == regie.CodeConflict && t.d.isResting(ctx, rounds[i]):
			// another engine was faster, and is done
			continue
		}
		if t.leaveAlone(rounds[i]) && !errors.Is(err, ErrNoProvider) { // then its session says so
			t.d.log.Warn("an interrupted run is left as it is", "round", rounds[i].String(), "error", err)
		}
		freeSlot(ctx, t.d, rounds[i], err)
	}
	return taken
}

// dueRounds returns the rounds of found that do not run here and are not left alone.
func (t *takeover) dueRounds(found []store.Orphan, ran map[regie.ID]bool) (out []regie.ID) {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	for _, orphan := range found {
		if !ran[orphan.RoundID] && time.Now().After(t.alone[orphan.RoundID].until) {
			out = append(out, orphan.RoundID)
		}
	}
	return out
}

// leaveAlone leaves a round alone for a while, and reports whether it was not before.
func (t *takeover) leaveAlone(round regie.ID) bool {
	if t.d.lease.leases == nil {
		return true
	}
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	r := t.alone[round]
	if r.since.IsZero() {
		r.since = time.Now()
	}
	r.until = time.Now().Add(min(firstRest<<min(r.tries, 16), lastRest))
	r.tries++
	t.alone[round] = r
	return r.tries == 1
}

// isResting reports whether a round needs no holder: it ended, waits or is paused.
func (d *Dispatcher) isResting(ctx context.Context, round regie.ID) bool {
	now, err := d.store.Round(ctx, round)
	return err == nil && (now.State != regie.RoundRunning || now.Stop == regie.StopPause)
}

// runsHere returns the rounds that this process holds.
func (d *Dispatcher) runsHere() map[regie.ID]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[regie.ID]bool, len(d.running))
	for round := range d.running {
		out[round] = true
	}
	return out
}
