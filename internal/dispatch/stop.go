package dispatch

import (
	"context"
	"errors"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// Stop has a round obey a stopping word (decision 6): an interrupt ends it at its current exchange,
// a pause keeps anything new of it from starting until Resume, a stop ends it and closes its
// session. When it returns the word is durable; the round obeys soon after.
func (d *Dispatcher) Stop(ctx context.Context, round regie.ID, word regie.StopRequest) error {
	fault.Point(fault.StopBefore)
	session, err := d.store.RequestStop(ctx, round, word)
	if err != nil {
		return err
	}
	fault.Point(fault.StopAfter)
	ctx = context.WithoutCancel(ctx) // a word that is stored is obeyed
	if word == regie.StopPause {
		defer d.slots.startRounds(ctx, session) // its slot is free
	}
	for try := 1; ; try++ {
		if d.deliverStop(round, word) || word == regie.StopPause {
			return nil
		}
		// The round has no holder to obey, so this engine takes it up to end it.
		now, err := d.store.Round(ctx, round)
		if err != nil || now.State != regie.RoundRunning {
			return err
		}
		err = d.claimRound(ctx, round)
		switch {
		case errors.Is(err, store.ErrElsewhere): // its holder obeys: deliverStops, or its next step
			return nil
		case regie.CodeOf(err) != regie.CodeConflict, try == 10:
			return err
		} // it runs here by now, or its holder has ended it: that is looked at anew
	}
}

// endStopped ends a round that received a stop request after obeying a pause: it has no holder to
// obey.
func (d *Dispatcher) endStopped(round regie.ID, word regie.StopRequest) {
	ctx := context.WithoutCancel(d.base)
	now, err := d.store.Round(ctx, round)
	if err != nil || now.State != regie.RoundRunning || now.Stop != word {
		return
	}
	if err := d.claimRound(ctx, round); err != nil && !errors.Is(err, errHeld) && !errors.Is(err, store.ErrElsewhere) {
		d.log.Warn("a stopped run waits for the next engine to end it", "round", round.String(), "error", err)
	}
}
