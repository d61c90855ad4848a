package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Session returns a session with its workspace.
func (s sessionStore) Session(ctx context.Context, id regie.ID) (regie.Session, regie.Workspace, error) {
	return readSession(ctx, s.read, id)
}

// Round returns a round.
func (s sessionStore) Round(ctx context.Context, id regie.ID) (regie.Round, error) {
	return readRound(ctx, s.read, id)
}

// RoundView returns a round with every exchange, attempt and call, in one snapshot (spec 10.1 runs
// show).
func (s sessionStore) RoundView(ctx context.Context, id regie.ID) (store.RoundView, error) {
	var view store.RoundView
	err := s.readSnapshot(ctx, func(ctx context.Context, q querier) error {
		var err error
		if view.Round, err = readRound(ctx, q, id); err != nil {
			return err
		}
		if view.Session, view.Workspace, err = readSession(ctx, q, view.Round.SessionID); err != nil {
			return err
		}
		triggers, err := readMessages(ctx, q, "JOIN rounds r ON r.trigger_message_id = m.id WHERE r.id = ?", id)
		if err != nil {
			return err
		}
		if len(triggers) == 1 {
			view.Trigger = &triggers[0]
		}
		if view.Notices, err = readMessages(ctx, q, `JOIN rounds r ON r.session = m.session WHERE r.id = ? AND m.round_id = r.id
			AND m.system_type = 'NETWORK_ERROR' AND m.author_id = ? ORDER BY m.seq`, id, regie.ComponentTools); err != nil {
			return err
		}
		if view.Enrichments, err = readEnrichments(ctx, q, id); err != nil {
			return err
		}
		if view.Exchanges, err = readExchangeViews(ctx, q, id); err != nil {
			return err
		}
		if view.Spent, err = readSpending(q.QueryRowContext(ctx, callsOf("", "?1", "", "?2"), id,
			time.Now().Add(-worstCaseFor).UnixMicro())); err != nil {
			return err
		}
		if view.Undos, err = readUndos(ctx, q, "WHERE u.round_id = ?", id); err != nil {
			return err
		}
		return q.QueryRowContext(ctx, "SELECT head FROM chains WHERE owner_id = ?", view.Session.ID).Scan(&view.Head)
	})
	return view, err
}

func readExchangeViews(ctx context.Context, q querier, round regie.ID) ([]store.ExchangeView, error) {
	exchanges, err := readExchanges(ctx, q, round, 0)
	if err != nil {
		return nil, err
	}
	summaries, err := contextSummaries(ctx, q, round)
	if err != nil {
		return nil, err
	}
	views := make([]store.ExchangeView, len(exchanges))
	for i, exchange := range exchanges {
		view := &views[i]
		view.Exchange, view.Summary = exchange, summaries[exchange.Number]
		if view.Attempts, err = readAttempts(ctx, q, round, exchange.Number); err != nil {
			return nil, err
		}
		if exchange.ReplyID.IsZero() {
			continue
		}
		reply, err := readMessage(ctx, q, exchange.ReplyID)
		if err != nil {
			return nil, err
		}
		view.Reply, view.Usage.Estimated = &reply, reply.Usage != nil && reply.Usage.Estimated
		if view.Calls, err = readCalls(ctx, q, callsOfMessage, exchange.ReplyID); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// contextSummaries returns the summaries of a round, by exchange.
func contextSummaries(ctx context.Context, q querier, round regie.ID) (map[int]*regie.Message, error) {
	messages, err := readMessages(ctx, q,
		"WHERE m.session = (SELECT session FROM rounds WHERE id = ?1) AND m.round_id = ?1 AND m.system_type = 'CONTEXT_SUMMARY'", round)
	out := map[int]*regie.Message{}
	for i := range messages {
		out[messages[i].Exchange] = &messages[i]
	}
	return out, err
}

func readAttempts(ctx context.Context, q querier, round regie.ID, exchange int) ([]regie.Attempt, error) {
	return queryAll(ctx, q, func(row scanner, a *regie.Attempt) error {
		var cost sql.NullInt64
		var estimated bool
		err := row.Scan(&a.RoundID, &a.Exchange, &a.Number, &a.Code, &a.Error, &a.Partial, &a.Usage.Input, &a.Usage.Output,
			&a.Usage.CacheCreation, &a.Usage.CacheRead, &a.Usage.Reasoning, &a.Money.Reserved, &cost, &a.Money.Overrun,
			&a.OpenedAt, &a.EndedAt, &a.ModelUS, &a.FirstSeq, &a.LastSeq, &a.Request, &a.Head, &a.Purpose, &a.Provider,
			&a.Model, &estimated)
		a.Money.Cost, a.Money.Known = cost.Int64, cost.Valid
		if !a.Money.Known && a.Money.Reserved > 0 && time.Since(a.EndedAt) > worstCaseFor {
			a.Money.Cost, a.Money.Known = a.Money.Reserved, true
		}
		a.Money.Estimated = estimated && a.Money.Cost > 0
		a.Usage.Estimated = estimated && a.Usage != regie.Usage{}
		return err
	}, `SELECT round_id, exchange, number, code, error, partial, input_tokens, output_tokens, cache_write_tokens,
			cache_read_tokens, reasoning_tokens, reserved_microusd, cost_microusd, overrun_microusd, opened_at, ended_at, coalesce(model_us, 0),
			coalesce(first_seq, 0), coalesce(last_seq, 0), request, head, nullif(purpose, 'step'), provider, model, `+attemptEstimated+`
		FROM attempts a WHERE round_id = ? AND exchange = ? ORDER BY number`, round, exchange)
}

// listedRounds selects the rounds of a list, the newest first: ?1 the root of their workspace, ?2
// how many, ?3 their session, ?4 and ?5 the mark, ?6 their state, ?7 and ?8 when they started.
const listedRounds = `s.deleted_at IS NULL AND (w.root = ?1 OR ?1 = '') AND (s.id = ?3 OR ?3 IS NULL)
	AND (?6 = '' OR r.state = ?6 OR ?6 = 'FAILED' AND r.end_reason IN ('PROVIDER_ERROR', 'NO_PROGRESS', 'WATCHDOG'))
	AND r.started_at >= ?7 AND (CAST(?8 AS BIGINT) = 0 OR r.started_at < ?8)
	AND (CAST(?4 AS BIGINT) = 0 OR r.started_at < ?4 OR r.started_at = ?4 AND r.id < ?5) ORDER BY r.started_at DESC, r.id DESC LIMIT ?2`

// Rounds lists the rounds of the workspace at root, or of all for "", newest first.
func (s sessionStore) Rounds(ctx context.Context, filter store.RoundFilter) ([]store.RoundSummary, error) {
	root := filter.Root
	if filter.Limit == 0 {
		filter.Limit = 20
	}
	undos, err := readUndos(ctx, s.read,
		`JOIN rounds r ON r.id = u.round_id JOIN workspaces w ON w.id = u.workspace_id WHERE (w.root = ? OR ? = '')`,
		root, root)
	if err != nil {
		return nil, err
	}
	ofRound := map[regie.ID][]regie.Undo{}
	for _, u := range undos {
		ofRound[u.RoundID] = append(ofRound[u.RoundID], u)
	}
	spent, err := s.spentByRound(ctx, filter)
	if err != nil {
		return nil, err
	}
	return queryList(ctx, s.read, func(row scanner, line *store.RoundSummary) error {
		var trigger regie.Message
		err := scanSession(scannerFunc(func(session ...any) error {
			return scanRoundAnd(row, &line.Round, append(session, asJSON{&trigger}, &line.Exchanges, &line.Calls)...)
		}), &line.Session)
		var asked bool
		if line.Spent, asked = spent[line.Round.ID]; !asked {
			line.Spent.Known = true // it has called no model
		}
		paths, chat := regie.Standing(ofRound[line.Round.ID], regie.ID{})
		line.Undone, line.Text = len(paths) > 0 || !chat.IsZero(), trigger.LinearText()
		return err
	}, "SELECT "+roundColumns+", "+sessionColumns+`, b.body,
			(SELECT count(*) FROM exchanges e WHERE e.round_id = r.id),
			(SELECT count(*) FROM exchanges e JOIN calls c ON c.message_id = e.reply_id WHERE e.round_id = r.id)
		FROM rounds r JOIN sessions s ON s.n = r.session LEFT JOIN messages m ON m.id = r.trigger_message_id
		LEFT JOIN events ev ON ev.chain = m.session AND ev.seq = m.seq LEFT JOIN event_bodies b ON b.n = ev.n
		JOIN workspaces w ON w.id = s.workspace_id JOIN chains c ON c.n = s.n
		WHERE `+listedRounds, roundArgs(filter)...)
}

// roundArgs returns the parameters of listedRounds.
func roundArgs(f store.RoundFilter) []any {
	return []any{
		f.Root, f.Limit, f.SessionID, f.Before.Micros(), f.Before.ID, f.State,
		store.Mark{At: f.From}.Micros(), store.Mark{At: f.To}.Micros(),
	}
}
