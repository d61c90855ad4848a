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

// slotQueue starts queued rounds. Its fields are under the dispatcher's lock.
type slotQueue struct {
	d       *Dispatcher
	timer   *time.Timer // looks at the queues once a reservation is over, at looksAt
	looksAt time.Time
}

// startRounds starts the rounds that a free slot allows, and asks rounds to yield at their next
// exchange to a waiting chat. It looks at the owner of a session, or at all for the zero ID, and
// returns the rounds that now run here.
func (s *slotQueue) startRounds(ctx context.Context, session regie.ID) (started []regie.ID) {
	for range maxLooks {
		s.d.mu.Lock()
		ended := s.d.ended != nil
		s.d.mu.Unlock()
		if ended { // what waits is for the next engine
			return started
		}
		view, err := s.d.store.Queues(ctx, session)
		if err != nil {
			if s.d.base.Err() == nil {
				s.d.log.Warn("the queue of runs could not be looked at", "code", string(regie.CodeOf(err)),
					"error", err)
			}
			return started
		}
		for _, r := range view.Yield {
			s.askToYield(r.RoundID)
		}
		for _, r := range view.Queued { // one that was queued while it ran here lets go
			s.askToYield(r.RoundID)
		}
		s.lookAt(view.Until)
		again := false
		for _, r := range view.Start {
			left, err := s.startQueued(ctx, r.RoundID)
			switch again = again || left; {
			case err == nil:
				started = append(started, r.RoundID)
			case regie.CodeOf(err) != regie.CodeConflict:
				s.d.log.Warn("a queued run waits for the next engine", "round", r.RoundID.String(), "error", err)
			}
		}
		if len(view.Start)+len(view.Moved) > 0 {
			if view, err = s.d.store.Queues(ctx, session); err == nil && len(view.Moved) > 0 {
				err = s.d.store.TellPlaces(ctx, view.Moved)
			}
			if err != nil && s.d.base.Err() == nil {
				s.d.log.Warn("the places of queued runs could not be told", "code", string(regie.CodeOf(err)),
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
func (s *slotQueue) startQueued(ctx context.Context, id regie.ID) (left bool, err error) {
	round, err := s.d.store.Round(ctx, id)
	if err != nil {
		return false, err
	}
	if why := s.d.serves(round); why != nil {
		s.d.takeover.leaveAlone(id)
		if s.d.lease.leases != nil && !s.d.takeover.leftLong(id) { // another engine may
			return false, errHeld
		}
		s.d.log.Warn("a queued run is left as it is", "round", id.String(), "error", why)
		return true, errors.Join(errHeld, setAside(ctx, s.d, round, why))
	}
	h, err := s.d.reserveRound(id)
	if err != nil {
		return false, err
	}
	claimed, err := s.d.store.Claim(ctx, id, s.d.holder)
	if err != nil {
		s.d.letGo(ctx, id, h)
		return false, err
	}
	fault.Point(fault.QueueStartAfter)
	s.d.startRound(claimed, h)
	return false, nil
}

// freeSlot releases the slot of a round that this engine cannot continue, so that others can run.
// On a shared database another engine may continue it, so the release waits as long as the
// watchdog.
func freeSlot(ctx context.Context, d *Dispatcher, id regie.ID, why error) {
	if d.lease.leases != nil && !d.takeover.leftLong(id) {
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
func (t *takeover) leftLong(round regie.ID) bool {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	r, left := t.alone[round]
	return left && t.d.watchdog.after > 0 && time.Since(r.since) > t.d.watchdog.after
}

// askToYield has a round that runs here let another one go first, before its next model call.
func (s *slotQueue) askToYield(round regie.ID) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if h := s.d.running[round]; h != nil {
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

// lookAt looks at the queue again once a reservation is over.
func (s *slotQueue) lookAt(at time.Time) {
	if at.IsZero() {
		return
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.d.ended != nil || s.timer != nil && !at.Before(s.looksAt) && s.looksAt.After(time.Now()) {
		return // it looks before
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.looksAt = at
	s.timer = time.AfterFunc(time.Until(at)+time.Millisecond, func() {
		s.d.mu.Lock()
		ended := s.d.ended != nil
		if !ended {
			s.d.wg.Add(1)
		}
		s.d.mu.Unlock()
		if !ended {
			defer s.d.wg.Done()
			s.startRounds(context.WithoutCancel(s.d.base), regie.ID{})
		}
	})
}

// RequestControl answers what a round that the session started now would get, and reserves a free
// slot for it (spec 5.1, decision 43).
func (d *Dispatcher) RequestControl(ctx context.Context, session regie.ID, ask slot.Ask) (store.Controlled, error) {
	out, err := d.store.RequestControl(ctx, store.Control{SessionID: session, For: reserveFor, Ask: ask})
	if err == nil {
		d.slots.startRounds(context.WithoutCancel(ctx), session)
	}
	return out, err
}

// ReleaseControl gives back what RequestControl gave.
func (d *Dispatcher) ReleaseControl(ctx context.Context, session regie.ID) error {
	err := d.store.ReleaseControl(ctx, session)
	if err == nil {
		d.slots.startRounds(context.WithoutCancel(ctx), session)
	}
	return err
}
