package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// openWait is a wait that is about to end without an answer.
type openWait struct {
	id       regie.ID
	kind     regie.WaitKind
	object   regie.ID
	session  regie.ID
	chain    int64
	round    regie.ID
	deadline int64
}

const openWaitColumns = `SELECT w.id, w.kind, w.object_id, s.id, s.n, w.round_id, coalesce(w.deadline, 0) FROM waits w JOIN sessions s ON s.n = w.session
	WHERE w.state = 'OPEN' AND `

func (t *tx) openWaitsOf(where string, args ...any) ([]openWait, error) {
	var out []openWait
	err := t.each(openWaitColumns+where, args, func(row found) error {
		var w openWait
		var kind string
		if err := row.Scan(&w.id, &kind, &w.object, &w.session, &w.chain, &w.round, &w.deadline); err != nil {
			return err
		}
		w.kind = regie.WaitKind(kind)
		out = append(out, w)
		return nil
	})
	return out, err
}

// giveUp ends a wait without an answer: its calls are NOT_RUN with the code, and what was asked closes.
func (t *tx) giveUp(w openWait, to regie.WaitState, code regie.NotRunCode, why string, now time.Time) error {
	b := batch{fence: store.Fence{SessionID: w.session, RoundID: w.round, Chain: w.chain}, now: now}
	switch w.kind {
	case regie.WaitApproval:
		state := regie.ApprovalWithdrawn
		if to == regie.WaitExpired {
			state = regie.ApprovalExpired
		}
		if err := t.refuseCalls(&b, "id IN (SELECT call_id FROM reviews WHERE approval_id = ? AND answer IS NULL) AND state = 'AWAITING_APPROVAL'", w.object, code, why); err != nil {
			return err
		}
		if _, err := t.exec("UPDATE approvals SET state = ?, closed_at = ? WHERE id = ? AND state = 'OPEN'", string(state), now.UnixMicro(), w.object); err != nil {
			return err
		}
		b.add(regie.EventApproval, approvalEvent{ApprovalID: w.object, RoundID: w.round, State: state})
	case regie.WaitQuestion:
		if err := t.refuseCalls(&b, "id = ? AND settled_at IS NULL", w.object, code, why); err != nil {
			return err
		}
		b.add(regie.EventQuestion, questionEvent{QuestionID: w.id, RoundID: w.round, CallID: w.object, State: to})
	}
	if _, err := t.exec("UPDATE waits SET state = ?, resolved_at = ? WHERE id = ?", string(to), now.UnixMicro(), w.id); err != nil {
		return err
	}
	return errOr(b.err, func() error { return b.store(t) })
}

// refuseCalls settles calls as NOT_RUN.
func (t *tx) refuseCalls(b *batch, where string, object regie.ID, code regie.NotRunCode, why string) error {
	problem := regie.CallError{Code: regie.Code(code), Message: why}
	data, err := json.Marshal(problem)
	if err != nil {
		return err
	}
	if err := t.each("SELECT id, exchange, tool FROM calls WHERE "+where+" ORDER BY ordinal", []any{object}, func(row found) error {
		c := regie.Call{State: regie.CallNotRun, NotRun: code, Error: &problem}
		if err := row.Scan(&c.ID, &c.Exchange, &c.Tool); err != nil {
			return err
		}
		b.settled(&c)
		return nil
	}); err != nil {
		return err
	}
	_, err = t.exec("UPDATE calls SET state = 'NOT_RUN', code = ?, error = ?, settled_at = ? WHERE "+where, string(code), string(data), b.now.UnixMicro(), object)
	return err
}

// withdraw ends all open waits of a round, because something else goes on instead.
func (t *tx) withdraw(round regie.ID, code regie.NotRunCode, why string, now time.Time) error {
	open, err := t.openWaitsOf("w.round_id = ?", round)
	if err != nil {
		return err
	}
	for _, w := range open {
		if err := t.giveUp(w, regie.WaitWithdrawn, code, why, now); err != nil {
			return err
		}
		fault.Point(fault.WithdrawBefore)
	}
	return nil
}

// nextDeadline returns the earliest deadline of an open wait, zero where none has one.
func (s *Store) nextDeadline(ctx context.Context) (time.Time, error) {
	var deadline int64
	err := s.read.QueryRowContext(ctx, "SELECT coalesce(min(deadline), 0) FROM waits WHERE state = 'OPEN' AND deadline IS NOT NULL").Scan(&deadline)
	if err != nil || deadline == 0 {
		return time.Time{}, explain(err, FileName)
	}
	return fromMicros(deadline), nil
}

// ExpireWaits ends the waits whose deadline has passed: what they waited for is NOT_RUN(EXPIRED), and their rounds can go on
// (decision 11). It returns the rounds that can be claimed now, and the next deadline, zero where none is.
func (s *Store) ExpireWaits(ctx context.Context, at time.Time) (ready []store.Resolved, next time.Time, err error) {
	now := time.Now().UTC()
	// Most often nothing is due: the writer need not be asked.
	if next, err = s.nextDeadline(ctx); err != nil || next.IsZero() || next.After(at) {
		return nil, next, err
	}
	err = s.writer.do(ctx, func(t *tx) error {
		ready, next = nil, time.Time{}
		due, err := t.openWaitsOf("w.deadline <= ? ORDER BY w.deadline, w.id", at.UnixMicro())
		if err != nil {
			return err
		}
		for _, w := range due {
			if err := t.giveUp(w, regie.WaitExpired, regie.NotRunExpired, "nobody answered in time", now); err != nil {
				return err
			}
			fault.Point(fault.ExpireBefore)
			woken, err := t.wake(w.session, w.chain, w.round, now)
			if err != nil {
				return err
			}
			if woken {
				ready = append(ready, store.Resolved{SessionID: w.session, RoundID: w.round, Ready: true})
			}
		}
		var deadline int64
		if err := t.row("SELECT coalesce(min(deadline), 0) FROM waits WHERE state = 'OPEN' AND deadline IS NOT NULL").Scan(&deadline); err != nil {
			return err
		}
		if deadline > 0 {
			next = fromMicros(deadline)
		}
		return nil
	})
	return ready, next, err
}
