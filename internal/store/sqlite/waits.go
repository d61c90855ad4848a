package sqlite

import (
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// approvalEvent is the body of an approval event. It binds the shown reviews by their hash; the
// reviews have their own rows.
type approvalEvent struct {
	ApprovalID regie.ID            `json:"approval_id"`
	RoundID    regie.ID            `json:"round_id"`
	Exchange   int                 `json:"exchange,omitempty"`
	State      regie.ApprovalState `json:"state"`
	Calls      []reviewEvent       `json:"calls,omitempty"`
	ExpiresAt  *time.Time          `json:"expires_at,omitempty"`
	ExtendedTo *time.Time          `json:"extended_to,omitempty"` // by a person
	By         string              `json:"extended_by,omitempty"`
}

// reviewEvent is one call of an approval event.
type reviewEvent struct {
	CallID        regie.ID      `json:"call_id"`
	Tool          string        `json:"tool,omitempty"`
	Review        regie.Hash    `json:"review,omitzero"` // hash of the review as shown
	Answer        regie.Answer  `json:"decision,omitempty"`
	Reason        string        `json:"reason,omitempty"`
	Edited        regie.Hash    `json:"edited,omitzero"`
	EditedPreview regie.Hash    `json:"edited_preview,omitzero"` // hash of the edit's preview
	Scope         *regie.Scope  `json:"scope,omitempty"`
	RuleExpires   *time.Time    `json:"rule_expires_at,omitempty"`
	By            string        `json:"by,omitempty"`
	Request       string        `json:"request_id,omitempty"`
	Said          regie.Verdict `json:"verdict,omitempty"`
}

// hashShown hashes a review as a person sees it. It hashes the review as it comes back from the
// store, because bytes that are not UTF-8 do not survive storing.
func hashShown(review *regie.Review) (regie.Hash, error) {
	asked := *review
	asked.Decision = nil
	data, err := json.Marshal(&asked)
	if err != nil {
		return regie.Hash{}, err
	}
	var read regie.Review
	if err := json.Unmarshal(data, &read); err != nil {
		return regie.Hash{}, err
	}
	data, err = json.Marshal(&read)
	return regie.HashOf(data), err
}

// questionEvent is the body of a question event.
type questionEvent struct {
	QuestionID regie.ID             `json:"question_id"`
	RoundID    regie.ID             `json:"round_id"`
	CallID     regie.ID             `json:"call_id"`
	State      regie.WaitState      `json:"state"`
	Module     *regie.Module        `json:"module,omitempty"`
	Reply      *regie.QuestionReply `json:"reply,omitempty"`
	Request    string               `json:"request_id,omitempty"`
	ExpiresAt  *time.Time           `json:"expires_at,omitempty"`
	ExtendedTo *time.Time           `json:"extended_to,omitempty"`
	By         string               `json:"extended_by,omitempty"`
}

// addAsked adds the events of new requests to people, with the new state of their calls.
func (b *batch) addAsked(in *store.Asked, calls func(regie.ID) *regie.Call) {
	if in == nil {
		return
	}
	if a := in.Approval; a != nil {
		event := approvalEvent{
			ApprovalID: a.ID, RoundID: a.RoundID, Exchange: a.Exchange,
			State: regie.ApprovalOpen, ExpiresAt: &a.ExpiresAt,
		}
		for i := range a.Reviews {
			review := &a.Reviews[i]
			hash, err := hashShown(review)
			if err != nil {
				b.events = append(b.events, logEvent{err: err})
				return
			}
			event.Calls = append(event.Calls, reviewEvent{
				CallID: review.CallID, Tool: review.Tool,
				Review: hash, Said: review.Verdict,
			})
			if call := calls(review.CallID); call != nil {
				b.addMoved(call, regie.CallAwaitingApproval)
			}
		}
		b.approval = len(b.events)
		b.addEvent(regie.EventApproval, event)
	}
	if in.Plan != nil {
		b.addEvent(regie.EventPlan, planEvent{RoundID: b.fence.RoundID, Plan: in.Plan})
	}
	for i := range in.Questions {
		q := &in.Questions[i]
		b.addEvent(regie.EventQuestion, questionEvent{
			QuestionID: q.ID, RoundID: q.RoundID, CallID: q.CallID, State: regie.WaitOpen,
			Module: &q.Module, ExpiresAt: &q.ExpiresAt,
		})
	}
}

// addMoved adds the event of a call's step between its start and its end.
func (b *batch) addMoved(c *regie.Call, to regie.CallState) {
	b.addEvent(regie.EventToolCall, callEvent{
		CallID: c.ID, Exchange: c.Exchange, Tool: c.Tool, Kind: c.Kind, State: to,
		Executed: hashOrZero(c.Executed),
	})
}

// storeAsked stores requests to people: the approval with its reviews, the questions, and a wait
// for each. The calls must exist.
func (t waitTx) storeAsked(fence store.Fence, to follows, now time.Time) {
	in := to.ask
	if in == nil {
		return
	}
	if a := in.Approval; a != nil {
		t.askApproval(fence, to, a, now)
	}
	for i := range in.Questions {
		q := &in.Questions[i]
		t.storeWait(fence, q.ID, regie.WaitQuestion, q.CallID, q.ExpiresAt, now)
		t.exec("INSERT INTO questions (wait_id, call_id, module) VALUES (?, ?, ?)", q.ID, q.CallID,
			asJSON{q.Module})
	}
}

func (t waitTx) askApproval(fence store.Fence, to follows, a *regie.Approval, now time.Time) {
	t.exec(
		"INSERT INTO approvals (id, session, round_id, exchange, state, created_at, expires_at, seq) VALUES (?, ?, ?, ?, 'OPEN', ?, ?, ?)",
		a.ID, fence.Chain, fence.RoundID, to.exchange, now.UnixMicro(),
		a.ExpiresAt.UnixMicro(), to.approval)
	for i := range a.Reviews {
		review := &a.Reviews[i]
		t.exec(
			"INSERT INTO reviews (approval_id, call_id, ordinal, definition, arguments, preview, verdict, grounds) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			a.ID, review.CallID, i, review.Definition, string(review.Arguments), asJSON{review.Preview},
			string(review.Verdict), asJSON{review.Grounds})
		t.one(errNotProposed,
			"UPDATE calls SET state = 'AWAITING_APPROVAL' WHERE id = ? AND (state = 'PROPOSED' OR state = 'APPROVED' OR state = 'AWAITING_APPROVAL')",
			review.CallID)
	}
	t.storeWait(fence, regie.NewID(), regie.WaitApproval, a.ID, a.ExpiresAt, now)
}

// storeWait stores a wait of the round; its owner is the session's (decision 36).
func (t waitTx) storeWait(fence store.Fence, id regie.ID, kind regie.WaitKind, object regie.ID, deadline,
	now time.Time,
) {
	t.exec(`INSERT INTO waits (id, session, round_id, kind, object_id, owner_id, deadline, state, created_at)
		SELECT ?, n, ?, ?, ?, user_id, ?, 'OPEN', ? FROM sessions WHERE n = ?`, id, fence.RoundID, string(kind), object, toMicros(deadline), now.UnixMicro(), fence.Chain)
	if t.other != nil && !deadline.IsZero() {
		t.other.Deadline(deadline)
	}
}

// parkRound parks a round with an open wait, and frees its session of the holder. It reports
// whether it did.
func (t waitTx) parkRound(fence store.Fence, now time.Time) (parked bool) {
	if t.openWaits(fence.RoundID) == 0 {
		return false
	}
	t.one(errCannotPark,
		"UPDATE rounds SET state = 'WAITING' WHERE id = ? AND epoch = ? AND state = 'RUNNING'",
		fence.RoundID, fence.Epoch)
	t.exec("UPDATE sessions SET lease_holder = NULL, lease_until = NULL WHERE n = ?", fence.Chain)
	t.slots.giveSlot(fence.Chain)
	t.deriveState(fence.SessionID, fence.Chain, now)
	return true
}

var errCannotPark = regie.Errorf(regie.CodeConflict, "the round is not running")

func (t waitTx) openWaits(round regie.ID) (n int) {
	t.fail(t.row("SELECT count(*) FROM waits WHERE round_id = ? AND state = 'OPEN'", round).Scan(&n))
	return n
}

// wakeRound makes a round without an open wait runnable, and reports whether it now is.
func (t waitTx) wakeRound(session regie.ID, chain int64, round regie.ID, now time.Time) (woken bool) {
	if t.openWaits(round) == 0 {
		woken = t.count("UPDATE rounds SET state = 'RUNNING' WHERE id = ? AND state = 'WAITING'", round) == 1
		if woken && !t.slots.goesOn(chain, now) {
			t.needsHolder(round, headStart)
		}
	}
	t.deriveState(session, chain, now)
	return woken
}

// deriveState stores the session's state, which follows from its flags, its round and its open
// waits in the order of decision 12, and logs a change.
func (t waitTx) deriveState(session regie.ID, chain int64, now time.Time) {
	var before, after string
	err := t.row(`SELECT s.state, CASE
			WHEN s.closed_at IS NOT NULL THEN 'CLOSED'
			WHEN s.paused_at IS NOT NULL THEN 'PAUSED'
			WHEN r.state IS NULL THEN 'IDLE'
			WHEN r.state = 'RUNNING' AND EXISTS (SELECT 1 FROM slots q WHERE q.session = s.n AND q.state = 'QUEUED') THEN 'QUEUED'
			WHEN r.state = 'RUNNING' THEN 'ACTIVE'
			WHEN EXISTS (SELECT 1 FROM waits w WHERE w.round_id = r.id AND w.state = 'OPEN' AND w.kind = 'APPROVAL') THEN 'WAITING_VALIDATION'
			WHEN EXISTS (SELECT 1 FROM waits w WHERE w.round_id = r.id AND w.state = 'OPEN' AND w.kind = 'QUESTION') THEN 'WAITING_RESPONSE'
			WHEN EXISTS (SELECT 1 FROM waits w WHERE w.round_id = r.id AND w.state = 'OPEN' AND w.kind = 'NETWORK') THEN 'WAITING_NETWORK'
			WHEN EXISTS (SELECT 1 FROM waits w WHERE w.round_id = r.id AND w.state = 'OPEN' AND w.kind = 'PROVIDER') THEN 'WAITING_PROVIDER'
			ELSE 'WAITING_TASK' END
		FROM sessions s LEFT JOIN rounds r ON r.session = s.n AND r.state <> 'ENDED' WHERE s.n = ?`, chain).Scan(&before, &after)
	if err != nil || before == after {
		t.fail(err)
		return
	}
	waiting := boolToInt(after == string(regie.SessionWaitingNetwork))
	t.exec("UPDATE sessions SET state = ?, waiting_network = ? WHERE n = ?", after,
		waiting, chain)
	t.tellState(session, chain, regie.SessionState(after), now)
}

// tellState logs a session's new state.
func (t waitTx) tellState(session regie.ID, chain int64, state regie.SessionState, now time.Time) {
	if state == regie.SessionQueued {
		t.slots.tellPlace(session, chain, t.slots.placeOf(chain, now), now)
		return
	}
	t.appendEvent(session, chain, now, regie.EventSessionState, stateEvent{State: state})
}
