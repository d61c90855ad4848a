package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
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

// pendingRound is what is kept of the submission of a message that waits: the round that it would
// begin, and what that must not withdraw.
type pendingRound struct {
	regie.Round
	LeavesWaits     bool `json:"leaves_waits,omitempty"`
	LeavesApprovals bool `json:"leaves_approvals,omitempty"`
}

// keepPending stores a message that came while a round of its session was open. Where that waits
// and the message is to steer it, what it waits for is withdrawn.
func (t pendingTx) keepPending(in store.Submission, chain int64, out *store.Accepted, now time.Time) error {
	mode := in.WhenBusy
	if mode == "" {
		mode = store.Queue
	}
	round, err := json.Marshal(pendingRound{in.Round, in.LeavesWaits, in.LeavesApprovals})
	if err != nil {
		return err
	}
	var open regie.ID
	var state string
	if err := t.row("SELECT id, state FROM rounds WHERE session = ? AND state <> 'ENDED'",
		chain).Scan(&open, &state); err != nil {
		return err
	}
	if in.Command {
		return regie.Errorf(regie.CodeRoundInProgress,
			"a round of this session is open, and a command is not queued: give it when that has ended, or interrupt it")
	}
	if mode == store.Reject {
		return regie.Errorf(regie.CodeRoundInProgress,
			"a round of this session is open: wait for its end, or interrupt it")
	}
	if mode == store.Steer && (in.LeavesWaits || in.LeavesApprovals) {
		asked, err := t.asked(open)
		if err != nil {
			return err
		}
		if asked.kept(in.LeavesWaits, in.LeavesApprovals) {
			return store.ErrLeavesWaits
		}
	}
	out.Pending, out.RoundID, out.Message.RoundID = true, open, regie.ID{}
	out.Message.Opening = out.Message.Opening.Waiting()
	event, err := newEvent(regie.EventMessagePending, pendingEvent{&out.Message, mode})
	if err != nil {
		return err
	}
	seq, err := t.appendEvents(in.SessionID, chain, now, []logEvent{event})
	if err != nil {
		return err
	}
	out.Message.Seq = seq
	if err := t.insertPendingMessage(chain, &out.Message); err != nil {
		return err
	}
	if err := t.exec("INSERT INTO pending (message_id, session, mode, round) VALUES (?, ?, ?, ?)", out.Message.ID,
		chain, string(mode), string(round)); err != nil {
		return err
	}
	fault.Point(fault.PendingBefore)
	t.noteWaiting(chain, true) // never too few: an entry without a row is found out at the next look
	if mode != store.Steer || state != "WAITING" {
		return nil
	}
	if err := t.waits.withdraw(open, regie.NotRunSuperseded, superseded, now); err != nil {
		return err
	}
	out.Ready, err = t.waits.wake(in.SessionID, chain, open, now)
	return err
}

// waiting counts what a round has asked people and nobody has answered.
type waiting struct{ approvals, questions int }

func (t pendingTx) asked(round regie.ID) (a waiting, err error) {
	err = t.row(`SELECT count(CASE WHEN kind = 'APPROVAL' THEN 1 END), count(CASE WHEN kind = 'QUESTION' THEN 1 END)
		FROM waits WHERE round_id = ? AND state = 'OPEN'`, round).Scan(&a.approvals, &a.questions)
	return a, err
}

// kept reports whether something of it is what a message must not withdraw.
func (a waiting) kept(leavesWaits, leavesApprovals bool) bool {
	return a.approvals > 0 && (leavesWaits || leavesApprovals) || a.questions > 0 && leavesWaits
}

// superseded says why a call was not run that a message steered past.
const superseded = "the person wrote something else instead of answering"

// parkUnlessSteered parks a round, unless a message that steers it came before, of somebody who may
// answer: then what it would wait for is withdrawn at once.
func (t pendingTx) parkUnlessSteered(fence store.Fence, now time.Time) (bool, error) {
	steering, err := t.pendingOf(fence.Chain, true)
	if err != nil {
		return false, err
	}
	asked, err := t.asked(fence.RoundID)
	if err != nil {
		return false, err
	}
	if asked != (waiting{}) && slices.ContainsFunc(steering, func(w waitingMessage) bool {
		return !asked.kept(w.leavesWaits, w.leavesApprovals)
	}) {
		if err := t.waits.withdraw(fence.RoundID, regie.NotRunSuperseded, superseded, now); err != nil {
			return false, err
		}
	}
	return t.waits.park(fence, now)
}

// insertPendingMessage stores the row of a message whose content is the body of its message_pending
// event until it is admitted.
func (t pendingTx) insertPendingMessage(chain int64, m *regie.Message) error {
	variant, err := m.Variant()
	if err != nil {
		return err
	}
	err = t.exec(`INSERT INTO messages (id, session, pending_seq, sender, variant, author_kind, author_id, client_id)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, m.ID, chain, m.Seq, string(m.Sender), string(variant), string(m.Author.Kind), m.Author.ID, null(m.ClientID))
	return err
}

// readPending remembers which chains have pending messages, so that nothing is asked of the others.
func (w *writer) readPending(ctx context.Context) error {
	rows, err := w.conn.QueryContext(ctx, "SELECT DISTINCT session FROM pending")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var chain int64
		if err := rows.Scan(&chain); err != nil {
			return err
		}
		w.pending[chain] = true
	}
	return rows.Err()
}

// waitingMessage is a pending message on its way into the thread.
type waitingMessage struct {
	message                      regie.Message
	round                        regie.Round
	leavesWaits, leavesApprovals bool
}

func (t pendingTx) pendingOf(chain int64, steerOnly bool) ([]waitingMessage, error) {
	if waits, err := t.mayWait(chain); !waits || err != nil {
		return nil, err
	}
	var out []waitingMessage
	left := 0
	err := t.each(`SELECT m.id, p.mode, p.round, b.body FROM pending p JOIN messages m ON m.id = p.message_id
		JOIN events e ON e.chain = m.session AND e.seq = m.pending_seq JOIN event_bodies b ON b.n = e.n WHERE p.session = ? ORDER BY p.n`, []any{chain}, func(row found) error {
		left++
		var w waitingMessage
		var mode, round, body string
		if err := row.Scan(&w.message.ID, &mode, &round, &body); err != nil {
			return err
		}
		if steerOnly && mode != string(store.Steer) {
			return nil
		}
		if err := json.Unmarshal([]byte(body), &w.message); err != nil {
			return regie.Errorf(regie.CodeCorrupt, "message %s cannot be read: %v", w.message.ID, err)
		}
		var kept pendingRound
		if err := json.Unmarshal([]byte(round), &kept); err != nil {
			return regie.Errorf(regie.CodeCorrupt, "the round of message %s cannot be read: %v", w.message.ID, err)
		}
		w.round, w.leavesWaits, w.leavesApprovals = kept.Round, kept.LeavesWaits, kept.LeavesApprovals
		out = append(out, w)
		return nil
	})
	if err == nil && left == 0 {
		t.noteWaiting(chain, false)
	}
	return out, err
}

// admit gives pending messages their places in the thread, as part of a round; where they begin it,
// the first one says so.
func (t pendingTx) admit(fence store.Fence, round regie.ID, waiting []waitingMessage,
	now time.Time,
) ([]regie.Message, error) {
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
		event, err := newEvent(regie.EventMessage, &m)
		if err != nil {
			return nil, err
		}
		events, admitted = append(events, event), append(admitted, m)
	}
	fault.Point(fault.AdmitBefore)
	first, err := t.appendEvents(fence.SessionID, fence.Chain, now, events)
	if err != nil {
		return nil, err
	}
	for i := range admitted {
		m := &admitted[i]
		m.Seq = first + int64(i)
		if err := t.one(errAdmitted, "UPDATE messages SET seq = ?, round_id = ? WHERE id = ? AND seq IS NULL",
			m.Seq, round, m.ID); err != nil {
			return nil, err
		}
		if err := t.one(errAdmitted, "DELETE FROM pending WHERE message_id = ?", m.ID); err != nil {
			return nil, err
		}
	}
	return admitted, nil
}

var errAdmitted = regie.Errorf(regie.CodeConflict,
	"the agent has the message already: it cannot be taken back any more")

// admitSteering lets the messages that steer an open round into it: they stand behind the results
// that were just stored.
func (t pendingTx) admitSteering(fence store.Fence, out *store.Outcome, now time.Time) error {
	waiting, err := t.pendingOf(fence.Chain, true)
	if err == nil && len(waiting) > 0 {
		out.Admitted, err = t.admit(fence, fence.RoundID, waiting, now)
	}
	return err
}

// afterEnd lets all that waited for the end of a round into one next round (decision 10), or gives
// it back where the session closes.
func (t pendingTx) afterEnd(fence store.Fence, end *store.End, out *store.Outcome, now time.Time) error {
	waiting, err := t.pendingOf(fence.Chain, false)
	if err != nil {
		return err
	}
	closes := end.Close
	if end.Reason == regie.EndStopped {
		closes = regie.SessionCancelled
	}
	if closes != "" {
		if err := t.giveBack(fence, waiting, now); err != nil {
			return err
		}
		fault.Point(fault.CloseBefore)
		return t.closeSession(fence.SessionID, fence.Chain, closes, now)
	}
	if len(waiting) == 0 {
		err := t.exec(
			"UPDATE sessions SET state = 'IDLE', paused_at = NULL, lease_holder = NULL, lease_until = NULL WHERE n = ?", fence.Chain)
		return err
	}
	return t.nextRound(fence, end.Reason, waiting, out, now)
}

// nextRound starts the round that messages have waited for, as part of the end of the one before:
// behind what waits for a slot by now.
func (t pendingTx) nextRound(fence store.Fence, ended regie.RoundEnd, waiting []waitingMessage,
	out *store.Outcome, now time.Time,
) error {
	round := waiting[len(waiting)-1].round
	next := store.Fence{SessionID: fence.SessionID, RoundID: round.ID, Epoch: fence.Epoch + 1, Chain: fence.Chain}
	limits, err := json.Marshal(round.Limits)
	if err != nil {
		return err
	}
	// A pause that met the end holds on for what comes next (invariant 12).
	var pausedAt sql.NullInt64
	var rounds int
	if err := t.row(
		"SELECT paused_at, (SELECT coalesce(max(number), 0) FROM rounds WHERE session = sessions.n) FROM sessions WHERE n = ?", fence.Chain).
		Scan(&pausedAt, &rounds); err != nil {
		return err
	}
	state, queued := regie.SessionActive, false
	if pausedAt.Valid {
		state = regie.SessionPaused
	} else if queued, err = t.slots.goesOn(fence.Chain, now); err != nil {
		return err
	}
	if queued {
		state = regie.SessionQueued
	}
	if err := t.exec("UPDATE sessions SET state = ?, epoch = ?, lease_holder = NULL, lease_until = NULL WHERE n = ?",
		string(state), next.Epoch, fence.Chain); err != nil {
		return err
	}
	in := store.Submission{SessionID: fence.SessionID, Message: waiting[len(waiting)-1].message, Round: round}
	if err := t.rounds.insertRound(fence.Chain, next.Epoch, in, rounds+1, string(limits), now); err != nil {
		return err
	}
	if ended == regie.EndClientTools {
		if err := t.rounds.leaveClients(next, round.TraceID, now); err != nil {
			return err
		}
	}
	if _, err := t.admit(fence, round.ID, waiting, now); err != nil {
		return err
	}
	started, err := newEvent(regie.EventRound, roundEvent{
		RoundID: round.ID, State: regie.RoundRunning, Reason: round.Reason, TraceID: round.TraceID, Session: state,
	})
	if err != nil {
		return err
	}
	if _, err = t.appendEvents(fence.SessionID, fence.Chain, now, []logEvent{started}); err != nil {
		return err
	}
	switch state {
	case regie.SessionPaused:
		return t.exec("UPDATE rounds SET stop_request = 'PAUSE' WHERE id = ?", round.ID)
	case regie.SessionQueued:
		out.Next = round.ID
		return t.waits.tellState(fence.SessionID, fence.Chain, state, now)
	}
	out.Next = round.ID
	t.needsHolder(round.ID, headStart)
	return nil
}

// withdrawnEvent is the body of message_withdrawn; what the message says is the body of its
// message_pending. TakenBack says that the person took it back, and no end of the session gave it.
type withdrawnEvent struct {
	MessageID regie.ID `json:"message_id"`
	TakenBack bool     `json:"taken_back,omitempty"`
}

// giveBack marks pending messages as withdrawn, because their session stops, and tells it
// (decisions 6 and 10).
func (t pendingTx) giveBack(fence store.Fence, waiting []waitingMessage, now time.Time) error {
	events := make([]logEvent, 0, len(waiting))
	for i := range waiting {
		id := waiting[i].message.ID
		event, err := newEvent(regie.EventMessageWithdrawn, withdrawnEvent{MessageID: id})
		if err != nil {
			return err
		}
		events = append(events, event)
		if err := t.one(errAdmitted, "UPDATE messages SET withdrawn_at = ? WHERE id = ? AND seq IS NULL",
			now.UnixMicro(), id); err != nil {
			return err
		}
		if err := t.one(errAdmitted, "DELETE FROM pending WHERE message_id = ?", id); err != nil {
			return err
		}
	}
	if len(events) == 0 {
		return nil
	}
	_, err := t.appendEvents(fence.SessionID, fence.Chain, now, events)
	return err
}

// TakeBack takes a message back that waits for its turn, and returns it: it never gets a place in
// the thread (decision 10). Whether it does or the round takes it in is decided here: who comes
// second is told so, by CodeConflict. Taking back what came back already changes nothing. With a
// token, what did not come with it is not there.
func (s roundStore) TakeBack(ctx context.Context, session, message, token regie.ID) (regie.Message, error) {
	now := time.Now().UTC()
	err := s.writer.do(ctx, func(t *tx) error {
		t.hold(ByOwner, session)
		var chain int64
		var seq, pending, withdrawn sql.NullInt64
		var body sql.NullString
		err := t.row(`SELECT m.session, m.seq, m.pending_seq, m.withdrawn_at, b.body FROM messages m JOIN sessions s ON s.n = m.session
			LEFT JOIN events e ON e.chain = m.session AND e.seq = coalesce(m.seq, m.pending_seq) LEFT JOIN event_bodies b ON b.n = e.n
			WHERE m.id = ? AND s.id = ? AND s.deleted_at IS NULL`, message, session).Scan(&chain, &seq, &pending, &withdrawn, &body)
		switch {
		case errors.Is(err, sql.ErrNoRows), err == nil && !token.IsZero() && !cameWith(body.String, token):
			return notFound("message", message)
		case err != nil || withdrawn.Valid:
			return err
		case seq.Valid || !pending.Valid:
			return errAdmitted
		}
		event, err := newEvent(regie.EventMessageWithdrawn, withdrawnEvent{MessageID: message, TakenBack: true})
		if err != nil {
			return err
		}
		if err := t.one(errAdmitted,
			"UPDATE messages SET withdrawn_at = ?, taken_back = 1 WHERE id = ? AND seq IS NULL",
			now.UnixMicro(), message); err != nil {
			return err
		}
		if err := t.one(errAdmitted, "DELETE FROM pending WHERE message_id = ?", message); err != nil {
			return err
		}
		_, err = t.appendEvents(session, chain, now, []logEvent{event})
		return err
	})
	if err != nil {
		return regie.Message{}, err
	}
	var out []regie.Message
	err = s.snapshot(ctx, func(ctx context.Context, q querier) (err error) {
		out, err = readMessages(ctx, q, "WHERE m.id = ?", message)
		return err
	})
	if err == nil && len(out) == 0 {
		err = notFound("message", message)
	}
	if err != nil {
		return regie.Message{}, explain(err, FileName)
	}
	return out[0], nil
}

// cameWith reports whether a message, as it is stored, came with a token; of an erased one nobody
// knows.
func cameWith(body string, token regie.ID) bool {
	var m regie.Message
	return json.Unmarshal([]byte(body), &m) == nil && m.Author.TokenID == token
}

// Withdrawn returns the messages that the end of a session's newest round gave back, in the order
// in which they came (decision 10).
func (s roundStore) Withdrawn(ctx context.Context, session regie.ID) ([]regie.Message, error) {
	return readMessages(ctx, s.read, `WHERE s.id = ? AND m.withdrawn_at IS NOT NULL AND m.taken_back = 0 AND m.pending_seq > coalesce((SELECT o.seq FROM rounds r
			JOIN messages o ON o.id = r.trigger_message_id WHERE r.session = s.n ORDER BY r.number DESC LIMIT 1), 0) ORDER BY m.pending_seq`, session)
}

func (t pendingTx) closeSession(session regie.ID, chain int64, reason regie.SessionEnd, now time.Time) error {
	if err := t.exec(`UPDATE sessions SET state = 'CLOSED', end_reason = ?, closed_at = ?, paused_at = NULL, lease_holder = NULL, lease_until = NULL
		WHERE n = ?`, null(reason), now.UnixMicro(), chain); err != nil {
		return err
	}
	event, err := newEvent(regie.EventSessionState, stateEvent{State: regie.SessionClosed, End: reason})
	if err != nil {
		return err
	}
	_, err = t.appendEvents(session, chain, now, []logEvent{event})
	return err
}
