package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// load reads a claimed round in one snapshot.
func (s roundStore) load(ctx context.Context, fence store.Fence) (store.Claimed, error) {
	c := store.Claimed{Fence: fence}
	err := s.snapshot(ctx, func(ctx context.Context, q querier) error {
		var err error
		if c.Session, c.Workspace, err = readSession(ctx, q, fence.SessionID); err != nil {
			return err
		}
		if c.Round, err = readRound(ctx, q, fence.RoundID); err != nil {
			return err
		}
		exchanges, err := readExchanges(ctx, q, fence.RoundID, c.Round.Exchange)
		if err != nil {
			return err
		}
		if len(exchanges) != 1 {
			return regie.Errorf(regie.CodeCorrupt, "the round has no exchange %d", c.Round.Exchange)
		}
		c.Exchange = exchanges[0]
		if c.Round.Phase == regie.PhaseModel && c.Exchange.Attempt > 1 {
			if c.Outage, err = lastOutage(ctx, q, fence.RoundID, c.Round.Exchange); err != nil {
				return err
			}
		}
		if c.Exchange.ReplyID.IsZero() {
			return nil
		}
		reply, err := readMessage(ctx, q, c.Exchange.ReplyID)
		if err != nil {
			return err
		}
		c.Reply = &reply
		return readBatch(ctx, q, &c, fence.RoundID, c.Round.Exchange, c.Exchange.ReplyID)
	})
	return c, explain(err, FileName)
}

func readSession(ctx context.Context, q querier, id regie.ID) (regie.Session, regie.Workspace, error) {
	var s regie.Session
	var w regie.Workspace
	var kind, state string
	var end, root sql.NullString
	var created, last, made int64
	var api bool
	var forked regie.ID
	var at sql.NullInt64
	err := q.QueryRowContext(ctx, `SELECT s.id, s.workspace_id, s.user_id, s.agent, s.name, s.type, s.provider, s.model, s.require_validation, s.state, s.end_reason, s.origin = 'api', s.token_id,
			s.created_at, c.head_at, s.epoch, s.forked_from, s.forked_at_seq, w.id, w.name, w.root, w.found_by, w.created_at
		FROM sessions s JOIN chains c ON c.n = s.n JOIN workspaces w ON w.id = s.workspace_id WHERE s.id = ? AND s.deleted_at IS NULL`, id).
		Scan(&s.ID, &s.WorkspaceID, &s.UserID, &s.Agent, &s.Name, &kind, &s.Provider, &s.Model, &s.RequireValidation,
			&state, &end, &api, &s.TokenID,
			&created, &last, &s.Epoch, &forked, &at, &w.ID, &w.Name, &root, &w.FoundBy, &made)
	if errors.Is(err, sql.ErrNoRows) {
		err = notFound("session", id)
	}
	s.Type, s.State, s.EndReason = regie.SessionType(kind), regie.SessionState(state), regie.SessionEnd(end.String)
	s.CreatedAt, s.LastActivity = fromMicros(created), fromMicros(last)
	w.Root, w.CreatedAt = root.String, fromMicros(made)
	s.ForkedFrom, s.Origin = forkPoint(forked, at), originOf(api)
	return s, w, err
}

// originOf is a session's origin as far as it is told.
func originOf(api bool) regie.SessionOrigin {
	if api {
		return regie.OriginAPISession
	}
	return ""
}

func forkPoint(from regie.ID, at sql.NullInt64) *regie.ForkPoint {
	if from.IsZero() {
		return nil
	}
	return &regie.ForkPoint{SessionID: from, Seq: at.Int64}
}

const roundColumns = `r.id, s.id, r.number, r.reason, r.state, r.end_reason, r.end_note, r.phase, r.exchange, r.total, r.queries, r.retries,
	r.format_errors, r.resumes, r.limits, r.stop_request, r.epoch, r.trace_id, r.agent, r.agent_pin, r.provider, r.model, r.dialect, r.policy, r.level1, r.level2,
	r.tokens, r.deadline, r.started_at, r.ended_at`

func readRound(ctx context.Context, q querier, id regie.ID) (regie.Round, error) {
	r, err := scanRound(q.QueryRowContext(ctx, "SELECT "+roundColumns+
		" FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		err = notFound("round", id)
	}
	return r, err
}

type scanner interface{ Scan(dest ...any) error }

func scanRound(row scanner, more ...any) (regie.Round, error) {
	var r regie.Round
	var reason, state, phase, limits string
	var end, stop, policy sql.NullString
	var started int64
	var dialect string
	var deadline, ended sql.NullInt64
	err := row.Scan(append([]any{
		&r.ID, &r.SessionID, &r.Number, &reason, &state, &end, &r.EndNote, &phase, &r.Exchange,
		&r.Counters.Total, &r.Counters.Queries,
		&r.Counters.Retries, &r.Counters.FormatErrors, &r.Counters.Resumes, &limits, &stop, &r.Epoch, &r.TraceID,
		&r.Agent, &r.Pin, &r.Provider, &r.Model,
		&dialect, &policy, &r.Level1, &r.Level2, &r.Tokens, &deadline, &started, &ended,
	}, more...)...)
	if err != nil {
		return r, err
	}
	r.Reason, r.State, r.End, r.Phase, r.Stop = regie.Reason(reason), regie.RoundState(state),
		regie.RoundEnd(end.String), regie.Phase(phase), regie.StopRequest(stop.String)
	r.Dialect, r.Deadline, r.StartedAt, r.EndedAt = regie.Dialect(dialect), fromNullMicros(deadline),
		fromMicros(started), fromNullMicros(ended)
	if policy.Valid {
		r.Policy = json.RawMessage(policy.String)
	}
	if err := json.Unmarshal([]byte(limits), &r.Limits); err != nil {
		return r, regie.Errorf(regie.CodeCorrupt, "the limits of round %s cannot be read: %v", r.ID, err)
	}
	return r, nil
}

// readExchanges returns one exchange of a round, or all of them for number 0.
func readExchanges(ctx context.Context, q querier, round regie.ID, number int) ([]regie.Exchange, error) {
	rows, err := q.QueryContext(ctx, `SELECT round_id, number, reason, state, attempt, coalesce(first_seq, 0), coalesce(last_seq, 0), request, reply_id,
			input_tokens, output_tokens, cache_write_tokens, cache_read_tokens, reasoning_tokens, reserved_microusd, cost_microusd, overrun_microusd,
			stop_reason, error, opened_at, coalesce(first_byte_us, 0), coalesce(model_us, 0), replied_at, nullif(purpose, 'step'), head, provider, model
		FROM exchanges WHERE round_id = ? AND (number = ? OR ? = 0) ORDER BY number`, round, number, number)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []regie.Exchange
	for rows.Next() {
		var e regie.Exchange
		var reason, state string
		var cost, replied sql.NullInt64
		var purpose sql.NullString
		var opened int64
		if err := rows.Scan(&e.RoundID, &e.Number, &reason, &state, &e.Attempt, &e.FirstSeq,
			&e.LastSeq, &e.Request, &e.ReplyID,
			&e.Usage.Input, &e.Usage.Output, &e.Usage.CacheCreation, &e.Usage.CacheRead, &e.Usage.Reasoning,
			&e.Money.Reserved, &cost, &e.Money.Overrun,
			&e.StopReason, &e.Error, &opened, &e.FirstByteUS, &e.ModelUS, &replied, &purpose, &e.Head,
			&e.Provider, &e.Model); err != nil {
			return nil, err
		}
		e.Reason, e.State, e.Purpose = regie.ExchangeReason(reason), regie.ExchangeState(state),
			regie.ExchangePurpose(purpose.String)
		e.Money.Cost, e.Money.Known = cost.Int64, cost.Valid
		e.OpenedAt, e.RepliedAt = fromMicros(opened), fromNullMicros(replied)
		out = append(out, e)
	}
	return out, rows.Err()
}

func readMessage(ctx context.Context, q querier, id regie.ID) (regie.Message, error) {
	messages, err := readMessages(ctx, q, "WHERE m.id = ?", id)
	if err == nil && len(messages) == 0 {
		err = notFound("message", id)
	}
	if err != nil {
		return regie.Message{}, err
	}
	return messages[0], nil
}

// readMessages reads messages with their content, which is the body of their event. An erased
// message has none and keeps its row.
func readMessages(ctx context.Context, q querier, where string, args ...any) ([]regie.Message, error) {
	rows, err := q.QueryContext(ctx, `SELECT m.id, s.id, coalesce(m.seq, m.pending_seq), m.sender, m.author_kind, m.author_id, m.superseded, e.at, b.body
		FROM messages m JOIN sessions s ON s.n = m.session JOIN events e ON e.chain = m.session AND e.seq = coalesce(m.seq, m.pending_seq)
		LEFT JOIN event_bodies b ON b.n = e.n `+where, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []regie.Message
	for rows.Next() {
		var m regie.Message
		var sender, author string
		var at int64
		var body sql.NullString
		if err := rows.Scan(&m.ID, &m.SessionID, &m.Seq, &sender, &author, &m.Author.ID,
			&m.Superseded, &at, &body); err != nil {
			return nil, err
		}
		m.Sender, m.Author.Kind, m.Time = regie.Sender(sender), regie.AuthorKind(author), fromMicros(at)
		if body.Valid {
			if err := json.Unmarshal([]byte(body.String), &m); err != nil {
				return nil, regie.Errorf(regie.CodeCorrupt, "message %s cannot be read: %v", m.ID, err)
			}
		}
		out = append(out, m)
	}
	return out, rows.Err()
}

// callsOfThread reads calls in the order of their messages. The joins are spelt out in their order:
// the planner has no statistics and would start with the whole table of calls.
const callsOfThread = "FROM sessions s CROSS JOIN messages m ON m.session = s.n CROSS JOIN calls c ON c.message_id = m.id "

const callsOfMessage = "FROM calls c JOIN sessions s ON s.n = c.session WHERE c.message_id = ? ORDER BY c.ordinal"

func readCalls(ctx context.Context, q querier, from string, args ...any) ([]regie.Call, error) {
	rows, err := q.QueryContext(ctx, `SELECT c.id, s.id, c.round_id, c.exchange, c.ordinal, c.message_id, c.origin, c.tool, c.provider_call_id, c.kind, c.class,
			c.signature, c.definition, c.arguments, c.executed, c.ask, c.state, c.code, c.intent, c.result, c.error, c.result_blob,
			coalesce((SELECT size FROM blobs WHERE hash = c.result_blob AND data IS NULL AND in_file = 0), 0), c.duplicate_of, c.attempts,
			c.recovered, coalesce(c.duration_us, 0), c.proposed_at, c.started_at, c.settled_at, c.resolved_as, c.resolved_by, c.resolve_note, c.resolved_at, c.copy_of, c.changed
		`+from, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []regie.Call
	for rows.Next() {
		c, err := scanCall(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, rows.Err()
}

func scanCall(row scanner) (regie.Call, error) {
	var c regie.Call
	var origin, kind, class, state string
	var provider, executed, code, intent, result, problem, as, by, note, changed sql.NullString
	var proposed int64
	var started, settled, resolved sql.NullInt64
	err := row.Scan(&c.ID, &c.SessionID, &c.RoundID, &c.Exchange, &c.Ordinal, &c.MessageID, &origin,
		&c.Tool, &provider, &kind, &class,
		&c.Signature, &c.Definition, &c.Arguments, &executed, &c.Ask, &state, &code, &intent, &result, &problem,
		&c.ResultBlob, &c.ResultLost, &c.DuplicateOf, &c.Attempts,
		&c.Recovered, &c.DurationUS, &proposed, &started, &settled, &as, &by, &note, &resolved, &c.CopyOf, &changed)
	if err != nil {
		return c, err
	}
	c.Origin, c.Kind, c.Class = regie.Origin(origin), regie.CallKind(kind), regie.EffectClass(class)
	c.State, c.NotRun = regie.CallState(state), regie.NotRunCode(code.String)
	c.ProviderCallID, c.Result = provider.String, result.String
	if executed.Valid {
		c.Executed = json.RawMessage(executed.String)
	}
	if intent.Valid {
		c.Intent = json.RawMessage(intent.String)
	}
	if changed.Valid {
		c.Changed = json.RawMessage(changed.String)
	}
	c.ProposedAt, c.StartedAt, c.SettledAt = fromMicros(proposed), fromNullMicros(started), fromNullMicros(settled)
	if as.Valid {
		c.Resolution = &regie.Resolution{
			As: regie.ResolvedAs(as.String), Note: note.String, By: by.String,
			At: fromNullMicros(resolved),
		}
	}
	if problem.Valid {
		if err := json.Unmarshal([]byte(problem.String), &c.Error); err != nil {
			return c, regie.Errorf(regie.CodeCorrupt, "the error of call %s cannot be read: %v", c.ID, err)
		}
	}
	return c, nil
}

// Thread returns a session's messages after a sequence number, in order, with the calls that they
// own (spec 2.3).
func (s roundStore) Thread(ctx context.Context, session regie.ID, after int64) (store.Thread, error) {
	var thread store.Thread
	err := s.snapshot(ctx, func(ctx context.Context, q querier) (err error) {
		thread, err = readThread(ctx, q, session, after)
		return err
	})
	return thread, explain(err, FileName)
}

func readThread(ctx context.Context, q querier, session regie.ID, after int64) (thread store.Thread, err error) {
	thread.Calls = map[regie.ID][]regie.Call{}
	if thread.Messages, err = readMessages(ctx, q, "WHERE s.id = ? AND m.seq > ? ORDER BY m.seq",
		session, after); err != nil {
		return thread, err
	}
	calls, err := readCalls(ctx, q, callsOfThread+"WHERE s.id = ? AND m.seq > ? ORDER BY m.seq, c.ordinal", session,
		after)
	for _, call := range calls {
		thread.Calls[call.MessageID] = append(thread.Calls[call.MessageID], call)
	}
	return thread, err
}

// Events returns up to limit events of a session's log after a sequence number (spec 10.2).
func (s roundStore) Events(ctx context.Context, session regie.ID, after int64, limit int) ([]regie.Event, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT e.seq, e.type, e.at, b.body FROM chains c JOIN events e ON e.chain = c.n
		LEFT JOIN event_bodies b ON b.n = e.n WHERE c.owner_id = ? AND e.seq > ? ORDER BY e.seq LIMIT ?`, session, after, limit)
	if err != nil {
		return nil, explain(err, FileName)
	}
	defer rows.Close()
	var out []regie.Event
	for rows.Next() {
		e := regie.Event{SessionID: session}
		var kind string
		var at int64
		var body sql.NullString
		if err := rows.Scan(&e.Seq, &kind, &at, &body); err != nil {
			return nil, explain(err, FileName)
		}
		e.Type, e.Time = regie.EventType(kind), time.UnixMicro(at).UTC()
		if body.Valid {
			e.Body = json.RawMessage(body.String)
		}
		out = append(out, e)
	}
	return out, explain(rows.Err(), FileName)
}
