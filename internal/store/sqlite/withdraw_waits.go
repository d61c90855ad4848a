package sqlite

import (
	"cmp"
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// openWait is a wait that is about to end without an answer.
type openWait struct {
	id      regie.ID
	kind    regie.WaitKind
	object  regie.ID
	session regie.ID
	chain   int64
	round   regie.ID
}

const openWaitColumns = `SELECT w.id, w.kind, w.object_id, s.id, s.n, w.round_id FROM waits w JOIN sessions s ON s.n = w.session
	WHERE w.state = 'OPEN' AND `

func (t waitTx) openWaitsOf(where string, args ...any) ([]openWait, error) {
	return readAll(t.tx, func(row scanner, w *openWait) error {
		return row.Scan(&w.id, &w.kind, &w.object, &w.session, &w.chain, &w.round)
	}, openWaitColumns+where, args...)
}

// giveUp ends a wait without an answer: its calls become NOT_RUN with the code, and its request
// closes.
func (t waitTx) giveUp(w openWait, to regie.WaitState, code regie.NotRunCode, why string, now time.Time) {
	b := batch{fence: store.Fence{SessionID: w.session, RoundID: w.round, Chain: w.chain}, now: now}
	switch w.kind {
	case regie.WaitApproval:
		state := regie.ApprovalWithdrawn
		if to == regie.WaitExpired {
			state = regie.ApprovalExpired
		}
		t.refuseCalls(&b,
			"id IN (SELECT call_id FROM reviews WHERE approval_id = ? AND answer IS NULL) AND state = 'AWAITING_APPROVAL'", w.object, code, why)
		t.exec("UPDATE approvals SET state = ?, closed_at = ? WHERE id = ? AND state = 'OPEN'", string(state),
			now.UnixMicro(), w.object)
		b.addEvent(regie.EventApproval, approvalEvent{ApprovalID: w.object, RoundID: w.round, State: state})
	case regie.WaitQuestion:
		t.refuseCalls(&b, "id = ? AND settled_at IS NULL", w.object, code, why)
		b.addEvent(regie.EventQuestion, questionEvent{QuestionID: w.id, RoundID: w.round, CallID: w.object, State: to})
	}
	t.exec("UPDATE waits SET state = ?, resolved_at = ? WHERE id = ?", string(to),
		now.UnixMicro(), w.id)
	b.writeBatch(t.tx)
}

// pauseRound pauses a round that waits or has waited, and its session.
func (t waitTx) pauseRound(round regie.ID, chain int64, now time.Time) {
	t.exec("UPDATE rounds SET stop_request = 'PAUSE' WHERE id = ?", round)
	t.exec("UPDATE sessions SET paused_at = ? WHERE n = ?", now.UnixMicro(), chain)
}

// refuseCalls settles calls as NOT_RUN.
func (t waitTx) refuseCalls(b *batch, where string, object regie.ID, code regie.NotRunCode, why string) {
	problem := regie.CallError{Code: regie.Code(code), Message: why}
	calls, err := readAll(t.tx, func(row scanner, c *regie.Call) error { return row.Scan(&c.ID, &c.Exchange, &c.Tool) },
		"SELECT id, exchange, tool FROM calls WHERE "+where+" ORDER BY ordinal", object)
	t.fail(err)
	for i := range calls {
		calls[i].State, calls[i].NotRun, calls[i].Error = regie.CallNotRun, code, &problem
		b.addSettled(&calls[i])
	}
	t.exec("UPDATE calls SET state = 'NOT_RUN', code = ?, error = ?, settled_at = ? WHERE "+where, string(code),
		asJSON{problem}, b.now.UnixMicro(), object)
}

// withdrawWaits ends all open waits of a round, because another event replaces the answers.
func (t waitTx) withdrawWaits(round regie.ID, code regie.NotRunCode, why string, now time.Time) {
	open, err := t.openWaitsOf("w.round_id = ?", round)
	if t.fail(err) {
		return
	}
	for _, w := range open {
		t.giveUp(w, regie.WaitWithdrawn, code, why, now)
		fault.Point(fault.WithdrawBefore)
	}
}

// earliest finds the next deadline. A paused session starts nothing, so its wait for the network
// ends when it is resumed: see Resume.
const (
	expires  = "NOT (w.kind = 'NETWORK' AND s.paused_at IS NOT NULL)"
	earliest = "SELECT w.deadline FROM waits w JOIN sessions s ON s.n = w.session WHERE w.state = 'OPEN' AND w.deadline IS NOT NULL AND " + expires +
		" ORDER BY w.deadline LIMIT 1" // by the index: a minimum over the join would read all that is open
)

// nextDeadline returns the earliest deadline of an open wait, zero where none has one.
func (s approvalStore) nextDeadline(ctx context.Context) (deadline time.Time, err error) {
	err = s.read.QueryRowContext(ctx, earliest).Scan(&deadline)
	return deadline, unlessFound(err, nil)
}

// dueAtOnce bounds how many expired waits are read at once.
const dueAtOnce = 1000

// dueWait is an open wait past its deadline.
type dueWait struct {
	id              regie.ID
	chain, deadline int64
}

// ExpireWaits ends the waits past their deadline, one after another: their calls become
// NOT_RUN(EXPIRED), and their rounds can continue (decision 11). It returns the rounds that can be
// claimed now, and the next deadline, or zero; a past deadline where some waits could not be ended.
// It returns an error only where it ended none.
func (s approvalStore) ExpireWaits(ctx context.Context, at time.Time) (ready []store.Resolved, next time.Time,
	err error,
) {
	due, err := queryAll(ctx, s.read, func(row scanner, w *dueWait) error { return row.Scan(&w.id, &w.chain, &w.deadline) },
		`SELECT w.id, s.n, w.deadline FROM waits w JOIN sessions s ON s.n = w.session WHERE w.state = 'OPEN' AND w.deadline <= ?
			AND `+expires+" ORDER BY w.deadline, w.id LIMIT ?", at.UnixMicro(), dueAtOnce)
	var failed error
	for _, w := range due {
		woken, err := s.expireWait(ctx, w)
		ready = append(ready, woken...)
		if failed = cmp.Or(err, failed); err != nil && regie.CodeOf(err) != regie.CodeDatabaseLocked {
			break
		}
	}
	if err = cmp.Or(failed, err); err != nil && len(ready) == 0 {
		return nil, time.Time{}, err
	}
	if next, err = s.nextDeadline(ctx); err != nil && len(ready) > 0 {
		return ready, at, nil
	}
	return ready, next, err
}

// expireWait ends a wait that is still open, and returns its round where that can be claimed now.
func (s approvalStore) expireWait(ctx context.Context, due dueWait) (ready []store.Resolved, err error) {
	now := time.Now().UTC()
	err = s.writer.do(ctx, func(t *tx) error {
		ready = nil
		t.hurryCommit()
		t.holdRow(ByChain, due.chain)
		open, err := t.waits.openWaitsOf("w.id = ? AND w.deadline = ? AND "+expires, due.id, due.deadline)
		for _, w := range open {
			t.waits.giveUp(w, regie.WaitExpired, regie.NotRunExpired, "nobody answered in time", now)
			if w.kind == regie.WaitProvider { // no process brought its settings (decision 54)
				t.waits.pauseRound(w.round, w.chain, now)
				t.notify(w.chain, news{kind: regie.NotifyPause}, now)
			}
			fault.Point(fault.ExpireBefore)
			if t.waits.wakeRound(w.session, w.chain, w.round, now) {
				ready = append(ready, store.Resolved{SessionID: w.session, RoundID: w.round, Ready: true})
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return ready, nil
}
