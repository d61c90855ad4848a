package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Fork copies a session's thread, up to the end of the exchange at a point, into a new session:
// messages and settled calls under new ids, and nothing that could run (decision 17). The new log
// begins with the origin of the fork and binds the copies like anything else. So neither session
// needs the other's content; whole results and attachments are blobs, which both reference.
//
// It returns CodeNotFound for a missing session or round, CodeBadRequest for a point outside the
// log, and CodeConflict for a message with erased content. The same fork again changes nothing.
func (s sessionStore) Fork(ctx context.Context, in store.Fork) (store.Forked, error) {
	now := time.Now().UTC()
	if in.SessionID.IsZero() {
		in.SessionID = regie.NewID()
	}
	if out, there, err := s.forkedBefore(ctx, in); there || err != nil {
		return out, err
	}
	c := copying{now: now, to: in.SessionID, messages: map[regie.ID]regie.ID{}, calls: map[regie.ID]regie.ID{}}
	if err := s.readSnapshot(ctx, func(ctx context.Context, q querier) error { return c.readSource(ctx, q, in) }); err != nil {
		return store.Forked{}, explainError(err, FileName)
	}
	c.copyThread()
	err := s.writer.do(ctx, func(t *tx) error { return c.insertCopies(t, in.From) })
	return c.out, err
}

// forkedBefore looks for the session of an earlier, equal fork.
func (s sessionStore) forkedBefore(ctx context.Context, in store.Fork) (out store.Forked, there bool, err error) {
	out.Session, _, err = readSession(ctx, s.read, in.SessionID)
	switch {
	case regie.CodeOf(err) == regie.CodeNotFound:
		return out, false, nil
	case err != nil:
		return out, false, explainError(err, FileName)
	case out.Session.ForkedFrom == nil || out.Session.ForkedFrom.SessionID != in.From:
		return out, true, regie.Errorf(regie.CodeConflict, "the session id %s is taken", in.SessionID)
	}
	err = s.read.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(m.calls), 0) FROM messages m JOIN sessions s ON s.n = m.session
		WHERE s.id = ? AND (m.round_id NOT IN (SELECT id FROM rounds r WHERE r.session = s.n)
			OR m.system_type = 'UNDONE' AND NOT EXISTS (SELECT 1 FROM undos u WHERE u.message_id = m.id))`, in.SessionID).Scan(&out.Messages, &out.Calls)
	return out, true, explainError(err, FileName)
}

// copying is a fork on its way into the store. The source is immutable, but for an UNKNOWN call
// that a person resolves meanwhile: its copy stays UNKNOWN, and a person has to resolve it too.
type copying struct {
	now      time.Time
	to       regie.ID
	thread   store.Thread
	out      store.Forked
	messages map[regie.ID]regie.ID // new ids by old ones
	calls    map[regie.ID]regie.ID
	copies   []regie.Message
	rows     []regie.Call
	events   []logEvent
	places   []int // of the copies' events
	gone     regie.Supersede
}

// readSource reads the source's thread up to the point.
func (c *copying) readSource(ctx context.Context, q querier, in store.Fork) error {
	from, _, err := readSession(ctx, q, in.From)
	if err != nil {
		return err
	}
	at, err := cutPoint(ctx, q, in)
	if err != nil {
		return err
	}
	if c.thread, err = readThread(ctx, q, in.From, 0); err != nil {
		return err
	}
	last, open := store.Cut(c.thread, at)
	for i := range c.thread.Messages {
		m := &c.thread.Messages[i]
		if m.Seq > last {
			c.thread.Messages = c.thread.Messages[:i]
			break
		}
		if _, err := m.Variant(); err != nil {
			return regie.Errorf(regie.CodeConflict, "the content of message %d was erased: fork the session before it",
				m.Seq)
		}
	}
	c.out.Open = open
	c.out.Session = from
	session := &c.out.Session
	session.ID, session.Type, session.State, session.EndReason, session.Origin = c.to,
		regie.SessionChat, regie.SessionIdle, "", ""
	session.CreatedAt, session.LastActivity, session.Epoch, session.TokenID = c.now, c.now, 0, in.TokenID
	if session.ApprovalMode != regie.ModePlan { // as with rules: a fork inherits nothing that allows
		session.ApprovalMode = ""
	}
	session.ForkedFrom = &regie.ForkPoint{SessionID: in.From, Seq: last}
	if in.Name != "" {
		session.Name = in.Name
	}
	return nil
}

// cutPoint returns the point at which the source is cut.
func cutPoint(ctx context.Context, q querier, in store.Fork) (int64, error) {
	var head int64
	if err := q.QueryRowContext(ctx, "SELECT head FROM chains WHERE owner_id = ?", in.From).Scan(&head); err != nil {
		return 0, err
	}
	if !in.Round.IsZero() {
		var last sql.NullInt64
		err := q.QueryRowContext(ctx, `SELECT max(m.seq) FROM rounds r JOIN sessions s ON s.n = r.session JOIN messages m ON m.session = s.n AND m.round_id = r.id
			WHERE r.id = ? AND s.id = ?`, in.Round, in.From).Scan(&last)
		if err == nil && !last.Valid {
			err = regie.Errorf(regie.CodeNotFound, "there is no run %s in this session", in.Round)
		}
		return last.Int64, err
	}
	switch {
	case in.At == 0:
		return head, nil
	case in.At < 0 || in.At > head:
		return 0, regie.Errorf(regie.CodeBadRequest, "the log of this session goes from 1 to %d and has no %d",
			head, in.At)
	}
	return in.At, nil
}

// copyThread makes the copies and their log.
func (c *copying) copyThread() {
	for i := range c.thread.Messages {
		m := &c.thread.Messages[i]
		c.messages[m.ID] = regie.NewID()
		for _, call := range c.thread.Calls[m.ID] {
			c.calls[call.ID] = regie.NewID()
		}
	}
	c.addEvent(regie.EventSession, c.out.Session)
	for i := range c.thread.Messages {
		m := &c.thread.Messages[i]
		c.gone.See(m)
		c.copies = append(c.copies, c.copyMessage(m))
		c.places = append(c.places, len(c.events))
		c.addEvent(regie.EventMessage, &c.copies[len(c.copies)-1])
		for _, call := range c.thread.Calls[m.ID] {
			call = c.copyCall(call)
			c.rows = append(c.rows, call)
			c.addEvent(regie.EventToolResult, copiedCall(&call))
		}
	}
	for i := range c.copies { // as of the fork: an undo behind its point does not count in it
		c.copies[i].Superseded = c.gone.Hides(i+1, &c.copies[i])
	}
	c.out.Messages, c.out.Calls = len(c.copies), len(c.rows)
}

func (c *copying) addEvent(kind regie.EventType, body any) {
	c.events = append(c.events, newEvent(kind, body))
}

// copyMessage copies a message. The copy keeps its round and exchange, as its origin.
func (c *copying) copyMessage(m *regie.Message) regie.Message {
	out := *m
	if out.Copied == nil {
		out.Copied = &regie.Copied{MessageID: m.ID, At: m.Time}
	}
	out.ID, out.SessionID, out.Time, out.ClientID = c.messages[m.ID], c.to, c.now, ""
	if m.AI != nil {
		reply := *m.AI
		reply.Parts = append([]regie.Part(nil), m.AI.Parts...)
		for i := range reply.Parts {
			if reply.Parts[i].Type == regie.PartCall {
				reply.Parts[i].CallID = c.calls[reply.Parts[i].CallID]
			}
		}
		out.AI = &reply
	}
	if m.System != nil {
		content := *m.System
		content.CallIDs = nil
		for _, id := range m.System.CallIDs {
			content.CallIDs = append(content.CallIDs, c.calls[id])
		}
		if !content.Enriches.IsZero() {
			content.Enriches, content.Queries = c.messages[content.Enriches], slices.Clone(m.System.Queries)
			for i := range content.Queries {
				content.Queries[i].CallID = c.calls[content.Queries[i].CallID]
			}
		}
		out.System = &content
	}
	return out
}

// copyCall copies a call, without its evidence: only the source can be undone.
func (c *copying) copyCall(call regie.Call) regie.Call {
	if call.CopyOf.IsZero() {
		call.CopyOf = call.ID
	}
	call.MessageID, call.ID, call.SessionID, call.Intent, call.Changed = c.messages[call.MessageID],
		c.calls[call.ID], c.to, nil, nil
	if !call.DuplicateOf.IsZero() {
		call.DuplicateOf = c.calls[call.DuplicateOf]
	}
	return call
}

// copiedCall returns a copied call's entry in the fork's log: all that the source's log has in
// several entries.
func copiedCall(c *regie.Call) callEvent {
	event := settledEvent(c)
	event.CopyOf, event.Kind, event.Executed = c.CopyOf, c.Kind, hashOrZero(c.Executed)
	if r := c.Resolution; r != nil {
		at := r.At
		event.ResolvedAs, event.ResolvedBy, event.Note, event.ResolvedAt = r.As, r.By, r.Note, &at
	}
	return event
}

// insertCopies writes the copies. The source must still exist: its content must not outlive a
// removal.
func (c *copying) insertCopies(t *tx, from regie.ID) error {
	source, err := t.holdSession(from)
	if err != nil {
		return err
	}
	session, at := &c.out.Session, c.now.UnixMicro()
	made, chain, err := t.sessions.insertChain(session.ID, c.now)
	if err != nil || !made { // another one of this id was faster: it is the same fork
		return err
	}
	// The messages carry the taint (decision 34), the session the wish to be asked (decision 49).
	t.exec(`INSERT INTO sessions (n, id, workspace_id, user_id, agent, agent_version, name, type, origin, provider, model, require_validation, approval_mode, read_only, tainted, read_private,
			forked_from, forked_at_seq, token_id, state, created_at)
		SELECT ?, ?, workspace_id, user_id, agent, agent_version, ?, 'CHAT', 'fork', provider, model, require_validation, ?, read_only, tainted, read_private, id, ?, ?, 'IDLE', ?
		FROM sessions WHERE n = ?`, chain, session.ID, session.Name, string(session.ApprovalMode), session.ForkedFrom.Seq, session.TokenID, at, source.chain)
	for i := range c.rows {
		t.rounds.insertCall(chain, &c.rows[i])
	}
	first := t.appendEvents(session.ID, chain, c.now, c.events...)
	for i := range c.copies {
		c.copies[i].Seq = first + int64(c.places[i])
		t.rounds.insertMessage(chain, &c.copies[i], false)
	}
	// The user who forks has read the copies.
	t.exec("INSERT INTO read_marks (user_id, session, read_seq) VALUES (?, ?, ?)", session.UserID, chain,
		first+int64(len(c.events))-1)
	return nil
}
