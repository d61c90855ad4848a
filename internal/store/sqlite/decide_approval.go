package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// approvalRow is an approval on its way through a decision.
type approvalRow struct {
	session  regie.ID
	chain    int64
	round    regie.ID
	exchange int
	state    string
	expires  int64
}

// Decide stores a person's decisions, all of them or none (decision 20). Each call is decided once:
// the same request again changes nothing, another one gets CodeConflict, which names the person who
// decided. It returns CodeExpired after the deadline, CodeConflict for an approval that was
// withdrawn, and CodeNotFound.
func (s approvalStore) Decide(ctx context.Context, in store.Decide) (store.Resolved, error) {
	now := time.Now().UTC()
	return transition(ctx, s.writer, func(t *tx, out *store.Resolved) error {
		t.holdRow(ByApproval, in.ApprovalID)
		var a approvalRow
		err := t.row(
			`SELECT s.id, s.n, a.round_id, a.exchange, a.state, a.expires_at FROM approvals a JOIN sessions s ON s.n = a.session WHERE a.id = ?`, in.ApprovalID).
			Scan(&a.session, &a.chain, &a.round, &a.exchange, &a.state, &a.expires)
		if err != nil {
			return unlessFound(err, notFound("approval", in.ApprovalID))
		}
		out.SessionID, out.RoundID = a.session, a.round
		fresh, err := t.waits.newDecisions(in)
		if err != nil || len(fresh) == 0 {
			return err
		}
		if err := a.mayDecide(now); err != nil {
			return err
		}
		b := batch{fence: store.Fence{SessionID: a.session, RoundID: a.round, Chain: a.chain}, now: now}
		event := approvalEvent{ApprovalID: in.ApprovalID, RoundID: a.round, State: regie.ApprovalOpen}
		for _, d := range fresh {
			event.Calls = append(event.Calls, t.waits.decideCall(&b, &in, d))
		}
		t.waits.makeRules(&a, in.Rules, now)
		open := 0
		if err := t.row("SELECT count(*) FROM reviews WHERE approval_id = ? AND answer IS NULL",
			in.ApprovalID).Scan(&open); err != nil {
			return err
		}
		if open == 0 {
			event.State = regie.ApprovalDecided
		}
		b.prependEvent(regie.EventApproval, event) // results follow the decisions in the log
		if b.writeBatch(t); open > 0 {
			return nil
		}
		t.exec("UPDATE approvals SET state = 'DECIDED', closed_at = ? WHERE id = ?",
			now.UnixMicro(), in.ApprovalID)
		t.exec(
			"UPDATE waits SET state = 'RESOLVED', resolved_by = ?, resolved_at = ? WHERE object_id = ? AND round_id = ? AND state = 'OPEN'",
			fresh[len(fresh)-1].By, now.UnixMicro(), in.ApprovalID, a.round)
		out.Ready = t.waits.wakeRound(a.session, a.chain, a.round, now)
		return nil
	})
}

func (a *approvalRow) mayDecide(now time.Time) error {
	switch {
	case a.state == string(regie.ApprovalExpired), a.state == string(regie.ApprovalOpen) && now.UnixMicro() > a.expires:
		return regie.Errorf(regie.CodeExpired, "the approval has expired: none of its calls was run")
	case a.state != string(regie.ApprovalOpen):
		return regie.Errorf(regie.CodeConflict, "the approval was withdrawn: the run continues without it")
	}
	return nil
}

// newDecisions returns the decisions that are not stored yet. It returns CodeConflict for a call
// that another person has decided.
func (t waitTx) newDecisions(in store.Decide) ([]regie.Decision, error) {
	var fresh []regie.Decision
	for _, d := range in.Decisions {
		var answer, by, request, reason sql.NullString
		err := t.row("SELECT answer, decided_by, request, reason FROM reviews WHERE approval_id = ? AND call_id = ?",
			in.ApprovalID, d.CallID).
			Scan(&answer, &by, &request, &reason)
		if fault.Bug(fault.BugDecidedTwice) && answer.Valid && request.String != in.Request {
			fresh = append(fresh, d)
			continue
		}
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil, regie.Errorf(regie.CodeNotFound, "the approval %s does not ask about call %s", in.ApprovalID,
				d.CallID)
		case err != nil:
			return nil, err
		case !answer.Valid:
			fresh = append(fresh, d)
		case request.String != in.Request, in.Request == "", answer.String != string(d.Answer),
			reason.String != d.Reason:
			return nil, regie.Errorf(regie.CodeConflict, "%s has already answered this: %s", by.String, answer.String)
		}
	}
	return fresh, nil
}

// decideCall stores one decision and its effect on the call, and returns the log's entry of it.
func (t waitTx) decideCall(b *batch, in *store.Decide, d regie.Decision) reviewEvent {
	said := reviewEvent{
		CallID: d.CallID, Answer: d.Answer, Reason: d.Reason, Edited: hashOrZero(d.Arguments), Scope: d.Scope,
		By: d.By, Request: in.Request,
	}
	if fault.Bug(fault.BugDecidedTwice) {
		t.decideAgain(d)
	}
	var preview any
	if p, ok := in.Previews[d.CallID]; ok {
		data, err := json.Marshal(p)
		t.fail(err)
		preview, said.EditedPreview = string(data), regie.HashOf(data)
	}
	if !d.ExpiresAt.IsZero() {
		until := fromMicros(d.ExpiresAt.UnixMicro())
		said.RuleExpires = &until
	}
	t.one(errSettled, `UPDATE reviews SET answer = ?, edited = ?, edited_preview = ?, reason = ?, scope = ?, expires_at = ?, request = ?, decided_by = ?, decided_at = ?
		WHERE approval_id = ? AND call_id = ? AND answer IS NULL`, string(d.Answer), nullIfEmpty(string(d.Arguments)), preview, nullIfEmpty(d.Reason),
		asJSON{d.Scope}, toMicros(d.ExpiresAt), nullIfEmpty(in.Request), d.By, b.now.UnixMicro(), in.ApprovalID, d.CallID)
	t.followDecision(b, d)
	return said
}

// followDecision moves a call to the state that its decision demands.
func (t waitTx) followDecision(b *batch, d regie.Decision) {
	c := regie.Call{ID: d.CallID, Executed: d.Arguments}
	t.fail(t.row("SELECT exchange, tool, kind, arguments FROM calls WHERE id = ?", d.CallID).Scan(&c.Exchange,
		&c.Tool, &c.Kind, &c.Arguments))
	if d.Answer != regie.AnswerDeny {
		b.addMoved(&c, regie.CallApproved)
		t.one(errSettled,
			"UPDATE calls SET state = 'APPROVED', executed = coalesce(?, executed) WHERE id = ? AND state = 'AWAITING_APPROVAL'", nullIfEmpty(string(d.Arguments)), d.CallID)
		return
	}
	c.State, c.NotRun, c.Error = regie.CallNotRun, regie.NotRunDenied, &regie.CallError{
		Code: regie.CodeUserRejected, Message: "the person denied this call",
		Hint: "do not propose it again unless the person asks for it",
	}
	if d.Reason != "" {
		c.Error.Message, c.Error.Hint = "the person denied this call: "+d.Reason, ""
	}
	b.addSettled(&c)
	t.rounds.settleCall(&c, b.now)
}

// decideAgain is a seeded bug (spec 12.3), only in builds with fault points. It removes the guard
// against a second decision.
func (t waitTx) decideAgain(d regie.Decision) {
	t.exec(`UPDATE reviews SET answer = NULL, edited = NULL, edited_preview = NULL, reason = NULL, scope = NULL, expires_at = NULL, request = NULL,
			decided_by = NULL, decided_at = NULL WHERE call_id = ?`, d.CallID)
	t.exec("UPDATE calls SET state = 'AWAITING_APPROVAL' WHERE id = ? AND state = 'APPROVED'", d.CallID)
}

// Answer stores a person's answer to a question, as the call's result and as a visible message
// (decision 40). The same request again changes nothing; another one gets CodeConflict. It returns
// CodeExpired after the deadline.
func (s approvalStore) Answer(ctx context.Context, in store.AnswerQuestion) (store.Resolved, error) {
	now := time.Now().UTC()
	return transition(ctx, s.writer, func(t *tx, out *store.Resolved) error {
		t.holdRow(ByWait, in.QuestionID)
		var chain int64
		var state regie.WaitState
		var call regie.ID
		var deadline time.Time
		var by, request string
		err := t.row(`SELECT s.id, s.n, w.round_id, w.state, w.deadline, w.resolved_by, q.call_id, q.request FROM questions q
			JOIN waits w ON w.id = q.wait_id JOIN sessions s ON s.n = w.session WHERE q.wait_id = ?`, in.QuestionID).
			Scan(&out.SessionID, &chain, &out.RoundID, &state, &deadline, &by, &call, &request)
		switch {
		case err != nil:
			return unlessFound(err, notFound("question", in.QuestionID))
		case state == regie.WaitResolved && in.Request != "" && request == in.Request:
			return nil
		case state == regie.WaitResolved:
			return regie.Errorf(regie.CodeConflict, "%s has already answered this", by)
		case state == regie.WaitWithdrawn:
			return regie.Errorf(regie.CodeConflict, "the question was withdrawn: the run continues without it")
		case state == regie.WaitExpired, !deadline.IsZero() && now.After(deadline):
			return regie.Errorf(regie.CodeExpired, "the question has expired")
		}
		b := batch{fence: store.Fence{SessionID: out.SessionID, RoundID: out.RoundID, Chain: chain}, now: now}
		c := regie.Call{ID: call, State: regie.CallSucceeded, Result: in.Result}
		t.fail(t.row("SELECT exchange, tool, arguments FROM calls WHERE id = ?", call).Scan(&c.Exchange,
			&c.Tool, &c.Arguments))
		t.rounds.settleCall(&c, now)
		b.addEvent(regie.EventQuestion, questionEvent{
			QuestionID: in.QuestionID, RoundID: out.RoundID, CallID: call,
			State: regie.WaitResolved, Reply: &in.Reply, Request: in.Request,
		})
		b.addSettled(&c) // the result follows the answer in the log
		message := in.Message
		message.Exchange = c.Exchange
		b.addMessage(&message)
		b.writeBatch(t)
		out.MessageID, out.Seq = message.ID, message.Seq
		if in.Mode != "" {
			t.fail(t.sessions.setMode(out.SessionID, in.Mode, in.Reply.By, now))
		}
		t.exec("UPDATE questions SET request = ? WHERE wait_id = ?",
			nullIfEmpty(in.Request), in.QuestionID)
		t.exec(
			"UPDATE waits SET state = 'RESOLVED', resolution = ?, resolved_by = ?, resolved_at = ? WHERE id = ?",
			asJSON{in.Reply}, in.Reply.By, now.UnixMicro(), in.QuestionID)
		out.Ready = t.waits.wakeRound(out.SessionID, chain, out.RoundID, now)
		return nil
	})
}
