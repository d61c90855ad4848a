package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Claim makes holder the one holder of a running round: the session's epoch rises, so that an earlier holder can no longer write
// (invariant 8). It returns the round as it stands. It counts as a resume.
func (s *Store) Claim(ctx context.Context, round regie.ID, holder string) (store.Claimed, error) {
	var fence store.Fence
	var held bool
	err := s.writer.do(ctx, func(t *tx) error {
		fence = store.Fence{RoundID: round}
		var state string
		var paused sql.NullInt64
		err := t.row(`SELECT s.id, s.n, s.epoch, r.state, s.paused_at, s.lease_holder IS NOT NULL FROM rounds r JOIN sessions s ON s.n = r.session
			WHERE r.id = ?`, round).Scan(&fence.SessionID, &fence.Chain, &fence.Epoch, &state, &paused, &held)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return notFound("round", round)
		case err != nil:
			return err
		case state != "RUNNING":
			return regie.Errorf(regie.CodeConflict, "the round is not running, it is %s", state)
		case paused.Valid:
			return regie.Errorf(regie.CodeConflict, "the session is paused: resume it first")
		}
		fence.Epoch++
		if _, err := t.exec("UPDATE sessions SET epoch = ?, lease_holder = ?, state = 'ACTIVE' WHERE n = ?", fence.Epoch, holder, fence.Chain); err != nil {
			return err
		}
		// Who released the round handed it over in good order; who did not may have been killed by something in it (spec 5.3).
		_, err = t.exec("UPDATE rounds SET epoch = ?, resumes = resumes + ? WHERE id = ?", fence.Epoch, flag(held), round)
		return err
	})
	if err != nil {
		return store.Claimed{}, err
	}
	claimed, err := s.load(ctx, fence)
	claimed.Resumed = held
	return claimed, err
}

// FailAttempt keeps a model call that brought no reply, and either opens its next attempt or ends the round (decision 28).
func (s *Store) FailAttempt(ctx context.Context, fence store.Fence, in store.Failure) (store.Outcome, error) {
	now := time.Now().UTC()
	b := batch{fence: fence, now: now}
	if in.Message != nil {
		b.message(in.Message)
	}
	if in.Retry != nil {
		b.add(regie.EventStreamReset, resetEvent{RoundID: fence.RoundID, Exchange: in.Attempt.Exchange, Attempt: in.Attempt.Number, Code: in.Attempt.Code})
	}
	if in.Advance != nil {
		b.end(in.Advance.End)
	}
	if b.err != nil {
		return store.Outcome{}, b.err
	}
	parks := !in.WaitUntil.IsZero()
	var out store.Outcome
	err := s.writer.do(ctx, func(t *tx) error {
		out = store.Outcome{}
		if in.Advance != nil {
			money := in.Attempt.Money
			add := totals{tokens: in.Attempt.Usage.Input + in.Attempt.Usage.Output, cost: money.Cost, released: money.Reserved}
			if err := t.advance(fence, in.Advance, in.Attempt.Exchange, add, false, now); err != nil {
				return err
			}
		} else if err := t.mayWrite(fence, parks); err != nil {
			return err
		}
		if err := t.keepAttempt(fence, in, now); err != nil {
			return err
		}
		if err := b.store(t); err != nil {
			return err
		}
		if parks {
			if err := t.wait(fence, regie.NewID(), regie.WaitNetwork, fence.RoundID, in.WaitUntil, now); err != nil {
				return err
			}
		}
		return t.follow(fence, follows{advance: in.Advance, park: parks}, &out, now)
	})
	return out, err
}

// resetEvent is the body of stream_reset: what had streamed is void, another attempt begins.
type resetEvent struct {
	RoundID  regie.ID   `json:"round_id"`
	Exchange int        `json:"exchange"`
	Attempt  int        `json:"attempt"` // the one that failed
	Code     regie.Code `json:"code"`
}

func (t *tx) keepAttempt(fence store.Fence, in store.Failure, now time.Time) error {
	a := in.Attempt
	var cost any
	if a.Money.Known {
		cost = a.Money.Cost
	}
	if err := t.one(errNotOpen, `INSERT INTO attempts (round_id, exchange, number, provider, model, code, error, partial, input_tokens, output_tokens,
			cache_write_tokens, cache_read_tokens, reasoning_tokens, reserved_microusd, cost_microusd, overrun_microusd, opened_at, ended_at, model_us)
		SELECT round_id, number, attempt, provider, model, ?, ?, ?, ?, ?, ?, ?, ?, reserved_microusd, ?, ?, opened_at, ?, ?
		FROM exchanges WHERE round_id = ? AND number = ? AND attempt = ? AND state = 'OPEN'`,
		string(a.Code), a.Error, a.Partial, a.Usage.Input, a.Usage.Output, a.Usage.CacheCreation, a.Usage.CacheRead, a.Usage.Reasoning,
		cost, a.Money.Overrun, now.UnixMicro(), a.ModelUS, fence.RoundID, a.Exchange, a.Number); err != nil {
		return err
	}
	if in.Retry != nil {
		return t.one(errNotOpen, `UPDATE exchanges SET attempt = attempt + 1, reserved_microusd = ?, opened_at = ?
			WHERE round_id = ? AND number = ? AND state = 'OPEN'`, in.Retry.Reserved, now.UnixMicro(), fence.RoundID, a.Exchange)
	}
	return t.one(errNotOpen, "UPDATE exchanges SET state = 'FAILED', error = ? WHERE round_id = ? AND number = ? AND state = 'OPEN'",
		a.Error, fence.RoundID, a.Exchange)
}

// RequestStop stores a stopping word; it is durable when this returns (decision 6). It is idempotent: a round that has ended, or
// that was asked already, stays as it is. It returns the session, so that the caller can tell its holder.
func (s *Store) RequestStop(ctx context.Context, round regie.ID, word regie.StopRequest) (session regie.ID, err error) {
	now := time.Now().UTC()
	asked, err := newEvent(regie.EventRound, roundEvent{RoundID: round, State: regie.RoundRunning, Stop: word})
	if err != nil {
		return regie.ID{}, err
	}
	err = s.writer.do(ctx, func(t *tx) error {
		var chain int64
		var state string
		var earlier sql.NullString
		err := t.row("SELECT s.id, s.n, r.state, r.stop_request FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = ?", round).
			Scan(&session, &chain, &state, &earlier)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return notFound("round", round)
		case err != nil:
			return err
		case state == "ENDED", !word.Stronger(regie.StopRequest(earlier.String)):
			return nil
		}
		if _, err := t.exec("UPDATE rounds SET stop_request = ? WHERE id = ?", string(word), round); err != nil {
			return err
		}
		if _, err := t.appendEvents(session, chain, now, []logEvent{asked}); err != nil {
			return err
		}
		if word == regie.StopPause {
			if _, err := t.exec("UPDATE sessions SET paused_at = ? WHERE n = ?", now.UnixMicro(), chain); err != nil {
				return err
			}
			return t.derive(session, chain, now)
		}
		// Who interrupts a paused or waiting round wants it ended, and ending it is work for a holder.
		if _, err := t.exec("UPDATE sessions SET paused_at = NULL WHERE n = ?", chain); err != nil {
			return err
		}
		if err := t.withdraw(round, regie.NotRunInterrupted, "the run was stopped before anybody answered", now); err != nil {
			return err
		}
		_, err = t.wake(session, chain, round, now)
		return err
	})
	return session, err
}

// Resume takes a pause back; the round can be claimed again (decision 6). Resuming what is not paused changes nothing.
func (s *Store) Resume(ctx context.Context, round regie.ID) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		var chain int64
		var session regie.ID
		var paused sql.NullInt64
		err := t.row("SELECT s.id, s.n, s.paused_at FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = ?", round).Scan(&session, &chain, &paused)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return notFound("round", round)
		case err != nil || !paused.Valid:
			return err
		}
		if _, err := t.exec("UPDATE rounds SET stop_request = NULL WHERE id = ? AND stop_request = 'PAUSE'", round); err != nil {
			return err
		}
		if _, err := t.exec("UPDATE sessions SET paused_at = NULL WHERE n = ?", chain); err != nil {
			return err
		}
		return t.derive(session, chain, now)
	})
}

// Release gives a round back without ending it: its holder shuts down or has obeyed a pause. Another may claim it.
func (s *Store) Release(ctx context.Context, fence store.Fence) error {
	return s.writer.do(ctx, func(t *tx) error {
		if err := t.mayWrite(fence, false); err != nil {
			return err
		}
		_, err := t.exec("UPDATE sessions SET lease_holder = NULL, lease_until = NULL WHERE n = ? AND epoch = ?", fence.Chain, fence.Epoch)
		return err
	})
}

// Orphans returns the running rounds that are not paused, oldest first. At the start of an engine each of them is an orphan:
// the engine lock says that no other holder lives (decisions 1 and 25).
func (s *Store) Orphans(ctx context.Context) ([]store.Orphan, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT s.id, r.id, r.started_at FROM rounds r JOIN sessions s ON s.n = r.session
		WHERE r.state <> 'ENDED' AND r.state = 'RUNNING' AND s.paused_at IS NULL ORDER BY r.started_at, r.id`)
	if err != nil {
		return nil, explain(err, FileName)
	}
	defer rows.Close()
	var orphans []store.Orphan
	for rows.Next() {
		var o store.Orphan
		var since int64
		if err := rows.Scan(&o.SessionID, &o.RoundID, &since); err != nil {
			return nil, explain(err, FileName)
		}
		o.Since = fromMicros(since)
		orphans = append(orphans, o)
	}
	return orphans, explain(rows.Err(), FileName)
}
