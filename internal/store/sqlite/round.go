package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Claim makes holder the one holder of a running round: the session's epoch rises, so that an
// earlier holder can no longer write (invariant 8). It returns the round as it stands. It counts as
// a resume where the holder before was another one that did not let go: a holder that the database
// went away from, and that takes its own round up again, has not died in it (spec 5.3). Of a
// session whose log somebody holds for more than a second it returns CodeDatabaseLocked: who claims
// many rounds goes on with the next one. Where no slot is free the round is queued, and it returns
// store.ErrQueued.
func (s roundStore) Claim(ctx context.Context, round regie.ID, holder string) (store.Claimed, error) {
	var fence store.Fence
	var before sql.NullString
	var queued bool
	err := s.writer.do(ctx, func(t *tx) error {
		fence, queued = store.Fence{RoundID: round}, false
		t.hurry()
		t.hold(ByRound, round)
		var state, session, kind, origin string
		var paused sql.NullInt64
		var stop sql.NullString
		var o owned
		err := t.row(`SELECT s.id, s.n, s.epoch, r.state, s.state, s.paused_at, s.lease_holder, r.stop_request, s.workspace_id, s.user_id, s.type, s.origin
			FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = ?`, round).
			Scan(&fence.SessionID, &fence.Chain, &fence.Epoch, &state, &session, &paused, &before, &stop,
				&o.workspace, &o.user, &kind, &origin)
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
		if err := t.slots.mayClaim(fence.Chain, holder); err != nil {
			return err
		}
		now := time.Now().UTC()
		if !stop.Valid { // one that is only to be ended needs none
			o.chain, o.kind = fence.Chain, kindOf(kind, origin)
			if queued, err = t.slots.claimSlot(o, now); err != nil || queued {
				return errOr(err, func() error { return t.waits.derive(fence.SessionID, fence.Chain, now) })
			}
		}
		if session == string(regie.SessionQueued) {
			if err := t.waits.tellState(fence.SessionID, fence.Chain, regie.SessionActive, now); err != nil {
				return err
			}
		}
		fence.Epoch++
		if err := t.exec("UPDATE sessions SET epoch = ?, lease_holder = ?, state = 'ACTIVE' WHERE n = ?", fence.Epoch,
			holder, fence.Chain); err != nil {
			return err
		}
		// Who released the round handed it over in good order; who did not may have been killed by
		// something in it (spec 5.3).
		if err = t.exec("UPDATE rounds SET epoch = ?, resumes = resumes + ? WHERE id = ?", fence.Epoch,
			flag(before.Valid && before.String != holder), round); err != nil {
			return err
		}
		return t.rounds.windUp(round, now)
	})
	if err == nil && queued {
		err = store.ErrQueued
	}
	if err != nil {
		return store.Claimed{}, err
	}
	claimed, err := s.load(ctx, fence)
	claimed.Resumed, claimed.Woken = before.Valid, true
	return claimed, err
}

// windUp lets a round's clock run on from its last stored step: while it waited, was paused, or its
// holder was dead, it stood.
func (t roundTx) windUp(round regie.ID, now time.Time) error {
	err := t.exec(`UPDATE rounds SET deadline = deadline + max(0, ? - (SELECT max(e.opened_at, coalesce(e.replied_at, 0),
				coalesce((SELECT max(w.created_at) FROM waits w WHERE w.round_id = rounds.id), 0),
				coalesce((SELECT max(c.settled_at) FROM calls c WHERE c.message_id = e.reply_id AND c.attempts > 0), 0))
			FROM exchanges e WHERE e.round_id = rounds.id AND e.number = rounds.exchange))
		WHERE id = ? AND deadline IS NOT NULL`, now.UnixMicro(), round)
	return err
}

// FailAttempt keeps a model call that brought no reply, and either opens its next attempt or ends
// the round (decision 28).
func (s roundStore) FailAttempt(ctx context.Context, fence store.Fence, in store.Failure) (store.Outcome, error) {
	now := time.Now().UTC()
	b := batch{fence: fence, now: now}
	if in.Message != nil {
		b.message(in.Message)
	}
	parks := !in.WaitUntil.IsZero() || in.Pause
	// spec 3.4: nobody notices
	unseen := in.Attempt.Purpose == regie.PurposeSummary || in.Attempt.Code == regie.CodeContextTooLarge &&
		in.Attempt.Partial == ""
	// What follows tells it all, where nobody has seen anything of it.
	quiet := parks || in.Fallback != nil
	if in.Retry != nil && !unseen && (!quiet || in.Attempt.Partial != "") {
		b.add(regie.EventStreamReset, resetEvent{
			RoundID: fence.RoundID, Exchange: in.Attempt.Exchange,
			Attempt: in.Attempt.Number, Code: in.Attempt.Code, Status: in.Attempt.Status,
			WaitMS: in.Delay.Milliseconds(),
		})
	}
	if in.Fallback != nil {
		b.add(regie.EventFallback, in.Fallback)
	}
	if in.Notice != nil {
		b.add(regie.EventNotice, in.Notice)
	}
	if in.Pause {
		b.add(regie.EventRound, roundEvent{RoundID: fence.RoundID, State: regie.RoundRunning, Stop: regie.StopPause})
	}
	if in.Advance != nil {
		b.end(in.Advance.End)
	}
	if b.err != nil {
		return store.Outcome{}, b.err
	}
	var out store.Outcome
	err := s.writer.do(ctx, func(t *tx) error {
		out = store.Outcome{}
		t.hold(ByChain, fence.Chain)
		money := in.Attempt.Money
		add := totals{
			tokens: in.Attempt.Usage.Input + in.Attempt.Usage.Output, cost: money.Booked(),
			released: money.Reserved, unknown: !money.Known,
		}
		if in.Advance != nil {
			if err := t.rounds.advance(fence, in.Advance, in.Attempt.Exchange, add, false, now); err != nil {
				return err
			}
		} else if err := t.rounds.mayWrite(fence, parks); err != nil {
			return err
		} else if err := t.money.addUp(fence, add, in.Retry.Reserved); err != nil {
			// an attempt that was cut counts towards limits too
			return err
		}
		if err := t.rounds.keepAttempt(fence, in, now); err != nil {
			return err
		}
		if err := b.store(t); err != nil {
			return err
		}
		if err := t.money.book(fence, add, now); err != nil {
			return err
		}
		if parks {
			if err := t.rounds.waitNetwork(fence, in, now); err != nil {
				return err
			}
		}
		return t.rounds.follow(fence, follows{advance: in.Advance, park: parks, closes: in.Advance != nil}, &out, now)
	})
	return out, err
}

// waitNetwork stores that a round waits for the network. What comes true at the deadline, the next
// attempt, is part of what is known of the outage. A paused session waits without a deadline: it
// goes on when somebody resumes it.
func (t roundTx) waitNetwork(fence store.Fence, in store.Failure, now time.Time) error {
	id := regie.NewID()
	if err := t.waits.wait(fence, id, regie.WaitNetwork, fence.RoundID, in.WaitUntil, now); err != nil {
		return err
	}
	if in.Outage != nil {
		outage, err := json.Marshal(in.Outage)
		if err != nil {
			return err
		}
		if err := t.exec("UPDATE waits SET fallback = ? WHERE id = ?", string(outage), id); err != nil {
			return err
		}
	}
	if !in.Pause {
		return nil
	}
	if err := t.exec("UPDATE rounds SET stop_request = 'PAUSE' WHERE id = ?", fence.RoundID); err != nil {
		return err
	}
	err := t.exec("UPDATE sessions SET paused_at = ? WHERE n = ?", now.UnixMicro(), fence.Chain)
	return err
}

// lastOutage returns what an exchange was waiting out last, nil for none: whoever resumed it by
// hand ended the one before.
func lastOutage(ctx context.Context, q querier, round regie.ID, exchange int) (outage *regie.Outage, err error) {
	var state regie.WaitState
	err = q.QueryRowContext(ctx,
		"SELECT state, fallback FROM waits WHERE round_id = ? AND kind = 'NETWORK' ORDER BY created_at DESC, id DESC LIMIT 1", round).
		Scan(&state, asJSON{&outage})
	if err != nil || outage == nil || state == regie.WaitResolved || outage.Exchange != exchange {
		return nil, unlessFound(err, nil)
	}
	return outage, nil
}

// resetEvent is the body of stream_reset: what had streamed is void, another attempt begins.
type resetEvent struct {
	RoundID  regie.ID   `json:"round_id"`
	Exchange int        `json:"exchange"`
	Attempt  int        `json:"attempt"` // the one that failed
	Code     regie.Code `json:"code"`
	Status   int        `json:"status,omitempty"`  // of HTTP
	WaitMS   int64      `json:"wait_ms,omitempty"` // until the next one
}

func (t roundTx) keepAttempt(fence store.Fence, in store.Failure, now time.Time) error {
	a := in.Attempt
	failed := func() error {
		return t.one(errNotOpen, `UPDATE exchanges SET state = 'FAILED', error = ?, first_seq = nullif(?, 0), last_seq = nullif(?, 0), request = ?
			WHERE round_id = ? AND number = ? AND attempt = ? AND state = 'OPEN'`, a.Error, a.FirstSeq, a.LastSeq, a.Request, fence.RoundID, a.Exchange, a.Number)
	}
	if in.Unasked {
		return failed()
	}
	var cost any
	if a.Money.Known {
		cost = a.Money.Cost
	}
	if err := t.one(errNotOpen, `INSERT INTO attempts (round_id, exchange, number, provider, model, code, error, partial, input_tokens, output_tokens,
			cache_write_tokens, cache_read_tokens, reasoning_tokens, reserved_microusd, cost_microusd, overrun_microusd, opened_at, ended_at, model_us,
			first_seq, last_seq, request, head, purpose)
		SELECT round_id, number, attempt, provider, model, ?, ?, ?, ?, ?, ?, ?, ?, reserved_microusd, ?, ?, opened_at, ?, ?,
			nullif(?, 0), nullif(?, 0), ?, ?, purpose
		FROM exchanges WHERE round_id = ? AND number = ? AND attempt = ? AND state = 'OPEN'`,
		string(a.Code), a.Error, a.Partial, a.Usage.Input, a.Usage.Output, a.Usage.CacheCreation,
		a.Usage.CacheRead, a.Usage.Reasoning,
		cost, a.Money.Overrun, now.UnixMicro(), a.ModelUS, a.FirstSeq, a.LastSeq, a.Request, a.Head,
		fence.RoundID, a.Exchange, a.Number); err != nil {
		return err
	}
	if in.Retry != nil {
		return t.one(errNotOpen, `UPDATE exchanges SET attempt = attempt + 1, reserved_microusd = ?, opened_at = ?,
			provider = coalesce(?, provider), model = coalesce(?, model) WHERE round_id = ? AND number = ? AND state = 'OPEN'`,
			in.Retry.Reserved, now.UnixMicro(), null(in.Retry.Provider),
			null(in.Retry.Model), fence.RoundID, a.Exchange)
	}
	return failed()
}

// RequestStop stores a stopping word; it is durable when this returns (decision 6). It is
// idempotent: a round that has ended, or that was asked already, stays as it is. It returns the
// session, so that the caller can tell its holder.
func (s roundStore) RequestStop(ctx context.Context, round regie.ID, word regie.StopRequest) (session regie.ID,
	err error,
) {
	now := time.Now().UTC()
	asked, err := newEvent(regie.EventRound, roundEvent{RoundID: round, State: regie.RoundRunning, Stop: word})
	if err != nil {
		return regie.ID{}, err
	}
	err = s.writer.do(ctx, func(t *tx) error {
		t.hold(ByRound, round)
		var chain int64
		var state string
		var earlier sql.NullString
		err := t.row(
			"SELECT s.id, s.n, r.state, r.stop_request FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = ?", round).
			Scan(&session, &chain, &state, &earlier)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return notFound("round", round)
		case err != nil:
			return err
		case state == "ENDED", !word.Stronger(regie.StopRequest(earlier.String)):
			return nil
		}
		if err := t.exec("UPDATE rounds SET stop_request = ? WHERE id = ?", string(word), round); err != nil {
			return err
		}
		if _, err := t.appendEvents(session, chain, now, []logEvent{asked}); err != nil {
			return err
		}
		if word == regie.StopPause {
			if err := t.exec("UPDATE sessions SET paused_at = ? WHERE n = ?", now.UnixMicro(), chain); err != nil {
				return err
			}
			// It starts nothing more, so others may.
			if err := t.slots.giveSlot(chain); err != nil {
				return err
			}
			return t.waits.derive(session, chain, now)
		}
		// Who interrupts a paused or waiting round wants it ended, and ending it is work for a
		// holder.
		if err := t.exec("UPDATE sessions SET paused_at = NULL WHERE n = ?", chain); err != nil {
			return err
		}
		if err := t.waits.withdraw(round, regie.NotRunInterrupted, "the run was stopped before anybody answered",
			now); err != nil {
			return err
		}
		// Nor does it wait for a slot.
		if err := t.exec("DELETE FROM slots WHERE session = ? AND state = 'QUEUED'", chain); err != nil {
			return err
		}
		// what waited for the round's end is given back at once, so that whoever stops it can be
		// told
		if word == regie.StopStop {
			waiting, err := t.pending.pendingOf(chain, false)
			if err == nil {
				err = t.pending.giveBack(store.Fence{SessionID: session, RoundID: round, Chain: chain}, waiting, now)
			}
			if err != nil {
				return err
			}
		}
		t.needsHolder(round, headStart)
		_, err = t.waits.wake(session, chain, round, now)
		return err
	})
	return session, err
}

// Resume takes a pause back; the round can be claimed again (decision 6). One that waits for the
// network, or for a tool's server, does not any longer: who resumes it wants it tried now. Resuming
// what neither is paused nor waits for that changes nothing.
func (s roundStore) Resume(ctx context.Context, round regie.ID) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		t.hold(ByRound, round)
		var chain int64
		var session regie.ID
		var paused sql.NullInt64
		err := t.row("SELECT s.id, s.n, s.paused_at FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = ?",
			round).Scan(&session, &chain, &paused)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return notFound("round", round)
		case err != nil:
			return err
		}
		tried, err := t.count(`UPDATE waits SET state = 'RESOLVED', resolution = 'tried at once', resolved_at = ?
			WHERE round_id = ? AND kind = 'NETWORK' AND state = 'OPEN'`, now.UnixMicro(), round)
		if err != nil || tried == 0 && !paused.Valid {
			return err
		}
		if paused.Valid {
			if err := t.exec(
				"UPDATE rounds SET stop_request = NULL WHERE id = ? AND stop_request = 'PAUSE' AND state <> 'ENDED'",
				round); err != nil {
				return err
			}
			if err := t.exec("UPDATE sessions SET paused_at = NULL WHERE n = ?", chain); err != nil {
				return err
			}
		}
		if tried == 0 {
			queued, err := t.slots.goesOn(chain, now)
			if err == nil && !queued {
				t.needsHolder(round, headStart)
			}
			return errOr(err, func() error { return t.waits.derive(session, chain, now) })
		}
		_, err = t.waits.wake(session, chain, round, now)
		return err
	})
}

// Release gives a round back without ending it: its holder shuts down or has obeyed a pause.
// Another may claim it. What is reserved for a model call that was not sent is given back too:
// whoever makes the call reserves anew.
func (s roundStore) Release(ctx context.Context, fence store.Fence) error {
	return s.writer.do(ctx, func(t *tx) error {
		t.hold(ByChain, fence.Chain)
		if err := t.rounds.mayWrite(fence, false); err != nil {
			return err
		}
		t.needsHolder(fence.RoundID, 0)
		if err := t.money.unreserve(fence.RoundID); err != nil {
			return err
		}
		err := t.exec("UPDATE sessions SET lease_holder = NULL, lease_until = NULL WHERE n = ? AND epoch = ?",
			fence.Chain, fence.Epoch)
		return err
	})
}

// Orphans returns the running rounds that are neither paused nor queued, oldest first. At the start
// of an engine each of them is an orphan: the engine lock says that no other holder lives
// (decisions 1 and 25).
func (s roundStore) Orphans(ctx context.Context) ([]store.Orphan, error) { return s.orphans(ctx, "") }

func (s roundStore) orphans(ctx context.Context, and string, args ...any) ([]store.Orphan, error) {
	return queryAll(ctx, s.read, func(row scanner, o *store.Orphan) error {
		return row.Scan(&o.SessionID, &o.RoundID, &o.Since)
	}, `SELECT s.id, r.id, r.started_at FROM rounds r JOIN sessions s ON s.n = r.session
		WHERE r.state <> 'ENDED' AND r.state = 'RUNNING' AND s.paused_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM slots q WHERE q.session = s.n AND q.state = 'QUEUED')`+and+` ORDER BY r.started_at, r.id`, args...)
}
