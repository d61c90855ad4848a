package sqlite

import (
	"context"
	"database/sql"
	"errors"
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
	event, err := newEvent(regie.EventNotice, notice)
	if err != nil {
		return err
	}
	return s.writer.do(ctx, func(t *tx) error {
		t.hold(ByRound, round)
		fence := store.Fence{RoundID: round}
		var runs bool
		err := t.row(`SELECT s.id, s.n, s.epoch, r.state = 'RUNNING' AND s.paused_at IS NULL AND r.stop_request IS NULL
			FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = ?`, round).
			Scan(&fence.SessionID, &fence.Chain, &fence.Epoch, &runs)
		if errors.Is(err, sql.ErrNoRows) {
			return notFound("round", round)
		}
		if err != nil || !runs {
			return err
		}
		if err := t.slots.mayClaim(fence.Chain, holder); err != nil {
			return err
		}
		fence.Epoch++ // a former holder can no longer write
		if err := t.exec("UPDATE sessions SET epoch = ? WHERE n = ?", fence.Epoch, fence.Chain); err != nil {
			return err
		}
		if err := t.exec("UPDATE rounds SET epoch = ? WHERE id = ?", fence.Epoch, round); err != nil {
			return err
		}
		if err := t.money.unreserve(round); err != nil {
			return err
		}
		if _, err := t.appendEvents(fence.SessionID, fence.Chain, now, []logEvent{event}); err != nil {
			return err
		}
		if err := t.waits.wait(fence, regie.NewID(), regie.WaitProvider, round, until, now); err != nil {
			return err
		}
		_, err = t.waits.park(fence, now)
		return err
	})
}

// ProviderWaits returns the rounds that wait for the settings of their provider and are not paused,
// the oldest first.
func (s roundStore) ProviderWaits(ctx context.Context) (out []regie.ID, err error) {
	rows, err := s.read.QueryContext(ctx, `SELECT w.round_id FROM waits w JOIN sessions s ON s.n = w.session
		WHERE w.kind = 'PROVIDER' AND w.state = 'OPEN' AND s.paused_at IS NULL AND s.deleted_at IS NULL ORDER BY w.created_at, w.id`)
	if err != nil {
		return nil, explain(err, FileName)
	}
	defer rows.Close()
	for rows.Next() {
		var id regie.ID
		if err := rows.Scan(&id); err != nil {
			return nil, explain(err, FileName)
		}
		out = append(out, id)
	}
	return out, explain(rows.Err(), FileName)
}

// Repin gives a round that waits or is paused another provider, model and settings, and logs it as
// a fallback. It returns CodeConflict for a round that runs or has ended.
func (s roundStore) Repin(ctx context.Context, round regie.ID, pin regie.Hash, told regie.Fallback) error {
	now := time.Now().UTC()
	event, err := newEvent(regie.EventFallback, told)
	if err != nil {
		return err
	}
	return s.writer.do(ctx, func(t *tx) error {
		t.hold(ByRound, round)
		var session regie.ID
		var chain int64
		err := t.row("SELECT s.id, s.n FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = ?", round).
			Scan(&session, &chain)
		if errors.Is(err, sql.ErrNoRows) {
			return notFound("round", round)
		}
		if err != nil {
			return err
		}
		if err := t.one(errRepin, `UPDATE rounds SET provider = ?, model = ?, agent_pin = ? WHERE id = ? AND (state = 'WAITING'
			OR state = 'RUNNING' AND (SELECT paused_at FROM sessions WHERE n = rounds.session) IS NOT NULL)`,
			told.Provider, told.Model, pin, round); err != nil {
			return err
		}
		if err := t.exec("UPDATE exchanges SET provider = ?, model = ? WHERE round_id = ? AND state = 'OPEN'",
			told.Provider, told.Model, round); err != nil {
			return err
		}
		_, err = t.appendEvents(session, chain, now, []logEvent{event})
		return err
	})
}

var errRepin = regie.Errorf(regie.CodeConflict, "the run does not wait: pause it before it gets another provider")
