package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Inbox returns open requests to people, oldest first (spec 4.4), or those that an id or a part of
// one selects, in any state. It returns CodeBadID for a part that is not hexadecimal.
func (s sessionStore) Inbox(ctx context.Context, filter store.InboxFilter) (inbox store.Inbox, err error) {
	if err := checkPart(filter.Short); err != nil {
		return inbox, err
	}
	err = s.readSnapshot(ctx, func(ctx context.Context, q querier) (err error) {
		inbox, err = readInbox(ctx, q, filter)
		return err
	})
	return inbox, err
}

func readInbox(ctx context.Context, q querier, filter store.InboxFilter) (inbox store.Inbox, err error) {
	if inbox.Approvals, err = readApprovals(ctx, q, filter); err != nil {
		return inbox, err
	}
	for i := range inbox.Approvals {
		a := &inbox.Approvals[i]
		if a.Reviews, err = readReviews(ctx, q, "WHERE v.approval_id = ? ORDER BY v.ordinal", a.ID); err != nil {
			return inbox, err
		}
		for n := 0; filter.Brief && n < len(a.Reviews); n++ {
			a.Reviews[n].Arguments, a.Reviews[n].Preview.Diff = nil, ""
		}
	}
	inbox.Questions, err = readQuestions(ctx, q, filter)
	if err != nil || !filter.ID.IsZero() || filter.Short != "" || filter.After.Micros() != 0 {
		return inbox, err
	}
	if inbox.Unknown, err = readUnknown(ctx, q, filter); err == nil {
		inbox.SetAside, err = readAside(ctx, q, filter.UserID)
	}
	return inbox, err
}

// filterArgs returns the filter's values in the order of the queries. A zero id is NULL and selects
// all open ones.
func filterArgs(f store.InboxFilter) []any {
	return []any{f.ID, f.SessionID, f.Root, f.Short, boolToInt(f.Closed), f.After.Micros(), f.After.ID, limitOf(f.Limit)}
}

// limitOf returns a list's page size; 0 is all.
func limitOf(limit int) int { return cmp.Or(limit, math.MaxInt32) }

// inForce selects the rows that are neither revoked nor expired by a time, or all of them.
func inForce(row, all, now string) string {
	return " AND (CAST(" + all + " AS BIGINT) = 1 OR " + row + ".revoked_at IS NULL AND (" + row + ".expires_at IS NULL OR " +
		row + ".expires_at > CAST(" + now + " AS BIGINT)))"
}

// pageClause orders a list and cuts the filter's page off it.
func pageClause(created, id string) string {
	return afterClause(created, id, "?6", "?7") + " LIMIT ?8"
}

// afterClause orders a list, the oldest first, and starts it behind the mark in two parameters.
func afterClause(created, id, at, last string) string {
	return " AND (CAST(" + at + " AS BIGINT) = 0 OR " + created + " > " + at + " OR " + created + " = " + at + " AND " +
		id + " > " + last + ") ORDER BY " + created + ", " + id
}

// byIDClause selects the rows with the filter's id or part of an id; without either, the open rows.
func byIDClause(id, state string) string {
	return "(" + id + " = ?1 OR ?1 IS NULL) AND (?4 = '' OR " + hasPart(id, "?4") + ") AND (?1 IS NOT NULL OR ?4 <> '' OR ?5 <> 0 OR " + state + " = 'OPEN')"
}

func readApprovals(ctx context.Context, q querier, filter store.InboxFilter) ([]regie.Approval, error) {
	return queryList(ctx, q, func(row scanner, a *regie.Approval) error {
		return row.Scan(&a.ID, &a.SessionID, &a.RoundID, &a.Exchange, &a.State, &a.CreatedAt, &a.ExpiresAt, &a.ClosedAt,
			&a.Workspace, &a.Agent, &a.SessionName)
	}, `SELECT a.id, s.id, a.round_id, a.exchange, a.state, a.created_at, a.expires_at, a.closed_at, w.name, s.agent, s.name
		FROM approvals a JOIN sessions s ON s.n = a.session JOIN workspaces w ON w.id = s.workspace_id
		WHERE `+byIDClause("a.id", "a.state")+` AND (s.id = ?2 OR ?2 IS NULL) AND (w.root = ?3 OR ?3 = '') AND s.deleted_at IS NULL`+pageClause("a.created_at", "a.id"), filterArgs(filter)...)
}

func readReviews(ctx context.Context, q querier, where string, args ...any) ([]regie.Review, error) {
	return queryList(ctx, q, func(row scanner, v *regie.Review) error {
		var d regie.Decision
		err := row.Scan(&v.CallID, &v.Tool, &v.Definition, &v.Arguments, asJSON{&v.Preview}, &v.Verdict, asJSON{&v.Grounds},
			&d.Answer, &d.Arguments, &d.Reason, asJSON{&d.Scope}, &d.ExpiresAt, &d.By, &d.At)
		if d.CallID = v.CallID; d.Answer != "" {
			v.Decision = &d
		}
		return err
	}, `SELECT v.call_id, c.tool, v.definition, v.arguments, coalesce(v.edited_preview, v.preview), v.verdict, v.grounds, v.answer, v.edited,
			v.reason, v.scope, v.expires_at, v.decided_by, v.decided_at FROM reviews v JOIN calls c ON c.id = v.call_id `+where, args...)
}

func readQuestions(ctx context.Context, q querier, filter store.InboxFilter) ([]regie.Question, error) {
	return queryList(ctx, q, func(row scanner, u *regie.Question) error {
		return row.Scan(&u.ID, &u.SessionID, &u.RoundID, &u.CallID, &u.Workspace, &u.SessionName, &u.State,
			asJSON{&u.Module}, &u.CreatedAt, &u.ExpiresAt, asJSON{&u.Reply})
	}, `SELECT t.id, s.id, t.round_id, u.call_id, w.name, s.name, t.state, u.module, t.created_at, t.deadline, t.resolution
		FROM questions u JOIN waits t ON t.id = u.wait_id JOIN sessions s ON s.n = t.session JOIN workspaces w ON w.id = s.workspace_id
		WHERE `+byIDClause("t.id", "t.state")+` AND (s.id = ?2 OR ?2 IS NULL) AND (w.root = ?3 OR ?3 = '') AND s.deleted_at IS NULL`+
		pageClause("t.created_at", "t.id"), filterArgs(filter)...)
}

// Batch returns an exchange's calls with their reviews and questions: it sets only Calls, Reviews
// and Asked.
func (s sessionStore) Batch(ctx context.Context, fence store.Fence, exchange int,
	reply regie.ID,
) (c store.Claimed, err error) {
	err = s.readSnapshot(ctx, func(ctx context.Context, q querier) error {
		return readBatch(ctx, q, &c, fence.RoundID, exchange, reply)
	})
	return c, err
}

func readBatch(ctx context.Context, q querier, c *store.Claimed, round regie.ID, exchange int,
	reply regie.ID,
) (err error) {
	if c.Calls, err = readCalls(ctx, q, callsOfMessage, reply); err != nil {
		return err
	}
	reviews, err := readReviews(ctx, q, // the latest review counts
		"JOIN approvals a ON a.id = v.approval_id WHERE a.round_id = ? AND a.exchange = ? ORDER BY a.seq, a.created_at, a.id", round, exchange)
	if err != nil {
		return err
	}
	if len(reviews) > 0 {
		c.Reviews = map[regie.ID]regie.Review{}
	}
	for _, review := range reviews {
		c.Reviews[review.CallID] = review
	}
	asked, err := queryAll(ctx, q, scanOne[regie.ID],
		"SELECT u.call_id FROM calls c JOIN waits t ON t.object_id = c.id JOIN questions u ON u.wait_id = t.id WHERE c.message_id = ?", reply)
	if len(asked) > 0 {
		c.Asked = map[regie.ID]bool{}
	}
	for _, id := range asked {
		c.Asked[id] = true
	}
	return err
}

// WholeResult returns a call's unshortened result (spec 3.2). It returns CodeNotFound for a call of
// another session, a call without a result, and a whole result that was not stored or was erased.
func (s sessionStore) WholeResult(ctx context.Context, session, call regie.ID) (string, error) {
	var result []byte
	var blob regie.Hash
	// In a fork the shortened result names the original call, and the session has a copy of it.
	err := s.read.QueryRowContext(ctx,
		"SELECT c.result, c.result_blob FROM calls c JOIN sessions s ON s.n = c.session WHERE (c.id = ?1 OR c.copy_of = ?1) AND s.id = ?2", call, session).Scan(&result, &blob)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && result == nil:
		return "", regie.Errorf(regie.CodeNotFound, "there is no result of a call %s in this session", call)
	case err != nil:
		return "", err
	case blob.IsZero():
		return string(result), nil
	}
	data, err := s.Blob(ctx, blob)
	if regie.CodeOf(err) == regie.CodeNotFound {
		return "", regie.Errorf(regie.CodeNotFound,
			"the whole result of call %s is lost: it could not be stored, or was erased since; what its result shows is all there is", call)
	}
	return string(data), err
}

// standing finds the one open round by its index. SQLite uses that only for a query with the
// index's own condition; other queries would scan every round.
const standing = `SELECT s.type, EXISTS (SELECT 1 FROM rounds r JOIN waits w ON w.round_id = r.id
		WHERE r.session = s.n AND r.state <> 'ENDED' AND r.state = 'WAITING' AND w.state = 'OPEN' AND w.kind = 'QUESTION')
	FROM sessions s WHERE s.id = ?`

// Standing returns a session's type, and whether it has an open question; the empty type for a
// missing session.
func (s sessionStore) Standing(ctx context.Context, session regie.ID) (kind regie.SessionType, asks bool, err error) {
	err = s.read.QueryRowContext(ctx, standing, session).Scan(&kind, &asks)
	return kind, asks, unlessFound(err, nil)
}

// OpenRound returns the open round of a session, or the zero id.
func (s sessionStore) OpenRound(ctx context.Context, session regie.ID) (id regie.ID, err error) {
	err = s.read.QueryRowContext(ctx,
		"SELECT r.id FROM rounds r JOIN sessions s ON s.n = r.session WHERE s.id = ? AND r.state <> 'ENDED'",
		session).Scan(&id)
	return id, unlessFound(err, nil)
}

// CloseSession closes an idle session: a chat, which a message reopens, or, stopped, a cancelled
// session (decision 6). It returns CodeRoundInProgress while a round is open. Closing a closed
// session changes nothing.
func (s sessionStore) CloseSession(ctx context.Context, id regie.ID, reason regie.SessionEnd) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		s, err := t.holdSession(id)
		switch {
		case err != nil:
			return err
		case s.state == regie.SessionClosed && reason != "": // closed, and now cancelled
			t.exec("UPDATE sessions SET end_reason = ? WHERE n = ? AND end_reason IS NULL", string(reason), s.chain)
			return nil
		case s.state == regie.SessionClosed:
			return nil
		case s.state != regie.SessionIdle:
			return errRoundOpen
		case reason == "" && s.kind != regie.SessionChat:
			return regie.Errorf(regie.CodeConflict, "only a chat can be closed: stop this session instead")
		}
		t.pending.closeSession(id, s.chain, reason, now)
		return nil
	})
}
