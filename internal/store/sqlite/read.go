package sqlite

import (
	"context"
	"database/sql"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// loadClaimed reads a claimed round in one snapshot.
func (s roundStore) loadClaimed(ctx context.Context, fence store.Fence) (store.Claimed, error) {
	c := store.Claimed{Fence: fence}
	err := s.readSnapshot(ctx, func(ctx context.Context, q querier) error {
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
	return c, err
}

func readSession(ctx context.Context, q querier, id regie.ID) (s regie.Session, w regie.Workspace, err error) {
	err = scanSession(q.QueryRowContext(ctx, "SELECT "+sessionColumns+`, w.id, w.name, w.root, w.found_by, w.created_at
		FROM sessions s JOIN chains c ON c.n = s.n JOIN workspaces w ON w.id = s.workspace_id WHERE s.id = ? AND s.deleted_at IS NULL`, id),
		&s, &w.ID, &w.Name, &w.Root, &w.FoundBy, &w.CreatedAt)
	return s, w, unlessFound(err, notFound("session", id))
}

const sessionColumns = `s.id, s.workspace_id, s.user_id, s.agent, s.agent_version, s.name, s.type, s.provider, s.model, s.require_validation, s.approval_mode, s.tainted, s.read_private, s.state, s.end_reason, s.origin, s.token_id,
	s.created_at, c.head_at, s.epoch, s.forked_from, s.forked_at_seq`

func scanSession(row scanner, s *regie.Session, more ...any) error {
	var forked regie.ForkPoint
	err := row.Scan(append([]any{
		&s.ID, &s.WorkspaceID, &s.UserID, &s.Agent, &s.AgentVersion, &s.Name, &s.Type, &s.Provider, &s.Model, &s.RequireValidation,
		&s.ApprovalMode, &s.Tainted, &s.ReadPrivate, &s.State, &s.EndReason, &s.Origin, &s.TokenID, &s.CreatedAt, &s.LastActivity, &s.Epoch, &forked.SessionID,
		&forked.Seq,
	}, more...)...)
	if s.Origin != regie.OriginAPISession { // the others are not told
		s.Origin = ""
	}
	if !forked.SessionID.IsZero() {
		s.ForkedFrom = &forked
	}
	return err
}

const roundColumns = `r.id, s.id, r.number, r.reason, r.state, r.end_reason, r.end_note, r.phase, r.exchange, r.total, r.queries, r.retries,
	r.format_errors, r.resumes, r.limits, r.stop_request, r.epoch, r.trace_id, r.agent, r.agent_pin, r.provider, r.model, r.dialect, r.policy, r.level1, r.level2,
	r.tokens, r.deadline, r.started_at, r.ended_at`

func readRound(ctx context.Context, q querier, id regie.ID) (r regie.Round, err error) {
	err = scanRound(q.QueryRowContext(ctx, "SELECT "+roundColumns+
		" FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = ?", id), &r)
	return r, unlessFound(err, notFound("round", id))
}

type scanner interface{ Scan(dest ...any) error }

func scanRound(row scanner, r *regie.Round) error { return scanRoundAnd(row, r) }

func scanRoundAnd(row scanner, r *regie.Round, more ...any) error {
	return row.Scan(append([]any{
		&r.ID, &r.SessionID, &r.Number, &r.Reason, &r.State, &r.End, &r.EndNote, &r.Phase, &r.Exchange, &r.Counters.Total,
		&r.Counters.Queries, &r.Counters.Retries, &r.Counters.FormatErrors, &r.Counters.Resumes,
		asJSON{&r.Limits},
		&r.Stop,
		&r.Epoch, &r.TraceID, &r.Agent, &r.Pin, &r.Provider, &r.Model, &r.Dialect, &r.Policy, &r.Level1, &r.Level2,
		&r.Tokens, &r.Deadline, &r.StartedAt, &r.EndedAt,
	}, more...)...)
}

// readExchanges returns one exchange of a round, or all of them for number 0.
func readExchanges(ctx context.Context, q querier, round regie.ID, number int) ([]regie.Exchange, error) {
	return queryAll(ctx, q, func(row scanner, e *regie.Exchange) error {
		var cost sql.NullInt64
		err := row.Scan(&e.RoundID, &e.Number, &e.Reason, &e.State, &e.Attempt, &e.FirstSeq, &e.LastSeq, &e.Request,
			&e.ReplyID, &e.Usage.Input, &e.Usage.Output, &e.Usage.CacheCreation, &e.Usage.CacheRead, &e.Usage.Reasoning,
			&e.Money.Reserved, &cost, &e.Money.Overrun, &e.StopReason, &e.Error, &e.OpenedAt, &e.FirstByteUS, &e.ModelUS,
			&e.RepliedAt, &e.Purpose, &e.Head, &e.Provider, &e.Model)
		e.Money.Cost, e.Money.Known = cost.Int64, cost.Valid
		return err
	}, `SELECT round_id, number, reason, state, attempt, coalesce(first_seq, 0), coalesce(last_seq, 0), request, reply_id,
			input_tokens, output_tokens, cache_write_tokens, cache_read_tokens, reasoning_tokens, reserved_microusd, cost_microusd, overrun_microusd,
			stop_reason, error, opened_at, coalesce(first_byte_us, 0), coalesce(model_us, 0), replied_at, nullif(purpose, 'step'), head, provider, model
		FROM exchanges WHERE round_id = ? AND (number = ? OR ? = 0) ORDER BY number`, round, number, number)
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
	return queryAll(ctx, q, func(row scanner, m *regie.Message) error {
		return row.Scan(&m.ID, &m.SessionID, &m.Seq, &m.Sender, &m.Author.Kind, &m.Author.ID, &m.Superseded, &m.Time,
			asJSON{m}) // NULL where its body was erased
	}, `SELECT m.id, s.id, coalesce(m.seq, m.pending_seq), m.sender, m.author_kind, m.author_id, m.superseded, e.at, b.body
		FROM messages m JOIN sessions s ON s.n = m.session JOIN events e ON e.chain = m.session AND e.seq = coalesce(m.seq, m.pending_seq)
		LEFT JOIN event_bodies b ON b.n = e.n `+where, args...)
}

// callsOfThread reads calls in the order of their messages. CROSS JOIN fixes the order of the
// joins: the planner has no statistics and would start with the whole table of calls.
const callsOfThread = "FROM sessions s CROSS JOIN messages m ON m.session = s.n CROSS JOIN calls c ON c.message_id = m.id "

const callsOfMessage = "FROM calls c JOIN sessions s ON s.n = c.session WHERE c.message_id = ? ORDER BY c.ordinal"

func readCalls(ctx context.Context, q querier, from string, args ...any) ([]regie.Call, error) {
	return queryAll(ctx, q, scanCall, `SELECT c.id, s.id, c.round_id, c.exchange, c.ordinal, c.message_id, c.origin, c.tool, c.provider_call_id, c.kind, c.class,
			c.signature, c.definition, c.arguments, c.executed, c.ask, c.state, c.code, c.intent, c.result, c.error, c.result_blob,
			coalesce((SELECT size FROM blobs WHERE hash = c.result_blob AND data IS NULL AND in_file = 0), 0), c.duplicate_of, c.attempts,
			c.recovered, coalesce(c.duration_us, 0), c.proposed_at, c.started_at, c.settled_at, c.resolved_as, c.resolved_by, c.resolve_note, c.resolved_at, c.copy_of, c.changed
		`+from, args...)
}

func scanCall(row scanner, c *regie.Call) error {
	var resolved regie.Resolution
	err := row.Scan(&c.ID, &c.SessionID, &c.RoundID, &c.Exchange, &c.Ordinal, &c.MessageID, &c.Origin, &c.Tool,
		&c.ProviderCallID, &c.Kind, &c.Class, &c.Signature, &c.Definition, &c.Arguments, &c.Executed, &c.Ask, &c.State,
		&c.NotRun, &c.Intent, &c.Result, asJSON{&c.Error}, &c.ResultBlob, &c.ResultLost, &c.DuplicateOf, &c.Attempts,
		&c.Recovered, &c.DurationUS, &c.ProposedAt, &c.StartedAt, &c.SettledAt, &resolved.As, &resolved.By, &resolved.Note,
		&resolved.At, &c.CopyOf, &c.Changed)
	if resolved.As != "" {
		c.Resolution = &resolved
	}
	return err
}

// Thread returns a session's messages after a sequence number, in order, with the calls that they
// own (spec 2.3).
func (s roundStore) Thread(ctx context.Context, session regie.ID, after int64) (store.Thread, error) {
	var thread store.Thread
	err := s.readSnapshot(ctx, func(ctx context.Context, q querier) (err error) {
		thread, err = readThread(ctx, q, session, after)
		return err
	})
	return thread, err
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
	return queryAll(ctx, s.read, func(row scanner, e *regie.Event) error {
		e.SessionID = session
		return row.Scan(&e.Seq, &e.Type, &e.Time, &e.Body)
	}, `SELECT e.seq, e.type, e.at, b.body FROM chains c JOIN events e ON e.chain = c.n
		LEFT JOIN event_bodies b ON b.n = e.n WHERE c.owner_id = ? AND e.seq > ? ORDER BY e.seq LIMIT ?`, session, after, limit)
}

// maxRecent bounds how far back RecentCalls looks: older calls no longer matter.
const maxRecent = 200

// RecentCalls returns the calls of one toolkit in a session, the newest first: those that
// succeeded, started, or are UNKNOWN.
func (s roundStore) RecentCalls(ctx context.Context, session regie.ID, toolkit string) ([]regie.Call, error) {
	return readCalls(ctx, s.read, callsOfThread+`WHERE s.id = ? AND substr(c.tool, 1, ?) = ? AND c.state IN ('SUCCEEDED', 'STARTED', 'UNKNOWN')
		ORDER BY m.seq DESC, c.ordinal DESC LIMIT ?`, session, len(toolkit)+1, toolkit+".", maxRecent)
}
