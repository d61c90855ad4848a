package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// SetAside takes a running round that no engine here can run out of the queue, so that other rounds
// can run. Without a notice it stays claimable like an orphan, and its next claim asks for a slot
// again. With a notice it waits for the settings of its provider (decision 54); at the deadline its
// session is paused. A round that does not run, is paused or is to be stopped then stays unchanged.
// SetAside returns store.ErrElsewhere where another holder's lease covers the round.
func (s roundStore) SetAside(ctx context.Context, in store.SetAside) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		r, err := t.holdRound(in.RoundID)
		if err != nil {
			return err
		}
		fence := r.fence
		if err := t.slots.mayClaim(fence.Chain, in.Holder); err != nil {
			return err
		}
		if in.Notice == nil {
			t.slots.giveSlot(fence.Chain)
			t.waits.deriveState(fence.SessionID, fence.Chain, now)
			return nil
		}
		if r.state != regie.RoundRunning || !r.paused.IsZero() || r.stop != "" {
			return nil
		}
		fence.Epoch++ // a former holder can no longer write
		t.exec("UPDATE sessions SET epoch = ? WHERE n = ?", fence.Epoch, fence.Chain)
		t.exec("UPDATE rounds SET epoch = ? WHERE id = ?", fence.Epoch, in.RoundID)
		t.money.releaseReservation(in.RoundID)
		t.appendEvent(fence.SessionID, fence.Chain, now, regie.EventNotice, in.Notice)
		t.waits.storeWait(fence, regie.NewID(), regie.WaitProvider, in.RoundID, in.Until, now)
		t.waits.parkRound(fence, now)
		return nil
	})
}

// ProviderWaits returns the rounds that wait for the settings of their provider and are not paused,
// the oldest first.
func (s roundStore) ProviderWaits(ctx context.Context) ([]regie.ID, error) {
	return queryAll(ctx, s.read, scanOne[regie.ID],
		`SELECT w.round_id FROM waits w JOIN sessions s ON s.n = w.session
		WHERE w.kind = 'PROVIDER' AND w.state = 'OPEN' AND s.paused_at IS NULL AND s.deleted_at IS NULL ORDER BY w.created_at, w.id`)
}

// Repin gives a round that waits or is paused another provider, model and settings, and logs it as
// a fallback. It returns CodeConflict for a round that runs or has ended.
func (s roundStore) Repin(ctx context.Context, round regie.ID, pin regie.Hash, told regie.Fallback) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		r, err := t.holdRound(round)
		if err != nil {
			return err
		}
		t.one(errRepin, `UPDATE rounds SET provider = ?, model = ?, agent_pin = ? WHERE id = ? AND (state = 'WAITING'
			OR state = 'RUNNING' AND (SELECT paused_at FROM sessions WHERE n = rounds.session) IS NOT NULL)`,
			told.Provider, told.Model, pin, round)
		t.exec("UPDATE exchanges SET provider = ?, model = ? WHERE round_id = ? AND state = 'OPEN'",
			told.Provider, told.Model, round)
		t.appendEvent(r.fence.SessionID, r.fence.Chain, now, regie.EventFallback, told)
		return nil
	})
}

var errRepin = regie.Errorf(regie.CodeConflict, "the run is not waiting: pause it before you change its provider")
