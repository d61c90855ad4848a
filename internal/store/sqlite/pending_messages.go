package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// pendingEvent is the body of message_pending: the message itself, and how it waits (decision 10).
type pendingEvent struct {
	*regie.Message
	WhenBusy store.WhenBusy `json:"when_busy"`
}

// pendingRound is the stored part of a waiting message's submission: the round that it would begin,
// and the requests that it must not withdraw.
type pendingRound struct {
	regie.Round
	LeavesWaits     bool `json:"leaves_waits,omitempty"`
	LeavesApprovals bool `json:"leaves_approvals,omitempty"`
}

// keepPending stores a message that arrives while a round of its session is open. A steering
// message also withdraws the open requests of a waiting round.
func (t pendingTx) keepPending(in store.Submission, chain int64, out *store.Accepted, now time.Time) error {
	mode := in.WhenBusy
	if mode == "" {
		mode = store.Queue
	}
	var open regie.ID
	var state string
	if err := t.row("SELECT id, state FROM rounds WHERE session = ? AND state <> 'ENDED'",
		chain).Scan(&open, &state); err != nil {
		return err
	}
	if in.Command {
		return regie.Errorf(regie.CodeRoundInProgress,
			"a run of this session is open, and commands are not queued: send it when the run has ended, or interrupt the run")
	}
	if mode == store.Reject {
		return errRoundOpen
	}
	if mode == store.Steer && t.countAsked(open).mustStay(in.LeavesWaits, in.LeavesApprovals) {
		return store.ErrLeavesWaits
	}
	out.Pending, out.RoundID, out.Message.RoundID = true, open, regie.ID{}
	out.Message.Opening = out.Message.Opening.Waiting()
	out.Message.Seq = t.appendEvent(in.SessionID, chain, now, regie.EventMessagePending, pendingEvent{&out.Message, mode})
	t.rounds.insertMessage(chain, &out.Message, true)
	t.exec("INSERT INTO pending (message_id, session, mode, round) VALUES (?, ?, ?, ?)", out.Message.ID,
		chain, string(mode), asJSON{pendingRound{in.Round, in.LeavesWaits, in.LeavesApprovals}})
	fault.Point(fault.PendingBefore)
	if mode != store.Steer || state != "WAITING" {
		return nil
	}
	t.waits.withdrawWaits(open, regie.NotRunSuperseded, superseded, now)
	out.Ready = t.waits.wakeRound(in.SessionID, chain, open, now)
	return nil
}

// waiting counts a round's unanswered requests to people.
type waiting struct{ approvals, questions int }

func (t pendingTx) countAsked(round regie.ID) (a waiting) {
	t.fail(t.row(`SELECT count(CASE WHEN kind = 'APPROVAL' THEN 1 END), count(CASE WHEN kind = 'QUESTION' THEN 1 END)
		FROM waits WHERE round_id = ? AND state = 'OPEN'`, round).Scan(&a.approvals, &a.questions))
	return a
}

// mustStay reports whether a message must not withdraw one of these requests.
func (a waiting) mustStay(leavesWaits, leavesApprovals bool) bool {
	return a.approvals > 0 && (leavesWaits || leavesApprovals) || a.questions > 0 && leavesWaits
}

// superseded is the reason of a call that was not run because of a steering message.
const superseded = "the person wrote something else instead of answering"

// parkUnlessSteered parks a round. It does not park, and withdraws the round's requests, where an
// earlier steering message may do so.
func (t pendingTx) parkUnlessSteered(fence store.Fence, now time.Time) bool {
	steering := t.pendingOf(fence.Chain, true)
	asked := t.countAsked(fence.RoundID)
	if asked != (waiting{}) && slices.ContainsFunc(steering, func(w waitingMessage) bool {
		return !asked.mustStay(w.LeavesWaits, w.LeavesApprovals)
	}) {
		t.waits.withdrawWaits(fence.RoundID, regie.NotRunSuperseded, superseded, now)
	}
	return t.waits.parkRound(fence, now)
}

// waitingMessage is a pending message on its way into the thread.
type waitingMessage struct {
	message regie.Message
	mode    store.WhenBusy
	pendingRound
}

func (t pendingTx) pendingOf(chain int64, steerOnly bool) []waitingMessage {
	all, err := readAll(t.tx, func(row scanner, w *waitingMessage) error {
		return row.Scan(&w.message.ID, &w.mode, asJSON{&w.pendingRound}, asJSON{&w.message})
	}, `SELECT m.id, p.mode, p.round, b.body FROM pending p JOIN messages m ON m.id = p.message_id
		JOIN events e ON e.chain = m.session AND e.seq = m.pending_seq JOIN event_bodies b ON b.n = e.n WHERE p.session = ? ORDER BY p.n`, chain)
	t.fail(err)
	return slices.DeleteFunc(all, func(w waitingMessage) bool { return steerOnly && w.mode != store.Steer })
}

// admitMessages gives pending messages their places in the thread, as part of a round. Where they
// begin it, the first one is marked so.
func (t pendingTx) admitMessages(fence store.Fence, round regie.ID, waiting []waitingMessage,
	now time.Time,
) []regie.Message {
	admitted := make([]regie.Message, 0, len(waiting))
	events := make([]logEvent, 0, len(waiting))
	for i := range waiting {
		m := waiting[i].message
		m.SessionID, m.RoundID, m.Time = fence.SessionID, round, now
		if begins := round != fence.RoundID; begins && i == 0 {
			m.Opening = m.Opening.Beginning(now)
		} else {
			m.Opening = nil
		}
		events, admitted = append(events, newEvent(regie.EventMessage, &m)), append(admitted, m)
	}
	fault.Point(fault.AdmitBefore)
	first := t.appendEvents(fence.SessionID, fence.Chain, now, events...)
	for i := range admitted {
		m := &admitted[i]
		m.Seq = first + int64(i)
		t.one(errAdmitted, "UPDATE messages SET seq = ?, round_id = ? WHERE id = ? AND seq IS NULL",
			m.Seq, round, m.ID)
		t.one(errAdmitted, "DELETE FROM pending WHERE message_id = ?", m.ID)
	}
	return admitted
}

var errAdmitted = regie.Errorf(regie.CodeConflict,
	"the agent already has the message: it cannot be withdrawn")

// admitSteering admits steering messages into an open round, behind the results that were just
// stored.
func (t pendingTx) admitSteering(fence store.Fence, out *store.Outcome, now time.Time) {
	if waiting := t.pendingOf(fence.Chain, true); len(waiting) > 0 {
		out.Admitted = t.admitMessages(fence, fence.RoundID, waiting, now)
	}
}

// afterEnd starts one next round with all messages that waited for the end of a round (decision
// 10), or withdraws them where the session closes.
func (t pendingTx) afterEnd(fence store.Fence, end *store.End, out *store.Outcome, now time.Time) {
	waiting := t.pendingOf(fence.Chain, false)
	closes := end.Close
	if end.Reason == regie.EndStopped {
		closes = regie.SessionCancelled
	}
	if closes != "" {
		t.giveBack(fence, waiting, now)
		fault.Point(fault.CloseBefore)
		t.closeSession(fence.SessionID, fence.Chain, closes, now)
		return
	}
	if len(waiting) == 0 {
		t.exec(
			"UPDATE sessions SET state = 'IDLE', paused_at = NULL, lease_holder = NULL, lease_until = NULL WHERE n = ?", fence.Chain)
		return
	}
	t.nextRound(fence, end.Reason, waiting, out, now)
}

// nextRound starts the round of the waiting messages, in the transition that ends the previous one.
// It queues behind the rounds that wait for a slot already.
func (t pendingTx) nextRound(fence store.Fence, ended regie.RoundEnd, waiting []waitingMessage,
	out *store.Outcome, now time.Time,
) {
	round := waiting[len(waiting)-1].Round
	next := store.Fence{SessionID: fence.SessionID, RoundID: round.ID, Epoch: fence.Epoch + 1, Chain: fence.Chain}
	var pausedAt time.Time
	var rounds int
	t.fail(t.row(
		"SELECT paused_at, (SELECT coalesce(max(number), 0) FROM rounds WHERE session = sessions.n) FROM sessions WHERE n = ?", fence.Chain).
		Scan(&pausedAt, &rounds))
	state := regie.SessionActive
	if !pausedAt.IsZero() {
		state = regie.SessionPaused
	} else if t.slots.goesOn(fence.Chain, now) {
		state = regie.SessionQueued
	}
	t.exec("UPDATE sessions SET state = ?, epoch = ?, lease_holder = NULL, lease_until = NULL WHERE n = ?",
		string(state), next.Epoch, fence.Chain)
	in := store.Submission{SessionID: fence.SessionID, Message: waiting[len(waiting)-1].message, Round: round}
	t.rounds.insertRound(fence.Chain, next.Epoch, in, rounds+1, now)
	if ended == regie.EndClientTools {
		t.rounds.leaveClients(next, round.TraceID, now)
	}
	t.admitMessages(fence, round.ID, waiting, now)
	t.appendEvent(fence.SessionID, fence.Chain, now, regie.EventRound, roundEvent{
		RoundID: round.ID, State: regie.RoundRunning, Reason: round.Reason, TraceID: round.TraceID, Session: state,
	})
	switch state {
	case regie.SessionPaused:
		t.exec("UPDATE rounds SET stop_request = 'PAUSE' WHERE id = ?", round.ID)
		return
	case regie.SessionQueued:
		t.waits.tellState(fence.SessionID, fence.Chain, state, now)
	default:
		t.needsHolder(round.ID, headStart)
	}
	out.Next = round.ID
}

// withdrawnEvent is the body of message_withdrawn; the text is in the body of message_pending.
// TakenBack says that the person withdrew the message, not the end of the session.
type withdrawnEvent struct {
	MessageID regie.ID `json:"message_id"`
	TakenBack bool     `json:"taken_back,omitempty"`
}

// giveBack withdraws pending messages, because their session stops (decisions 6 and 10).
func (t pendingTx) giveBack(fence store.Fence, waiting []waitingMessage, now time.Time) {
	for i := range waiting {
		t.withdrawMessage(fence.SessionID, fence.Chain, withdrawnEvent{MessageID: waiting[i].message.ID}, now)
	}
}

// withdrawMessage marks a pending message as withdrawn, and logs it.
func (t pendingTx) withdrawMessage(session regie.ID, chain int64, event withdrawnEvent, now time.Time) {
	t.one(errAdmitted, "UPDATE messages SET withdrawn_at = ?, taken_back = ? WHERE id = ? AND seq IS NULL",
		now.UnixMicro(), boolToInt(event.TakenBack), event.MessageID)
	t.one(errAdmitted, "DELETE FROM pending WHERE message_id = ?", event.MessageID)
	t.appendEvent(session, chain, now, regie.EventMessageWithdrawn, event)
}

// TakeBack withdraws a message that waits for its turn, and returns it: it never gets a place in
// the thread (decision 10). Where the round has admitted it already, TakeBack returns CodeConflict.
// Taking it back again changes nothing. With a token, messages of other tokens are CodeNotFound.
func (s roundStore) TakeBack(ctx context.Context, session, message, token regie.ID) (out regie.Message, err error) {
	now := time.Now().UTC()
	err = s.writer.do(ctx, func(t *tx) error {
		t.holdRow(ByOwner, session)
		var chain, seq, pending int64
		var withdrawn time.Time
		var was regie.Message
		err := t.row(`SELECT m.session, m.seq, m.pending_seq, m.withdrawn_at, b.body FROM messages m JOIN sessions s ON s.n = m.session
			LEFT JOIN events e ON e.chain = m.session AND e.seq = coalesce(m.seq, m.pending_seq) LEFT JOIN event_bodies b ON b.n = e.n
			WHERE m.id = ? AND s.id = ? AND s.deleted_at IS NULL`, message, session).Scan(&chain, &seq, &pending, &withdrawn, asJSON{&was})
		switch {
		case err != nil:
			return unlessFound(err, notFound("message", message))
		case !token.IsZero() && was.Author.TokenID != token:
			return notFound("message", message)
		case !withdrawn.IsZero():
			return nil
		case seq > 0 || pending == 0:
			return errAdmitted
		}
		t.pending.withdrawMessage(session, chain, withdrawnEvent{MessageID: message, TakenBack: true}, now)
		return nil
	})
	if err == nil {
		out, err = readMessage(ctx, s.read, message)
	}
	return out, err
}

// Withdrawn returns the messages that the end of a session's newest round gave back, oldest first
// (decision 10).
func (s roundStore) Withdrawn(ctx context.Context, session regie.ID) ([]regie.Message, error) {
	return readMessages(ctx, s.read, `WHERE s.id = ? AND m.withdrawn_at IS NOT NULL AND m.taken_back = 0 AND m.pending_seq > coalesce((SELECT o.seq FROM rounds r
			JOIN messages o ON o.id = r.trigger_message_id WHERE r.session = s.n ORDER BY r.number DESC LIMIT 1), 0) ORDER BY m.pending_seq`, session)
}

func (t pendingTx) closeSession(session regie.ID, chain int64, reason regie.SessionEnd, now time.Time) {
	t.exec(`UPDATE sessions SET state = 'CLOSED', end_reason = ?, closed_at = ?, paused_at = NULL, lease_holder = NULL, lease_until = NULL
		WHERE n = ?`, nullIfEmpty(reason), now.UnixMicro(), chain)
	t.automations.endRun(chain, reason, now)
	t.appendEvent(session, chain, now, regie.EventSessionState, stateEvent{State: regie.SessionClosed, End: reason})
}
