package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Inbox returns what waits for people, oldest first (spec 4.4), or what an id or a part of one
// names, in whatever state. It returns CodeBadID for a part that no id has.
func (s sessionStore) Inbox(ctx context.Context, filter store.InboxFilter) (store.Inbox, error) {
	inbox := store.Inbox{Approvals: []regie.Approval{}, Questions: []regie.Question{}}
	if strings.Trim(filter.Short, "0123456789abcdefABCDEF") != "" {
		return inbox, regie.Errorf(regie.CodeBadID, "%q is no part of an id", filter.Short)
	}
	err := s.snapshot(ctx, func(ctx context.Context, q querier) error {
		var err error
		if inbox.Approvals, err = readApprovals(ctx, q, filter); err != nil {
			return err
		}
		for i := range inbox.Approvals {
			if inbox.Approvals[i].Reviews, err = readReviews(ctx, q, "WHERE v.approval_id = ? ORDER BY v.ordinal",
				inbox.Approvals[i].ID); err != nil {
				return err
			}
			if filter.Brief {
				for n := range inbox.Approvals[i].Reviews {
					inbox.Approvals[i].Reviews[n].Arguments, inbox.Approvals[i].Reviews[n].Preview.Diff = nil, ""
				}
			}
		}
		inbox.Questions, err = readQuestions(ctx, q, filter)
		return err
	})
	return inbox, explain(err, FileName)
}

// filterArgs are the filter's values in the order of the queries; a zero id is NULL and selects all
// that are open.
func filterArgs(f store.InboxFilter) []any {
	limit := f.Limit
	if limit == 0 {
		limit = math.MaxInt32
	}
	return []any{f.ID, f.SessionID, f.Root, f.Short, flag(f.Closed), f.After.Micros(), f.After.ID, limit}
}

// page orders a list and cuts the filter's page off it.
func page(created, id string) string {
	return behind(created, id, "?6", "?7") + " LIMIT ?8"
}

// behind orders a list, the oldest first, and begins it behind the place that two parameters hold.
func behind(created, id, at, last string) string {
	return " AND (CAST(" + at + " AS BIGINT) = 0 OR " + created + " > " + at + " OR " + created + " = " + at + " AND " +
		id + " > " + last + ") ORDER BY " + created + ", " + id
}

// named selects the rows whose id is the filter's or has its part, and otherwise those that are
// open.
func named(id, state string) string {
	return "(" + id + " = ?1 OR ?1 IS NULL) AND (?4 = '' OR hex(" + id +
		") LIKE '%' || ?4 OR length(?4) >= 8 AND hex(" + id + ") LIKE ?4 || '%')" +
		" AND (?1 IS NOT NULL OR ?4 <> '' OR ?5 <> 0 OR " + state + " = 'OPEN')"
}

func readApprovals(ctx context.Context, q querier, filter store.InboxFilter) ([]regie.Approval, error) {
	rows, err := q.QueryContext(ctx, `SELECT a.id, s.id, a.round_id, a.exchange, a.state, a.created_at, a.expires_at, a.closed_at, w.name, s.agent, s.name
		FROM approvals a JOIN sessions s ON s.n = a.session JOIN workspaces w ON w.id = s.workspace_id
		WHERE `+named("a.id", "a.state")+` AND (s.id = ?2 OR ?2 IS NULL) AND (w.root = ?3 OR ?3 = '') AND s.deleted_at IS NULL`+page("a.created_at", "a.id"), filterArgs(filter)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []regie.Approval{}
	for rows.Next() {
		var a regie.Approval
		var state string
		var created, expires int64
		var closed sql.NullInt64
		if err := rows.Scan(&a.ID, &a.SessionID, &a.RoundID, &a.Exchange, &state, &created, &expires, &closed,
			&a.Workspace, &a.Agent, &a.SessionName); err != nil {
			return nil, err
		}
		a.State, a.CreatedAt, a.ExpiresAt, a.ClosedAt = regie.ApprovalState(state), fromMicros(created),
			fromMicros(expires), fromNullMicros(closed)
		out = append(out, a)
	}
	return out, rows.Err()
}

func readReviews(ctx context.Context, q querier, where string, args ...any) ([]regie.Review, error) {
	rows, err := q.QueryContext(ctx, `SELECT v.call_id, c.tool, v.definition, v.arguments, v.preview, v.verdict, v.grounds, v.answer, v.edited, v.edited_preview,
			v.reason, v.scope, v.expires_at, v.decided_by, v.decided_at FROM reviews v JOIN calls c ON c.id = v.call_id `+where, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []regie.Review{}
	for rows.Next() {
		var v regie.Review
		var arguments, preview, verdict, grounds string
		var answer, edited, editedPreview, reason, scope, by sql.NullString
		var expires, at sql.NullInt64
		if err := rows.Scan(&v.CallID, &v.Tool, &v.Definition, &arguments, &preview, &verdict, &grounds,
			&answer, &edited, &editedPreview,
			&reason, &scope, &expires, &by, &at); err != nil {
			return nil, err
		}
		v.Arguments, v.Verdict = json.RawMessage(arguments), regie.Verdict(verdict)
		if editedPreview.Valid {
			preview = editedPreview.String
		}
		err := errors.Join(json.Unmarshal([]byte(preview), &v.Preview), json.Unmarshal([]byte(grounds), &v.Grounds))
		if answer.Valid {
			v.Decision = &regie.Decision{
				CallID: v.CallID, Answer: regie.Answer(answer.String), Reason: reason.String,
				ExpiresAt: fromNullMicros(expires), By: by.String, At: fromNullMicros(at),
			}
			if edited.Valid {
				v.Decision.Arguments = json.RawMessage(edited.String)
			}
			if scope.Valid {
				err = errors.Join(err, json.Unmarshal([]byte(scope.String), &v.Decision.Scope))
			}
		}
		if err != nil {
			return nil, regie.Errorf(regie.CodeCorrupt, "what was asked about call %s cannot be read: %v", v.CallID,
				err)
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

func readQuestions(ctx context.Context, q querier, filter store.InboxFilter) ([]regie.Question, error) {
	rows, err := q.QueryContext(ctx, `SELECT t.id, s.id, t.round_id, u.call_id, w.name, s.name, t.state, u.module, t.created_at, t.deadline, t.resolution, t.resolved_at
		FROM questions u JOIN waits t ON t.id = u.wait_id JOIN sessions s ON s.n = t.session JOIN workspaces w ON w.id = s.workspace_id
		WHERE `+named("t.id", "t.state")+` AND (s.id = ?2 OR ?2 IS NULL) AND (w.root = ?3 OR ?3 = '') AND (u.request = ?9 OR ?9 = '') AND s.deleted_at IS NULL`+
		page("t.created_at", "t.id"), append(filterArgs(filter), filter.Answered)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []regie.Question{}
	for rows.Next() {
		var u regie.Question
		var state, module string
		var created int64
		var deadline, resolved sql.NullInt64
		var reply sql.NullString
		if err := rows.Scan(&u.ID, &u.SessionID, &u.RoundID, &u.CallID, &u.Workspace, &u.SessionName, &state, &module,
			&created, &deadline, &reply, &resolved); err != nil {
			return nil, err
		}
		u.State, u.CreatedAt, u.ExpiresAt = regie.WaitState(state), fromMicros(created), fromNullMicros(deadline)
		err := json.Unmarshal([]byte(module), &u.Module)
		if reply.Valid {
			err = errors.Join(err, json.Unmarshal([]byte(reply.String), &u.Reply))
		}
		if err != nil {
			return nil, regie.Errorf(regie.CodeCorrupt, "question %s cannot be read: %v", u.ID, err)
		}
		out = append(out, u)
	}
	return out, rows.Err()
}

// latestReviews returns the newest review of each call of an exchange: the one that was asked last,
// by its place in the log. The clock cannot tell, because it can jump back; it is only asked where
// an approval of an old schema has no place.
func latestReviews(ctx context.Context, q querier, round regie.ID, exchange int) (map[regie.ID]regie.Review, error) {
	reviews, err := readReviews(ctx, q,
		"JOIN approvals a ON a.id = v.approval_id WHERE a.round_id = ? AND a.exchange = ? ORDER BY a.seq, a.created_at, a.id", round, exchange)
	if err != nil || len(reviews) == 0 {
		return nil, err
	}
	out := make(map[regie.ID]regie.Review, len(reviews))
	for _, review := range reviews {
		out[review.CallID] = review
	}
	return out, nil
}

// askedCalls returns the calls of a reply that put a question to a person.
func askedCalls(ctx context.Context, q querier, reply regie.ID) (map[regie.ID]bool, error) {
	rows, err := q.QueryContext(ctx,
		"SELECT u.call_id FROM calls c JOIN waits t ON t.object_id = c.id JOIN questions u ON u.wait_id = t.id WHERE c.message_id = ?", reply)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out map[regie.ID]bool
	for rows.Next() {
		var id regie.ID
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		if out == nil {
			out = map[regie.ID]bool{}
		}
		out[id] = true
	}
	return out, rows.Err()
}

// Batch returns an exchange's calls as they stand, with what people were asked about them: only
// Calls, Reviews and Asked are set.
func (s sessionStore) Batch(ctx context.Context, fence store.Fence, exchange int,
	reply regie.ID,
) (c store.Claimed, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, q querier) error {
		return readBatch(ctx, q, &c, fence.RoundID, exchange, reply)
	})
	return c, explain(err, FileName)
}

func readBatch(ctx context.Context, q querier, c *store.Claimed, round regie.ID, exchange int,
	reply regie.ID,
) (err error) {
	if c.Calls, err = readCalls(ctx, q, callsOfMessage, reply); err != nil {
		return err
	}
	if c.Reviews, err = latestReviews(ctx, q, round, exchange); err != nil {
		return err
	}
	c.Asked, err = askedCalls(ctx, q, reply)
	return err
}

// WholeResult returns a call's result as it was before it was shortened (spec 3.2); CodeNotFound
// for a call that is not one of the session, or has no result, and where the whole result could not
// be stored or was erased.
func (s sessionStore) WholeResult(ctx context.Context, session, call regie.ID) (string, error) {
	var result sql.NullString
	var blob regie.Hash
	// In a fork the shortened result names the call that was made, of which the session has a copy.
	err := s.read.QueryRowContext(ctx,
		"SELECT c.result, c.result_blob FROM calls c JOIN sessions s ON s.n = c.session WHERE (c.id = ?1 OR c.copy_of = ?1) AND s.id = ?2", call, session).Scan(&result, &blob)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !result.Valid:
		return "", regie.Errorf(regie.CodeNotFound, "there is no result of a call %s in this session", call)
	case err != nil:
		return "", explain(err, FileName)
	case blob.IsZero():
		return result.String, nil
	}
	data, err := s.Blob(ctx, blob)
	if regie.CodeOf(err) == regie.CodeNotFound {
		return "", regie.Errorf(regie.CodeNotFound,
			"the whole result of call %s is lost: it could not be stored, or was erased since; what its result shows is all there is", call)
	}
	return string(data), err
}

// standing finds the one open round by its index: only a query that says what the index says uses
// it, others look at every round.
const standing = `SELECT s.type, EXISTS (SELECT 1 FROM rounds r JOIN waits w ON w.round_id = r.id
		WHERE r.session = s.n AND r.state <> 'ENDED' AND r.state = 'WAITING' AND w.state = 'OPEN' AND w.kind = 'QUESTION')
	FROM sessions s WHERE s.id = ?`

// Standing returns a session's type, and whether a question of it is open; the empty type for a
// session that is not there.
func (s sessionStore) Standing(ctx context.Context, session regie.ID) (kind regie.SessionType, asks bool, err error) {
	var stored string
	err = s.read.QueryRowContext(ctx, standing, session).Scan(&stored, &asks)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return regie.SessionType(stored), asks, explain(err, FileName)
}

// OpenRound returns the round of a session that has not ended; the zero id where none is open.
func (s sessionStore) OpenRound(ctx context.Context, session regie.ID) (regie.ID, error) {
	var id regie.ID
	err := s.read.QueryRowContext(ctx,
		"SELECT r.id FROM rounds r JOIN sessions s ON s.n = r.session WHERE s.id = ? AND r.state <> 'ENDED'",
		session).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return regie.ID{}, nil
	}
	return id, explain(err, FileName)
}

// CloseSession closes a session that is idle: a chat that a message opens again, or, stopped, one
// that was cancelled (decision 6). It returns CodeRoundInProgress while a round is open. Closing
// what is closed changes nothing.
func (s sessionStore) CloseSession(ctx context.Context, id regie.ID, reason regie.SessionEnd) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		t.hold(ByOwner, id)
		var chain int64
		var state, kind string
		err := t.row("SELECT n, state, type FROM sessions WHERE id = ? AND deleted_at IS NULL",
			id).Scan(&chain, &state, &kind)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return notFound("session", id)
		case err == nil && state == string(regie.SessionClosed) && reason != "": // closed, and now cancelled
			err = t.exec("UPDATE sessions SET end_reason = ? WHERE n = ? AND end_reason IS NULL", string(reason), chain)
			return err
		case err != nil || state == string(regie.SessionClosed):
			return err
		case state != string(regie.SessionIdle):
			return regie.Errorf(regie.CodeRoundInProgress,
				"a round of this session is open: wait for its end, or interrupt it")
		case reason == "" && kind != string(regie.SessionChat):
			return regie.Errorf(regie.CodeConflict, "only a chat is closed: stop this session instead")
		}
		return t.pending.closeSession(id, chain, reason, now)
	})
}
