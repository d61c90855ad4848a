package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
)

// Submit stores a message and the round that it starts, with the intent of its first model call:
// one transition (spec 3). With a Holder it also claims the round. It is idempotent by message id
// and by (session, client id) (spec 2.3). While another round of the session is open the message
// waits, or is refused with CodeRoundInProgress, as the submission says (decision 10). A closed
// chat opens again (decision 6).
func (s roundStore) Submit(ctx context.Context, in store.Submission) (store.Accepted, error) {
	message, round := in.Message, in.Round
	if _, err := message.Variant(); err != nil && !settlesClientCall(&in) {
		return store.Accepted{}, err
	}
	now := time.Now().UTC()
	message.SessionID, message.RoundID, message.TraceID, message.Time = in.SessionID, round.ID, round.TraceID, now
	message.Opening = message.Opening.Beginning(now)
	stored, create := newEvent(regie.EventMessage, &message), newSession(in.New, now)
	var out store.Accepted
	err := s.writer.do(ctx, func(t *tx) error {
		out = store.Accepted{Message: message, RoundID: round.ID}
		t.holdRow(ByOwner, in.SessionID)
		found, err := t.rounds.findEarlier(in.SessionID, message, &out)
		if found || err != nil {
			return err
		}
		epoch, o, err := t.rounds.freeSession(in, create, &out)
		if err != nil || out.Duplicate {
			return err
		}
		if out.Pending {
			return t.pending.keepPending(in, o.chain, &out, now)
		}
		if in.Fire != nil {
			if err := t.automations.takeFire(in.Fire, in.New, o.chain, now); err != nil {
				return err
			}
		}
		var free bool
		if out.Position, free = t.rounds.beginSlot(o, askOf(&in, o.kind), now); !free {
			return store.ErrNoSlot
		}
		// The round is stored before the events: its unique index refuses a second open round.
		t.rounds.insertRound(o.chain, epoch, in, o.rounds+1, now)
		if in.Holder == "" && out.Position == 0 {
			t.needsHolder(round.ID, 0)
		}
		out.Fence = store.Fence{SessionID: in.SessionID, RoundID: round.ID, Epoch: epoch, Chain: o.chain}
		b := batch{fence: out.Fence, now: now}
		if out.Created {
			b.events = append(b.events, create.event)
			t.rounds.importHistory(&b, in.History, now)
		} else if o.clients || len(in.Results) > 0 {
			err = t.rounds.settleClients(&b, &in, &out.Message, now)
		}
		if err != nil {
			return err
		}
		t.rounds.storeSubmission(&b, &in, &out, stored)
		return nil
	})
	if err == nil && in.Holder != "" && !out.Created && !out.Fence.RoundID.IsZero() && out.Position == 0 {
		out.Claimed, err = s.loadClaimed(ctx, out.Fence)
	}
	return out, err
}

// storeSubmission stores the message of a submission and the events of its round.
func (t roundTx) storeSubmission(b *batch, in *store.Submission, out *store.Accepted, stored logEvent) {
	if settlesClientCall(in) { // it is known only now which calls it is about
		b.addMessage(&out.Message)
	} else {
		b.messages, b.events = append(b.messages, placed{&out.Message, len(b.events)}), append(b.events, stored)
	}
	started := roundEvent{
		RoundID: in.Round.ID, State: regie.RoundRunning, Reason: in.Round.Reason, TraceID: in.Round.TraceID,
		Session: regie.SessionActive,
	}
	if out.Position > 0 {
		started.Session = regie.SessionQueued
	}
	if b.addEvent(regie.EventRound, started); out.Position > 0 {
		b.addEvent(regie.EventSessionState, stateEvent{State: regie.SessionQueued, Position: out.Position})
		fault.Point(fault.QueueBefore)
	}
	b.writeBatch(t.tx)
}

// Known reports whether a session has a message with this client's id: sending it again is a repeat
// (spec 2.3). No message has the empty id.
func (s roundStore) Known(ctx context.Context, session regie.ID, clientID string) (known bool, err error) {
	if clientID == "" {
		return false, nil
	}
	err = s.read.QueryRowContext(ctx,
		"SELECT EXISTS (SELECT 1 FROM messages m JOIN sessions s ON s.n = m.session WHERE s.id = ? AND m.client_id = ?)", session, clientID).Scan(&known)
	return known, err
}

// findEarlier looks for the message among the stored ones.
func (t roundTx) findEarlier(session regie.ID, message regie.Message, out *store.Accepted) (bool, error) {
	var seq int64
	var round, owner regie.ID
	query, args := "m.id = ?", []any{message.ID}
	if message.ClientID != "" {
		query, args = "m.client_id = ? AND s.id = ?", []any{message.ClientID, session}
	}
	err := t.row("SELECT m.id, m.seq, m.round_id, s.id FROM messages m JOIN sessions s ON s.n = m.session WHERE "+query,
		args...).
		Scan(&out.Message.ID, &seq, &round, &owner)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err == nil && owner != session {
		return true, regie.Errorf(regie.CodeConflict, "the message id %s is taken", message.ID)
	}
	if err == nil && message.ClientID != "" {
		err = t.sameAgain(out.Message.ID, &message)
	}
	out.Message.Seq, out.RoundID, out.Duplicate = seq, round, true
	if err == nil && seq == 0 { // it still waits for its place in the open round, unless a stop gave it back
		var withdrawn time.Time
		err = t.row(`SELECT coalesce((SELECT r.id FROM rounds r WHERE r.session = m.session AND r.state <> 'ENDED'), m.round_id), m.pending_seq, m.withdrawn_at
			FROM messages m WHERE m.id = ?`, out.Message.ID).Scan(&out.RoundID, &out.Message.Seq, &withdrawn)
		out.Pending = withdrawn.IsZero()
	}
	return true, err
}

// sameAgain returns CodeKeyReused where a stored message differs from a new one with the same
// client id: the new text would be lost silently. It accepts a stored message with erased text, one
// that no person sent, and an answer to a question, which is stored as it was understood.
func (t roundTx) sameAgain(stored regie.ID, message *regie.Message) error {
	var was regie.Message
	err := t.row(`SELECT b.body FROM messages m JOIN events e ON e.chain = m.session AND e.seq = coalesce(m.seq, m.pending_seq) JOIN event_bodies b ON b.n = e.n
		WHERE m.id = ?`, stored).Scan(asJSON{&was})
	if err != nil || was.ExcludeFromPrompt || was.Sender != regie.SenderUser || message.Sender != regie.SenderUser ||
		was.Text == "" && len(was.Rich) == 0 {
		return unlessFound(err, nil)
	}
	if was.Text != message.Text || textOf(was.Rich) != textOf(message.Rich) {
		return errOtherMessage
	}
	return nil
}

// errOtherMessage is the error of a message with the client id of another one.
var errOtherMessage = regie.Errorf(regie.CodeKeyReused,
	"this client_message_id was used for another message: give each message its own")

// freeSession makes the session, active under its first epoch, or checks that it can start a round
// and raises its epoch.
func (t roundTx) freeSession(in store.Submission, create *creation, out *store.Accepted) (epoch int64, o owned,
	err error,
) {
	if create != nil {
		o.workspace, o.user, o.kind = create.session.WorkspaceID, create.session.UserID, slot.KindOf(&create.session)
		if out.Created, o.chain, err = t.sessions.insertSession(create, in.Holder, 1); err != nil || out.Created {
			return 1, o, err
		}
		if create.session.Origin != "" { // another request made it under the same key, or this very one did, concurrently
			found, err := t.findEarlier(in.SessionID, in.Message, out)
			if err == nil && !found {
				err = ErrKeyReused
			}
			return 0, o, err
		}
	}
	var state regie.SessionState
	var kind, origin string
	var undoing bool
	err = t.row(`SELECT n, epoch, state, type, origin, workspace_id, user_id, EXISTS (SELECT 1 FROM undos WHERE session = sessions.n AND state = 'INTENDED'),
			(SELECT coalesce(max(number), 0) FROM rounds WHERE session = sessions.n),
			EXISTS (SELECT 1 FROM calls c WHERE c.session = sessions.n AND c.origin = 'CLIENT' AND c.settled_at IS NULL)
		FROM sessions WHERE id = ? AND deleted_at IS NULL`, in.SessionID).
		Scan(&o.chain, &epoch, &state, &kind, &origin, &o.workspace, &o.user, &undoing, &o.rounds, &o.clients)
	o.kind = kindOf(kind, origin)
	switch {
	case err != nil:
		return 0, o, unlessFound(err, notFound("session", in.SessionID))
	case undoing:
		return 0, o, errUndoing
	case regie.SessionType(kind) == regie.SessionSeed:
		return 0, o, regie.Errorf(regie.CodeConflict, "a template session cannot run: run its automation instead")
	case state == regie.SessionClosed && regie.SessionType(kind) != regie.SessionChat:
		return 0, o, regie.Errorf(regie.CodeConflict, "the session is closed")
	case state != regie.SessionIdle && state != regie.SessionClosed:
		out.Pending = true
		return epoch, o, nil
	}
	epoch++
	t.exec(
		"UPDATE sessions SET state = 'ACTIVE', epoch = ?, lease_holder = ?, closed_at = NULL, end_reason = NULL WHERE n = ?", epoch, nullIfEmpty(in.Holder), o.chain)
	return epoch, o, nil
}

// beginSlot takes the slot of a round that begins, or a place in the queue. It returns the place,
// from 1; the queued session has no holder. 0 means that the round runs, unless no slot is free for
// one that is never queued.
func (t roundTx) beginSlot(o owned, ask slot.Ask, now time.Time) (position int, free bool) {
	d := t.slots.askSlot(o, ask, now)
	if d.Outcome != slot.Queue && d.Outcome != slot.Switch {
		return 0, d.Outcome != slot.Refuse
	}
	t.exec("UPDATE slots SET told = ? WHERE session = ?", d.Position, o.chain)
	t.exec("UPDATE sessions SET state = 'QUEUED', lease_holder = NULL WHERE n = ?", o.chain)
	return d.Position, true
}

func (t roundTx) insertRound(chain, epoch int64, in store.Submission, number int, now time.Time) {
	round := in.Round
	dialect := round.Dialect
	if dialect == "" {
		dialect = regie.DialectNative
	}
	t.exec(`INSERT INTO rounds (id, session, number, reason, state, phase, exchange, limits, epoch, trace_id, agent, agent_pin, provider, model,
			dialect, policy, trigger_message_id, level1, level2, deadline, reserved_microusd, started_at)
		VALUES (?, ?, ?, ?, 'RUNNING', 'MODEL', 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		round.ID, chain, number, string(round.Reason), asJSON{round.Limits}, epoch, round.TraceID, round.Agent, round.Pin,
		round.Provider, round.Model, string(dialect),
		nullIfEmpty(string(round.Policy)), in.Message.ID, round.Level1, round.Level2, toMicros(round.Limits.Deadline(now)),
		in.Reserved, now.UnixMicro())
	if number > 1 {
		t.inheritCounts(chain, round.ID, number-1, settlesClientCall(&in))
	}
	t.openExchange(round.ID, store.Open{Number: 1, Reason: in.Opens(), Reserved: in.Reserved}, now)
}

// inheritCounts continues the counts of the previous round, for a round of an automation: its
// limits are those of the whole session. So does a round that a client's results start. Only a
// person's message gives fresh limits (decision 2).
func (t roundTx) inheritCounts(chain int64, round regie.ID, before int, client bool) {
	t.exec(`UPDATE rounds SET inherits_round = b.id, total = b.total, tokens = b.tokens FROM rounds b
		WHERE rounds.id = ? AND b.session = ? AND b.number = ? AND (? = 1 OR (SELECT type FROM sessions WHERE n = b.session) = 'AUTOMATION')`, round, chain, before, boolToInt(client))
}

// openExchange stores the intent of a model call; empty provider and model are the round's.
func (t roundTx) openExchange(round regie.ID, open store.Open, now time.Time) {
	t.exec(`INSERT INTO exchanges (round_id, number, reason, state, provider, model, reserved_microusd, opened_at)
		VALUES (?, ?, ?, 'OPEN', coalesce(?, (SELECT provider FROM rounds WHERE id = ?)), coalesce(?, (SELECT model FROM rounds WHERE id = ?)), ?, ?)`,
		round, open.Number, string(open.Reason), nullIfEmpty(open.Provider), round, nullIfEmpty(open.Model), round,
		open.Reserved, now.UnixMicro())
}

// insertMessage stores the row of a message. Its content is the body of its event: of
// message_pending until it is admitted.
func (t roundTx) insertMessage(chain int64, m *regie.Message, pending bool) {
	variant, err := m.Variant()
	if t.fail(err) {
		return
	}
	var systemType string
	if m.System != nil {
		systemType = string(m.System.Type)
	}
	var seq, pendingSeq any = m.Seq, nil
	if pending {
		seq, pendingSeq = nil, m.Seq
	}
	t.exec(`INSERT INTO messages (id, session, seq, pending_seq, sender, variant, system_type, author_kind, author_id, client_id, round_id, exchange, calls, excluded,
			superseded) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.ID, chain, seq, pendingSeq, string(m.Sender), string(variant), nullIfEmpty(systemType), string(m.Author.Kind),
		m.Author.ID, nullIfEmpty(m.ClientID), m.RoundID, m.Exchange, len(m.CallIDs()), boolToInt(m.ExcludeFromPrompt),
		boolToInt(m.Superseded))
	for i, segment := range m.Rich {
		if a := segment.Attachment; a != nil {
			t.exec(
				"INSERT INTO attachments (message_id, ordinal, blob, media_type, name, size) VALUES (?, ?, ?, ?, ?, ?)",
				m.ID, i, a.Blob, a.MediaType, a.Name, a.Size)
		}
	}
}

// roundEvent is the body of a round event.
type roundEvent struct {
	RoundID regie.ID          `json:"round_id"`
	State   regie.RoundState  `json:"state"`
	Reason  regie.Reason      `json:"reason,omitempty"`
	End     regie.RoundEnd    `json:"end_reason,omitempty"`
	Note    regie.Sentence    `json:"end_note,omitzero"`
	Stop    regie.StopRequest `json:"stop_request,omitempty"`
	TraceID string            `json:"trace_id,omitempty"`
	// Session is the new state of the session.
	Session regie.SessionState `json:"session_state,omitempty"`
}

// stateEvent is the body of a session_state event.
type stateEvent struct {
	State regie.SessionState `json:"state"`
	End   regie.SessionEnd   `json:"end_reason,omitempty"`
	// Position is the session's place in the queue, from 1. It is logged again when it changes.
	Position int `json:"position,omitempty"`
}
