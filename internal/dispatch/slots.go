package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
)

// Running rounds hold slots (spec 5.1, decision 21). The store decides who has one and who is
// queued; this file starts queued rounds. Both the one that frees a slot and the one that joins the
// queue look at the queue after the commit, so the later of the two sees both. After a crash the
// next start looks again, and on a shared database adoption does.

// reserveFor is how long a free slot is reserved for who has asked for control (decision 43).
const reserveFor = 30 * time.Second

// maxLooks bounds how often one look at the queues is made anew, where what could start does not go
// on here.
const maxLooks = 100

// lookAtQueues starts the rounds that a free slot allows, and asks rounds to yield at their next
// exchange to a waiting chat. It looks at the owner of a session, or at all for the zero ID, and
// returns the rounds that now run here.
func (d *Dispatcher) lookAtQueues(ctx context.Context, session regie.ID) (started []regie.ID) {
	for range maxLooks {
		d.mu.Lock()
		ended := d.ended != nil
		d.mu.Unlock()
		if ended { // what waits is for the next engine
			return started
		}
		view, err := d.store.Queues(ctx, session)
		if err != nil {
			if d.base.Err() == nil {
				d.log.Warn("the queue of runs could not be looked at", "code", string(regie.CodeOf(err)), "error", err)
			}
			return started
		}
		for _, r := range view.Yield {
			d.haveYield(r.RoundID)
		}
		for _, r := range view.Queued { // one that was queued while it ran here lets go
			d.haveYield(r.RoundID)
		}
		d.lookWhen(view.Until)
		again := false
		for _, r := range view.Start {
			left, err := d.startQueued(ctx, r.RoundID)
			switch again = again || left; {
			case err == nil:
				started = append(started, r.RoundID)
			case regie.CodeOf(err) != regie.CodeConflict:
				d.log.Warn("a queued run waits for the next engine", "round", r.RoundID.String(), "error", err)
			}
		}
		if len(view.Start)+len(view.Moved) > 0 {
			if view, err = d.store.Queues(ctx, session); err == nil && len(view.Moved) > 0 {
				err = d.store.TellPlaces(ctx, view.Moved)
			}
			if err != nil && d.base.Err() == nil {
				d.log.Warn("the places of queued runs could not be told", "code", string(regie.CodeOf(err)),
					"error", err)
			}
		}
		if !again {
			return started
		}
	}
	return started
}

// startQueued claims a queued round and runs it. It reports whether it left the queue without
// running, because this engine cannot go on with it: then the next one can start.
func (d *Dispatcher) startQueued(ctx context.Context, id regie.ID) (left bool, err error) {
	round, err := d.store.Round(ctx, id)
	if err != nil {
		return false, err
	}
	if why := d.serves(round); why != nil {
		d.leaveAlone(id)
		if d.leases != nil && !d.leftLong(id) { // another engine may
			return false, errHeld
		}
		d.log.Warn("a queued run is left as it is", "round", id.String(), "error", why)
		return true, errors.Join(errHeld, setAside(ctx, d, round, why))
	}
	h, err := d.reserveRound(id)
	if err != nil {
		return false, err
	}
	claimed, err := d.store.Claim(ctx, id, d.holder)
	if err != nil {
		d.letGo(ctx, id, h)
		return false, err
	}
	fault.Point(fault.QueueStartAfter)
	d.startRound(claimed, h)
	return false, nil
}

// freeSlot releases the slot of a round that this engine cannot continue, so that others can run.
// On a shared database another engine may continue it, so the release waits as long as the
// watchdog.
func freeSlot(ctx context.Context, d *Dispatcher, id regie.ID, why error) {
	if d.leases != nil && !d.leftLong(id) {
		return
	}
	round, err := d.store.Round(ctx, id)
	if err == nil {
		err = setAside(ctx, d, round, why)
	}
	if err != nil && d.base.Err() == nil && !errors.Is(err, store.ErrElsewhere) {
		d.log.Warn("the slot of a run that is left as it is could not be freed", "round", id.String(), "error", err)
	}
}

// leftLong reports whether a round was left alone here for longer than the watchdog has rounds
// stand still.
func (d *Dispatcher) leftLong(round regie.ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, left := d.alone[round]
	return left && d.watchdog.after > 0 && time.Since(r.since) > d.watchdog.after
}

// haveYield has a round that runs here let another one go first, before its next model call.
func (d *Dispatcher) haveYield(round regie.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.running[round]; h != nil {
		h.yields = true
	}
}

// Yields reports whether a running round has to let another one go first, for engine.Config. It
// looks again, because the other one may have gone by now.
func (d *Dispatcher) Yields(round regie.ID) bool {
	d.mu.Lock()
	h := d.running[round]
	if h == nil || !h.yields {
		d.mu.Unlock()
		return false
	}
	session := h.of
	h.yields = false
	d.mu.Unlock()
	view, err := d.store.Queues(context.WithoutCancel(d.base), session)
	if err != nil {
		return false
	}
	for _, r := range append(view.Yield, view.Queued...) {
		if r.RoundID == round {
			return true
		}
	}
	return false
}

// lookWhen looks at the queue again once a reservation is over.
func (d *Dispatcher) lookWhen(at time.Time) {
	if at.IsZero() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended != nil || d.looking != nil && !at.Before(d.looksAt) && d.looksAt.After(time.Now()) {
		return // it looks before
	}
	if d.looking != nil {
		d.looking.Stop()
	}
	d.looksAt = at
	d.looking = time.AfterFunc(time.Until(at)+time.Millisecond, func() {
		d.mu.Lock()
		ended := d.ended != nil
		if !ended {
			d.wg.Add(1)
		}
		d.mu.Unlock()
		if !ended {
			defer d.wg.Done()
			d.lookAtQueues(context.WithoutCancel(d.base), regie.ID{})
		}
	})
}

// RequestControl answers what a round that the session started now would get, and reserves a free
// slot for it (spec 5.1, decision 43).
func (d *Dispatcher) RequestControl(ctx context.Context, session regie.ID,
	kind regie.SessionType,
) (store.Controlled, error) {
	ask := slot.AskChat
	if kind == regie.SessionAutomation {
		ask = slot.AskManual
	}
	out, err := d.store.RequestControl(ctx, store.Control{SessionID: session, For: reserveFor, Ask: ask})
	if err == nil {
		d.lookAtQueues(context.WithoutCancel(ctx), session)
	}
	return out, err
}

// ReleaseControl gives back what RequestControl gave.
func (d *Dispatcher) ReleaseControl(ctx context.Context, session regie.ID) error {
	err := d.store.ReleaseControl(ctx, session)
	if err == nil {
		d.lookAtQueues(context.WithoutCancel(ctx), session)
	}
	return err
}
