package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// Claim makes holder the one holder of a running round. It raises the session's epoch, so that an
// earlier holder can no longer write (invariant 8), and returns the round.
//
// It counts as a resume where another holder did not release the round. A holder that lost the
// database and reclaims its own round has not died in it (spec 5.3). Claim returns
// CodeDatabaseLocked where the session's log stays locked for a second, so that its caller can go
// on to other rounds. Without a free slot it queues the round and returns store.ErrQueued.
func (s roundStore) Claim(ctx context.Context, round regie.ID, holder string) (store.Claimed, error) {
	var fence store.Fence
	var before string
	var queued bool
	err := s.writer.do(ctx, func(t *tx) error {
		t.hurryCommit()
		r, err := t.holdRound(round)
		fence, before, queued = r.fence, r.holder, false
		switch {
		case err != nil:
			return err
		case r.state != regie.RoundRunning:
			return regie.Errorf(regie.CodeConflict, "the round is not running, it is %s", r.state)
		case !r.paused.IsZero():
			return regie.Errorf(regie.CodeConflict, "the session is paused: resume it first")
		}
		if err := t.slots.mayClaim(fence.Chain, holder); err != nil {
			return err
		}
		now := time.Now().UTC()
		if r.stop == "" { // one that is only to be ended needs none
			if queued = t.slots.claimSlot(r.owned, now); queued {
				t.waits.deriveState(fence.SessionID, fence.Chain, now)
				return nil
			}
		}
		if r.session == regie.SessionQueued {
			t.waits.tellState(fence.SessionID, fence.Chain, regie.SessionActive, now)
		}
		fence.Epoch++
		t.exec("UPDATE sessions SET epoch = ?, lease_holder = ?, state = 'ACTIVE' WHERE n = ?", fence.Epoch,
			holder, fence.Chain)
		// An orderly release is no resume. Without it the holder may have been killed by something
		// in the round (spec 5.3).
		t.exec("UPDATE rounds SET epoch = ?, resumes = resumes + ? WHERE id = ?", fence.Epoch,
			boolToInt(before != "" && before != holder), round)
		t.rounds.windUp(round, now)
		return nil
	})
	if err == nil && queued {
		err = store.ErrQueued
	}
	if err != nil {
		return store.Claimed{}, err
	}
	claimed, err := s.loadClaimed(ctx, fence)
	claimed.Resumed, claimed.Woken = before != "", true
	return claimed, err
}

// windUp restarts a round's clock at its last stored step: it did not run while the round waited,
// was paused, or had a dead holder.
func (t roundTx) windUp(round regie.ID, now time.Time) {
	t.exec(`UPDATE rounds SET deadline = deadline + max(0, ? - (SELECT max(e.opened_at, coalesce(e.replied_at, 0),
				coalesce((SELECT max(w.created_at) FROM waits w WHERE w.round_id = rounds.id), 0),
				coalesce((SELECT max(c.settled_at) FROM calls c WHERE c.message_id = e.reply_id AND c.attempts > 0), 0))
			FROM exchanges e WHERE e.round_id = rounds.id AND e.number = rounds.exchange))
		WHERE id = ? AND deadline IS NOT NULL`, now.UnixMicro(), round)
}

// FailAttempt stores a model call without a reply, and either opens its next attempt or ends the
// round (decision 28).
func (s roundStore) FailAttempt(ctx context.Context, fence store.Fence, in store.Failure) (store.Outcome, error) {
	now := time.Now().UTC()
	b := batch{fence: fence, now: now}
	if in.Message != nil {
		b.addMessage(in.Message)
	}
	parks := !in.WaitUntil.IsZero() || in.Pause
	// spec 3.4: it is hidden from users
	unseen := in.Attempt.Purpose == regie.PurposeSummary || in.Attempt.Code == regie.CodeContextTooLarge &&
		in.Attempt.Partial == ""
	// Where no output was shown, the next event explains it.
	quiet := parks || in.Fallback != nil
	if in.Retry != nil && !unseen && (!quiet || in.Attempt.Partial != "") {
		b.addEvent(regie.EventStreamReset, resetEvent{
			RoundID: fence.RoundID, Exchange: in.Attempt.Exchange,
			Attempt: in.Attempt.Number, Code: in.Attempt.Code, Status: in.Attempt.Status,
			WaitMS: in.Delay.Milliseconds(),
		})
	}
	if in.Fallback != nil {
		b.addEvent(regie.EventFallback, in.Fallback)
	}
	if in.Notice != nil {
		b.addEvent(regie.EventNotice, in.Notice)
	}
	if in.Pause {
		b.addEvent(regie.EventRound, roundEvent{RoundID: fence.RoundID, State: regie.RoundRunning, Stop: regie.StopPause})
	}
	if in.Advance != nil {
		b.addEnd(in.Advance.End)
		if in.Attempt.Code == regie.CodeOverBudget && in.Advance.End != nil { // a cap ends the round of a chat
			b.events[len(b.events)-1].news = news{kind: regie.NotifyBudget, of: regie.SessionChat}
		}
	}
	return transition(ctx, s.writer, func(t *tx, out *store.Outcome) error {
		money := in.Attempt.Money
		add := totals{
			tokens: in.Attempt.Usage.Input + in.Attempt.Usage.Output, cost: money.Booked(),
			released: money.Reserved, unknown: !money.Known,
		}
		if in.Advance != nil {
			t.rounds.advanceRound(fence, in.Advance, in.Attempt.Exchange, add, false, now)
		} else {
			t.rounds.mayWrite(fence, parks)
			t.money.addUp(fence, add, in.Retry.Reserved) // an attempt that was cut counts towards limits too
		}
		t.rounds.keepAttempt(fence, in, now)
		b.writeBatch(t)
		t.money.bookCost(fence, add, now)
		if parks {
			t.rounds.waitNetwork(fence, in, now)
		}
		t.rounds.applyFollows(fence, follows{advance: in.Advance, park: parks, closes: in.Advance != nil}, out, now)
		return nil
	})
}

// waitNetwork stores that a round waits for the network. The outage includes the next attempt,
// which is due at the deadline. A paused session waits without a deadline, until a person resumes
// it.
func (t roundTx) waitNetwork(fence store.Fence, in store.Failure, now time.Time) {
	id := regie.NewID()
	t.waits.storeWait(fence, id, regie.WaitNetwork, fence.RoundID, in.WaitUntil, now)
	if in.Outage != nil {
		t.exec("UPDATE waits SET fallback = ? WHERE id = ?", asJSON{in.Outage}, id)
	}
	if !in.Pause {
		return
	}
	t.waits.pauseRound(fence.RoundID, fence.Chain, now)
}

// lastOutage returns the outage that an exchange last waited out, nil for none. A manual resume
// ends the outage before it.
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

// resetEvent is the body of stream_reset: the streamed output is void, another attempt begins.
type resetEvent struct {
	RoundID  regie.ID   `json:"round_id"`
	Exchange int        `json:"exchange"`
	Attempt  int        `json:"attempt"` // the one that failed
	Code     regie.Code `json:"code"`
	Status   int        `json:"status,omitempty"`  // of HTTP
	WaitMS   int64      `json:"wait_ms,omitempty"` // until the next one
}

func (t roundTx) keepAttempt(fence store.Fence, in store.Failure, now time.Time) {
	a := in.Attempt
	failed := func() {
		t.one(errNotOpen, `UPDATE exchanges SET state = 'FAILED', error = ?, first_seq = nullif(?, 0), last_seq = nullif(?, 0), request = ?
			WHERE round_id = ? AND number = ? AND attempt = ? AND state = 'OPEN'`, a.Error, a.FirstSeq, a.LastSeq, a.Request, fence.RoundID, a.Exchange, a.Number)
	}
	if in.Unasked {
		failed()
		return
	}
	var cost any
	if a.Money.Known {
		cost = a.Money.Cost
	}
	t.one(errNotOpen, `INSERT INTO attempts (round_id, exchange, number, provider, model, code, error, partial, input_tokens, output_tokens,
			cache_write_tokens, cache_read_tokens, reasoning_tokens, reserved_microusd, cost_microusd, overrun_microusd, opened_at, ended_at, model_us,
			first_seq, last_seq, request, head, purpose)
		SELECT round_id, number, attempt, provider, model, ?, ?, ?, ?, ?, ?, ?, ?, reserved_microusd, ?, ?, opened_at, ?, ?,
			nullif(?, 0), nullif(?, 0), ?, ?, purpose
		FROM exchanges WHERE round_id = ? AND number = ? AND attempt = ? AND state = 'OPEN'`,
		string(a.Code), a.Error, a.Partial, a.Usage.Input, a.Usage.Output, a.Usage.CacheCreation,
		a.Usage.CacheRead, a.Usage.Reasoning,
		cost, a.Money.Overrun, now.UnixMicro(), a.ModelUS, a.FirstSeq, a.LastSeq, a.Request, a.Head,
		fence.RoundID, a.Exchange, a.Number)
	if in.Retry != nil {
		t.one(errNotOpen, `UPDATE exchanges SET attempt = attempt + 1, reserved_microusd = ?, opened_at = ?,
			provider = coalesce(?, provider), model = coalesce(?, model) WHERE round_id = ? AND number = ? AND state = 'OPEN'`,
			in.Retry.Reserved, now.UnixMicro(), nullIfEmpty(in.Retry.Provider),
			nullIfEmpty(in.Retry.Model), fence.RoundID, a.Exchange)
		return
	}
	failed()
}

// RequestStop stores a stop request; it is durable when this returns (decision 6). It is
// idempotent: a round that has ended, or has the request already, stays unchanged. It returns the
// session, so that the caller can notify the holder.
func (s roundStore) RequestStop(ctx context.Context, round regie.ID, word regie.StopRequest) (session regie.ID,
	err error,
) {
	now := time.Now().UTC()
	err = s.writer.do(ctx, func(t *tx) error {
		r, err := t.holdRound(round)
		if session = r.fence.SessionID; err != nil || r.state == regie.RoundEnded || !word.Stronger(r.stop) {
			return err
		}
		chain := r.fence.Chain
		t.exec("UPDATE rounds SET stop_request = ? WHERE id = ?", string(word), round)
		t.appendEvent(session, chain, now, regie.EventRound,
			roundEvent{RoundID: round, State: regie.RoundRunning, Stop: word})
		if word == regie.StopPause {
			t.exec("UPDATE sessions SET paused_at = ? WHERE n = ?", now.UnixMicro(), chain)
			// The round starts nothing more, so another can have its slot.
			t.slots.giveSlot(chain)
			t.waits.deriveState(session, chain, now)
			return nil
		}
		// An interrupt ends a paused or waiting round, and that needs a holder.
		t.exec("UPDATE sessions SET paused_at = NULL WHERE n = ?", chain)
		t.waits.withdrawWaits(round, regie.NotRunInterrupted, "the run was stopped before anybody answered",
			now)
		// Ending needs no slot.
		t.exec("DELETE FROM slots WHERE session = ? AND state = 'QUEUED'", chain)
		// Messages that wait for the end of the round are withdrawn at once, so that the answer to
		// the stop can name them.
		if word == regie.StopStop {
			t.pending.giveBack(r.fence, t.pending.pendingOf(chain, false), now)
		}
		t.needsHolder(round, headStart)
		t.waits.wakeRound(session, chain, round, now)
		return nil
	})
	return session, err
}

// Resume ends a pause; the round can be claimed again (decision 6). It also ends a wait for the
// network or a tool's server: the next attempt comes at once. Resuming any other round changes
// nothing.
func (s roundStore) Resume(ctx context.Context, round regie.ID) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		r, err := t.holdRound(round)
		if err != nil {
			return err
		}
		session, chain := r.fence.SessionID, r.fence.Chain
		tried := t.count(`UPDATE waits SET state = 'RESOLVED', resolution = 'tried at once', resolved_at = ?
			WHERE round_id = ? AND kind IN ('NETWORK', 'PROVIDER') AND state = 'OPEN'`, now.UnixMicro(), round)
		if tried == 0 && r.paused.IsZero() {
			return nil
		}
		if !r.paused.IsZero() {
			t.exec(
				"UPDATE rounds SET stop_request = NULL WHERE id = ? AND stop_request = 'PAUSE' AND state <> 'ENDED'",
				round)
			t.exec("UPDATE sessions SET paused_at = NULL WHERE n = ?", chain)
		}
		if tried > 0 {
			t.waits.wakeRound(session, chain, round, now)
			return nil
		}
		if !t.slots.goesOn(chain, now) {
			t.needsHolder(round, headStart)
		}
		t.waits.deriveState(session, chain, now)
		return nil
	})
}

// Release gives up a round without ending it: its holder shuts down or obeys a pause. Another
// process may claim it. Release also frees the reservation of an unsent model call: the next holder
// reserves anew.
func (s roundStore) Release(ctx context.Context, fence store.Fence) error {
	return s.writer.do(ctx, func(t *tx) error {
		t.rounds.mayWrite(fence, false)
		t.needsHolder(fence.RoundID, 0)
		t.money.releaseReservation(fence.RoundID)
		t.exec("UPDATE sessions SET lease_holder = NULL, lease_until = NULL WHERE n = ? AND epoch = ?",
			fence.Chain, fence.Epoch)
		return nil
	})
}

// Orphans returns the running rounds that holder may claim, oldest first: those neither paused nor
// queued, and without another holder's lease. Some of them may run here. At the start of an engine
// over SQLite each of them is an orphan, because the engine lock excludes other holders (decisions
// 1 and 25).
func (s roundStore) Orphans(ctx context.Context, holder string) ([]store.Orphan, error) {
	free, args := "", []any{}
	if s.other != nil && !fault.Bug(fault.BugNoLease) {
		free, args = " AND NOT "+leased, []any{holder}
	}
	return queryAll(ctx, s.read, func(row scanner, o *store.Orphan) error {
		return row.Scan(&o.SessionID, &o.RoundID, &o.Since)
	}, `SELECT s.id, r.id, r.started_at FROM rounds r JOIN sessions s ON s.n = r.session
		WHERE r.state <> 'ENDED' AND r.state = 'RUNNING' AND s.paused_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM slots q WHERE q.session = s.n AND q.state = 'QUEUED')`+free+` ORDER BY r.started_at, r.id`, args...)
}

// SetLevel2 sets the present level 2 of the workspace for a round that was taken up (spec 6.1,
// decision 53); the zero hash means none. It returns CodeStale, and CodeStopRequested after a stop
// request.
func (s roundStore) SetLevel2(ctx context.Context, fence store.Fence, level2 regie.Hash) error {
	b := batch{fence: fence, now: time.Now().UTC()}
	b.addEvent(regie.EventLevels, regie.Levels{RoundID: fence.RoundID, Level2: level2})
	return s.writer.do(ctx, func(t *tx) error {
		t.rounds.mayWrite(fence, true)
		t.exec(`INSERT INTO former_levels (round_id, level2) SELECT id, level2 FROM rounds WHERE id = ? AND level2 IS NOT NULL
			ON CONFLICT DO NOTHING`, fence.RoundID)
		t.exec("UPDATE rounds SET level2 = ? WHERE id = ?", level2, fence.RoundID)
		b.writeBatch(t)
		return nil
	})
}
