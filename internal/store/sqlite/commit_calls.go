package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// CommitCalls stores results and the intent of the next action. A message closes the batch and
// moves the round on (decision 4). It returns CodeStale, CodeStopRequested, or CodeConflict for a
// settled call.
func (s roundStore) CommitCalls(ctx context.Context, fence store.Fence, in store.Settle) (store.Outcome, error) {
	now := time.Now().UTC()
	b := batch{fence: fence, now: now}
	for i := range in.Settled {
		b.addSettled(&in.Settled[i])
	}
	if in.Start != nil {
		b.addStarted(in.Start)
	}
	b.addAsked(in.Ask, func(id regie.ID) *regie.Call { return &regie.Call{ID: id, Exchange: in.Exchange} })
	if in.Plan != nil {
		b.addEvent(regie.EventPlan, planEvent{RoundID: fence.RoundID, Plan: in.Plan})
	}
	if in.Message != nil {
		b.addMessage(in.Message)
	}
	if in.Post != nil {
		b.addMessage(in.Post)
	}
	if in.Advance != nil {
		b.addEnd(in.Advance.End)
	}
	return transition(ctx, s.writer, func(t *tx, out *store.Outcome) error {
		t.rounds.checkFence(fence, in, now)
		for i := range in.Settled {
			t.rounds.settleCall(&in.Settled[i], now)
		}
		t.rounds.noteFlow(fence.Chain, in.Settled)
		if in.Start != nil {
			t.one(errNotProposed, `UPDATE calls SET state = 'STARTED', intent = ?, attempts = attempts + 1, started_at = ?
				WHERE id = ? AND state IN ('PROPOSED', 'APPROVED')`, nullIfEmpty(string(in.Start.Intent)), now.UnixMicro(), in.Start.ID)
		}
		b.writeBatch(t)
		t.rounds.applyFollows(fence, follows{
			ask: in.Ask, approval: b.askingSeq(), park: in.Park, exchange: in.Exchange,
			advance: in.Advance, closes: in.Message != nil,
		}, out, now)
		return nil
	})
}

// planEvent is the body of a plan event.
type planEvent struct {
	RoundID regie.ID        `json:"round_id"`
	Plan    json.RawMessage `json:"plan"`
}

var (
	errNotProposed = regie.Errorf(regie.CodeConflict, "the call is not ready to start")
	errSettled     = regie.Errorf(regie.CodeConflict, "the call already has its result")
)

// checkFence checks that the holder may still write; it moves the round where the batch is closed.
func (t roundTx) checkFence(fence store.Fence, in store.Settle, now time.Time) {
	if in.Advance != nil {
		t.advanceRound(fence, in.Advance, in.Exchange, totals{}, startsWork(in), now)
		return
	}
	t.mayWrite(fence, startsWork(in))
}

func (t roundTx) settleCall(c *regie.Call, now time.Time) {
	if c.ResultLost > 0 { // an unstored result keeps its hash and size
		t.exec(
			"INSERT INTO blobs (hash, size, data, created_at) VALUES (?, ?, NULL, ?) ON CONFLICT (hash) DO NOTHING",
			c.ResultBlob, c.ResultLost, now.UnixMicro())
	}
	t.one(errSettled, `UPDATE calls SET state = ?, code = ?, result = ?, error = ?, result_blob = ?, recovered = ?, duration_us = ?, attempts = max(attempts, ?), settled_at = ?,
			executed = coalesce(?, executed), changed = ?
		WHERE id = ? AND settled_at IS NULL`,
		string(c.State), nullIfEmpty(c.NotRun), callResult(c), asJSON{c.Error}, c.ResultBlob, boolToInt(c.Recovered), c.DurationUS, c.Attempts,
		now.UnixMicro(), nullIfEmpty(string(c.Executed)),
		nullIfEmpty(string(c.Changed)), c.ID)
}

// totals is a transition's change of its round's sums and reservation.
type totals struct {
	tokens, cost, released int64
	unknown                bool // a call of unknown cost
}

// advanceRound moves the round. It is the first statement of its transition, so that a refused one
// has written nothing. starts says that the transition also starts a call.
func (t roundTx) advanceRound(fence store.Fence, to *store.Advance, exchange int, add totals, starts bool,
	now time.Time,
) {
	t.holdRow(ByChain, fence.Chain)
	fence = t.slots.dropFence(fence)
	var reserved int64
	if to.Open != nil {
		exchange, reserved = to.Open.Number, to.Open.Reserved
	}
	var end store.End
	var state, reason, ended any
	if to.End != nil {
		end, state, reason, ended = *to.End, "ENDED", string(to.End.Reason), now.UnixMicro()
	}
	// After a stop request only its own end passes; after a pause, everything that starts nothing
	// (decision 6).
	passes := boolToInt(to.End != nil || !starts)
	if t.count(`UPDATE rounds SET state = coalesce(?, state), end_reason = ?, end_note = ?, ended_at = ?,
			spent_microusd = spent_microusd + ?, reserved_microusd = max(0, reserved_microusd - ? + ?), phase = ?, exchange = ?,
			total = ?, queries = ?, retries = ?, format_errors = ?, resumes = ?, tokens = tokens + ?
		WHERE id = ? AND epoch = ? AND state = 'RUNNING' AND (stop_request IS NULL OR stop_request = 'PAUSE' AND ? = 1
			OR ? = 'STOPPED' OR stop_request = 'INTERRUPT' AND ? = 'INTERRUPTED')`,
		state, reason, end.Note, ended, add.cost, add.released, reserved, string(to.Phase), exchange,
		to.Counters.Total, to.Counters.Queries, to.Counters.Retries, to.Counters.FormatErrors, to.Counters.Resumes,
		add.tokens, fence.RoundID, fence.Epoch, passes, string(end.Reason), string(end.Reason)) != 1 {
		t.mayWrite(fence, true)
		t.fail(regie.Errorf(regie.CodeConflict, "the round cannot advance"))
	}
}

var errStale = regie.Errorf(regie.CodeStale, "another process has taken this session over")

// mayWrite fails the transition where the fence is stale, the round does not run, or a stop was
// requested. A pause refuses only transitions with starts.
func (t roundTx) mayWrite(fence store.Fence, starts bool) {
	t.holdRow(ByChain, fence.Chain)
	fence = t.slots.dropFence(fence)
	var epoch int64
	var state regie.RoundState
	var stop regie.StopRequest
	err := t.row("SELECT epoch, state, stop_request FROM rounds WHERE id = ?",
		fence.RoundID).Scan(&epoch, &state, &stop)
	switch {
	case err != nil:
		t.fail(unlessFound(err, notFound("round", fence.RoundID)))
	case epoch != fence.Epoch:
		t.fail(errStale)
	case state != regie.RoundRunning:
		t.fail(regie.Errorf(regie.CodeConflict, "the round is not running, it is %s", state))
	case stop != "" && (starts || stop != regie.StopPause):
		t.fail(regie.Errorf(regie.CodeStopRequested, "the round was asked to stop (%s)", stop))
	}
}

// startsWork reports whether a transition starts something, which a stop request refuses.
func startsWork(in store.Settle) bool { return in.Start != nil || in.Ask != nil || in.Park }

// follows describes the rest of a transition, behind its results.
type follows struct {
	ask      *store.Asked
	approval int64 // sequence number of the event that asks for the approval
	park     bool
	exchange int
	advance  *store.Advance
	closes   bool // a message closed the batch
}

// applyFollows asks people, parks the round, opens the next exchange or frees the session, and
// admits waiting messages.
func (t roundTx) applyFollows(fence store.Fence, to follows, out *store.Outcome, now time.Time) {
	t.waits.storeAsked(fence, to, now)
	if to.park {
		out.Parked = t.pending.parkUnlessSteered(fence, now)
	}
	switch {
	case to.advance == nil:
		return
	case to.advance.End != nil:
		t.waits.withdrawWaits(fence.RoundID, regie.NotRunInterrupted, "the run ended", now)
		t.rounds.addRollUps(fence.RoundID)
		t.slots.giveSlot(fence.Chain)
		t.pending.afterEnd(fence, to.advance.End, out, now)
		return
	case to.advance.Open == nil:
		return
	}
	if to.closes {
		t.pending.admitSteering(fence, out, now)
	}
	open := *to.advance.Open
	if open.Wants != nil {
		granted, err := t.money.reserveMoney(fence, *open.Wants, now)
		t.fail(err)
		open.Reserved = granted.Reserved
	}
	out.Reserved = open.Reserved
	t.openExchange(fence.RoundID, open, now)
}

// Note stores a message for the audit, and parks a round that cannot continue a call for now
// (decisions 5 and 42). It returns CodeStale, CodeStopRequested after a stop request, and
// CodeConflict for a call that is not STARTED.
func (s roundStore) Note(ctx context.Context, fence store.Fence, in store.Note) (store.Outcome, error) {
	now := time.Now().UTC()
	b := batch{fence: fence, now: now}
	if in.Message != nil {
		b.addMessage(in.Message)
	}
	waits := !in.Waits.IsZero()
	return transition(ctx, s.writer, func(t *tx, out *store.Outcome) error {
		t.rounds.mayWrite(fence, waits)
		if waits {
			t.one(errNotStarted,
				"UPDATE calls SET recovered = 1, attempts = attempts + 1 WHERE id = ? AND round_id = ? AND state = 'STARTED'",
				in.Waits, fence.RoundID)
		}
		if b.writeBatch(t); !waits {
			return nil
		}
		t.waits.storeWait(fence, regie.NewID(), regie.WaitNetwork, in.Waits, in.Until, now)
		t.rounds.applyFollows(fence, follows{park: true}, out, now)
		return nil
	})
}

var errNotStarted = regie.Errorf(regie.CodeConflict, "the call has not been started, or already has its result")
