package sqlite

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// heard selects the messages for a person to read: answers and notices, without intermediate steps
// and their results (decision 45).
const heard = `m.excluded = 0 AND (m.sender = 'AI' AND m.calls = 0 OR m.sender = 'SYSTEM' AND m.system_type <> 'DATA_ADDED' AND m.system_type <> 'ACTIONS_EXECUTED'
	AND m.system_type <> 'CONTEXT_SUMMARY' AND m.system_type <> 'FORMAT_ERROR' AND m.system_type <> 'UNDONE')`

// summaries reads the list entries of sessions s; ?1 is the user for whom unread messages count.
const summaries = "SELECT " + sessionColumns + `, w.name, coalesce(w.root, ''), c.head,
		(SELECT count(*) FROM messages m WHERE m.session = s.n AND m.seq IS NOT NULL),
		(SELECT count(*) FROM rounds r WHERE r.session = s.n),
		(SELECT count(*) FROM messages m WHERE m.session = s.n AND m.seq > coalesce(k.read_seq, 0) AND ` + heard + `),
		(SELECT r.end_reason FROM rounds r WHERE r.session = s.n ORDER BY r.number DESC LIMIT 1),
		EXISTS (SELECT 1 FROM messages m JOIN rounds r ON r.id = m.round_id WHERE m.session = s.n AND m.seq > coalesce(k.read_seq, 0)
			AND r.session = s.n AND r.state = 'ENDED')
	FROM sessions s JOIN chains c ON c.n = s.n JOIN workspaces w ON w.id = s.workspace_id LEFT JOIN read_marks k ON k.session = s.n AND k.user_id = ?1
	WHERE s.deleted_at IS NULL `

// Sessions lists the sessions that a filter selects, the latest active first (spec 10.1), without
// sub-agents' and templates. It returns CodeBadID for a part that is not hexadecimal.
func (s sessionStore) Sessions(ctx context.Context, filter store.SessionFilter) ([]store.SessionSummary, error) {
	if err := checkPart(filter.Short); err != nil {
		return nil, err
	}
	if filter.Limit == 0 {
		filter.Limit = 1000
	}
	out, err := readSummaries(ctx, s.read, summaries+`AND s.type <> 'SUBAGENT' AND s.type <> 'SEED' AND (?8 = 1 OR s.origin <> 'api' AND NOT EXISTS (SELECT 1 FROM visitors v WHERE v.session_id = s.id)) AND (w.root = ?2 OR ?2 = '')
		AND (s.id = ?3 OR ?3 IS NULL OR s.n = (SELECT session FROM rounds WHERE id = ?3))
		AND (?4 = '' OR `+hasPart("s.id", "?4")+` OR EXISTS (SELECT 1 FROM rounds r WHERE r.session = s.n AND `+hasPart("r.id", "?4")+`))
		AND (s.type = ?9 OR ?9 = '')
		AND (CAST(?6 AS BIGINT) = 0 OR c.head_at < ?6 OR c.head_at = ?6 AND s.id < ?7)
		ORDER BY c.head_at DESC, s.id DESC LIMIT ?5`, filter.UserID, filter.Root, filter.ID, filter.Short, filter.Limit, filter.Before.Micros(), filter.Before.ID,
		boolToInt(filter.API || filter.Short != "" || !filter.ID.IsZero()), string(filter.Type))
	if err == nil {
		err = s.queuePositions(ctx, s.read, out)
	}
	return out, err
}

// checkPart refuses a part of an id that is not hexadecimal.
func checkPart(part string) error {
	if strings.Trim(part, "0123456789abcdefABCDEF") != "" {
		return regie.Errorf(regie.CodeBadID, "%q is not part of an id", part)
	}
	return nil
}

// hasPart matches an id by its end, or its beginning from eight digits on.
func hasPart(id, part string) string {
	return "(hex(" + id + ") LIKE '%' || " + part + " OR length(" + part + ") >= 8 AND hex(" + id +
		") LIKE " + part + " || '%')"
}

func readSummaries(ctx context.Context, q querier, query string, args ...any) ([]store.SessionSummary, error) {
	return queryList(ctx, q, func(row scanner, s *store.SessionSummary) error {
		return scanSession(row, &s.Session, &s.Workspace, &s.Root, &s.Head, &s.Messages, &s.Rounds, &s.Unread, &s.LastEnd,
			&s.Finished)
	}, query, args...)
}

// UserNamed returns the id of the user of that name, or the zero id.
func (s sessionStore) UserNamed(ctx context.Context, name string) (id regie.ID, err error) {
	err = s.read.QueryRowContext(ctx, "SELECT id FROM users WHERE name = ?", name).Scan(&id)
	return id, unlessFound(err, nil)
}

// SessionView returns a session with its thread, in one snapshot (spec 10.1 sessions show), and
// with the read mark of user.
func (s sessionStore) SessionView(ctx context.Context, id, user regie.ID) (store.SessionView, error) {
	var view store.SessionView
	err := s.readSnapshot(ctx, func(ctx context.Context, q querier) (err error) {
		if view, err = readView(ctx, q, id, user); err != nil {
			return err
		}
		lines := []store.SessionSummary{view.SessionSummary}
		err = s.queuePositions(ctx, q, lines)
		view.SessionSummary = lines[0]
		return err
	})
	return view, err
}

func readView(ctx context.Context, q querier, id, user regie.ID) (store.SessionView, error) {
	view := store.SessionView{
		Thread: []store.MessageView{}, History: []regie.Round{}, ActiveTasks: []regie.ID{},
	}
	found, err := readSummaries(ctx, q, summaries+"AND s.id = ?2", user, id)
	if err == nil && len(found) == 0 {
		err = notFound("session", id)
	}
	if err != nil {
		return view, err
	}
	view.SessionSummary = found[0]
	thread, err := readThread(ctx, q, id, 0)
	if err != nil {
		return view, err
	}
	for _, m := range thread.Messages {
		view.Thread = append(view.Thread, store.MessageView{
			Seq: m.Seq, Time: m.Time, Message: m,
			Calls: thread.Calls[m.ID], Superseded: m.Superseded,
		})
	}
	pending, err := readMessages(ctx, q,
		"WHERE s.id = ? AND m.seq IS NULL AND m.withdrawn_at IS NULL ORDER BY m.pending_seq", id)
	if err != nil {
		return view, err
	}
	for _, m := range pending {
		view.Pending = append(view.Pending, store.MessageView{Seq: m.Seq, Time: m.Time, Message: m})
	}
	if view.History, err = queryList(ctx, q, scanRound, "SELECT "+roundColumns+
		" FROM rounds r JOIN sessions s ON s.n = r.session WHERE s.id = ? ORDER BY r.number", id); err != nil {
		return view, err
	}
	if view.Spent, err = readSpending(q.QueryRowContext(ctx, callsOf("",
		"SELECT r.id FROM rounds r JOIN sessions s ON s.n = r.session WHERE s.id = ?1", "", "?2"),
		id, time.Now().Add(-worstCaseFor).UnixMicro())); err != nil {
		return view, err
	}
	if view.Undos, err = readUndos(ctx, q, "WHERE s.id = ?", id); err != nil {
		return view, err
	}
	if view.Waits, err = queryList(ctx, q, func(row scanner, w *regie.Wait) error {
		return row.Scan(&w.ID, &w.RoundID, &w.Kind, &w.ObjectID, &w.Deadline, &w.Since)
	}, `SELECT w.id, w.round_id, w.kind, w.object_id, w.deadline, w.created_at FROM waits w JOIN sessions s ON s.n = w.session
		WHERE s.id = ? AND w.state = 'OPEN' ORDER BY w.created_at, w.id`, id); err != nil {
		return view, err
	}
	if n := len(view.History); n > 0 && view.Type == regie.SessionAutomation {
		last := &view.History[n-1] // an automation's rounds count on
		view.Execution = &regie.Execution{
			StartedAt: view.History[0].StartedAt, EndedAt: last.EndedAt, EndReason: view.EndReason,
			RoundTrips: last.Counters.Total, Tokens: last.Tokens, Cost: view.Spent,
		}
		if err := q.QueryRowContext(ctx, `SELECT s.scheduled_at, s.automation_id, coalesce(f.trigger_kind, 'MANUAL')
			FROM sessions s LEFT JOIN fires f ON f.session_id = s.id WHERE s.id = ?`, id).Scan(
			&view.Execution.ScheduledFor, &view.Execution.AutomationID, &view.Execution.Trigger); err != nil {
			return view, err
		}
	}
	view.Forks, err = queryAll(ctx, q, scanOne[regie.ID],
		"SELECT id FROM sessions WHERE forked_from = ? AND deleted_at IS NULL ORDER BY n",
		id)
	return view, err
}

// Logs returns the owners of logs: users and workspaces, each workspace followed by its sessions in
// the order of their creation, removed ones too.
func (s sessionStore) Logs(ctx context.Context, filter store.LogFilter) ([]store.LogOwner, error) {
	if err := checkPart(filter.Short); err != nil {
		return nil, err
	}
	return queryList(ctx, s.read, func(row scanner, o *store.LogOwner) error {
		return row.Scan(&o.ID, &o.Kind, &o.Name, &o.Workspace, &o.Removed)
	}, `SELECT o.id, o.kind, o.name, o.workspace, o.removed FROM (
			SELECT id, 'workspace' AS kind, name, name AS workspace, 0 AS removed, root, 0 AS n, id AS owner FROM workspaces
			UNION ALL SELECT id, 'user', name, '', 0, NULL, 0, id FROM users
				WHERE EXISTS (SELECT 1 FROM tokens WHERE user_id = users.id) OR EXISTS (SELECT 1 FROM chains WHERE owner_id = users.id)
			UNION ALL SELECT s.id, 'session', s.name, w.name, CASE WHEN s.deleted_at IS NULL THEN 0 ELSE 1 END, w.root, s.n, w.id
				FROM sessions s JOIN workspaces w ON w.id = s.workspace_id) o
		WHERE (o.root = ?1 OR ?1 = '') AND (o.id = ?2 OR ?2 IS NULL) AND (?3 = '' OR o.kind = 'session' AND `+hasPart("o.id", "?3")+`)
		ORDER BY o.owner, o.n`, filter.Root, filter.ID, filter.Short)
}

// Rename renames a session, and logs it. The same name again changes nothing.
func (s sessionStore) Rename(ctx context.Context, id regie.ID, name string) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		held, session, err := t.sessions.readHeld(id)
		if err != nil || held.name == name {
			return err
		}
		session.Name = name
		t.exec("UPDATE sessions SET name = ? WHERE n = ?", name, held.chain)
		t.appendEvent(id, held.chain, now, regie.EventSession, session)
		return nil
	})
}

// Export returns all data for checking a session, in one snapshot (docs/export.md).
func (s sessionStore) Export(ctx context.Context, id regie.ID) (store.SessionExport, error) {
	out := store.SessionExport{
		Format: store.ExportFormat, ExportedAt: time.Now().UTC(),
		Rounds: []store.ExportedRound{}, Blobs: []store.ExportedBlob{},
	}
	err := s.readOnce(ctx, func(ctx context.Context, q querier) (err error) {
		if out.Session, out.Workspace, err = readSession(ctx, q, id); err != nil {
			return err
		}
		view, err := readView(ctx, q, id, regie.ID{})
		if err != nil {
			return err
		}
		out.Messages, out.Pending, out.Undos = view.Thread, view.Pending, view.Undos
		for i := range view.History {
			round, err := exportRound(ctx, q, &view.History[i])
			if err != nil {
				return err
			}
			out.Rounds = append(out.Rounds, round)
		}
		inbox, err := readInbox(ctx, q, store.InboxFilter{SessionID: id, Closed: true})
		if err != nil {
			return err
		}
		out.Approvals, out.Questions = inbox.Approvals, inbox.Questions
		if err := exportLog(ctx, q, &out.Log, id); err != nil {
			return err
		}
		return exportBlobs(ctx, q, &out)
	})
	return out, err
}

func exportLog(ctx context.Context, q querier, out *store.ExportedLog, owner regie.ID) (err error) {
	var chain int64
	var mac []byte
	if err := q.QueryRowContext(ctx, "SELECT n, head, mac FROM chains WHERE owner_id = ?", owner).Scan(&chain,
		&out.Head, &mac); err != nil {
		return err
	}
	out.OwnerID, out.MAC = owner, hex.EncodeToString(mac)
	out.Events, err = queryList(ctx, q, func(row scanner, e *store.ExportedRow) error {
		var mac, body []byte
		err := row.Scan(&e.Seq, &e.Type, &e.AtMicros, &e.BodySHA256, &mac, &body)
		if e.MAC = hex.EncodeToString(mac); body != nil {
			text := string(body)
			e.Body = &text
		}
		return err
	}, `SELECT e.seq, e.type, e.at, e.body, e.mac, b.body FROM events e LEFT JOIN event_bodies b ON b.n = e.n
		WHERE e.chain = ? ORDER BY e.seq`, chain)
	return err
}

// exportBlobs adds the content that messages, calls and rounds reference by hash.
func exportBlobs(ctx context.Context, q querier, out *store.SessionExport) (err error) {
	out.Blobs, err = queryList(ctx, q, func(row scanner, b *store.ExportedBlob) error {
		return row.Scan(&b.Hash, &b.Size, &b.Data)
	}, `SELECT hash, size, data FROM blobs WHERE hash IN (
			SELECT c.result_blob FROM sessions s CROSS JOIN messages m ON m.session = s.n CROSS JOIN calls c ON c.message_id = m.id WHERE s.id = ?1
			UNION SELECT a.blob FROM sessions s CROSS JOIN messages m ON m.session = s.n CROSS JOIN attachments a ON a.message_id = m.id WHERE s.id = ?1
			UNION SELECT r.level1 FROM rounds r JOIN sessions s ON s.n = r.session WHERE s.id = ?1
			UNION SELECT r.level2 FROM rounds r JOIN sessions s ON s.n = r.session WHERE s.id = ?1) ORDER BY hash`, out.Session.ID)
	return err
}

func exportRound(ctx context.Context, q querier, round *regie.Round) (store.ExportedRound, error) {
	out := store.ExportedRound{Round: *round}
	exchanges, err := readExchanges(ctx, q, round.ID, 0)
	out.Exchanges = make([]store.ExportedExchange, len(exchanges))
	for i := 0; err == nil && i < len(exchanges); i++ {
		out.Exchanges[i].Exchange = exchanges[i]
		out.Exchanges[i].Attempts, err = readAttempts(ctx, q, round.ID, exchanges[i].Number)
	}
	return out, err
}
