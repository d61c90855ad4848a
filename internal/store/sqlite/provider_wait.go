package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// WaitForProvider parks a running round that no engine holds and whose provider's settings are not
// here (decision 54): with the notice, until the deadline, when its session is paused. A round that
// does not run, is paused or is to be stopped stays as it is. It returns store.ErrElsewhere where
// another holder's lease covers the round.
func (s roundStore) WaitForProvider(ctx context.Context, round regie.ID, holder string, notice regie.Notice,
	until time.Time,
) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		t.hold(ByRound, round)
		fence := store.Fence{RoundID: round}
		var runs bool
		err := t.row(`SELECT s.id, s.n, s.epoch, r.state = 'RUNNING' AND s.paused_at IS NULL AND r.stop_request IS NULL
			FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = ?`, round).
			Scan(&fence.SessionID, &fence.Chain, &fence.Epoch, &runs)
		if err != nil || !runs {
			return unlessFound(err, notFound("round", round))
		}
		if err := t.slots.mayClaim(fence.Chain, holder); err != nil {
			return err
		}
		fence.Epoch++ // a former holder can no longer write
		t.exec("UPDATE sessions SET epoch = ? WHERE n = ?", fence.Epoch, fence.Chain)
		t.exec("UPDATE rounds SET epoch = ? WHERE id = ?", fence.Epoch, round)
		t.money.unreserve(round)
		t.tell(fence.SessionID, fence.Chain, now, regie.EventNotice, notice)
		t.waits.wait(fence, regie.NewID(), regie.WaitProvider, round, until, now)
		t.waits.park(fence, now)
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
		t.hold(ByRound, round)
		var session regie.ID
		var chain int64
		err := t.row("SELECT s.id, s.n FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = ?", round).
			Scan(&session, &chain)
		if err != nil {
			return unlessFound(err, notFound("round", round))
		}
		t.one(errRepin, `UPDATE rounds SET provider = ?, model = ?, agent_pin = ? WHERE id = ? AND (state = 'WAITING'
			OR state = 'RUNNING' AND (SELECT paused_at FROM sessions WHERE n = rounds.session) IS NOT NULL)`,
			told.Provider, told.Model, pin, round)
		t.exec("UPDATE exchanges SET provider = ?, model = ? WHERE round_id = ? AND state = 'OPEN'",
			told.Provider, told.Model, round)
		t.tell(session, chain, now, regie.EventFallback, told)
		return nil
	})
}

var errRepin = regie.Errorf(regie.CodeConflict, "the run does not wait: pause it before it gets another provider")
