package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// AppendReply stores a model's reply with all its calls, the intent of the first action, and the
// next step (spec 2.3, decision 4). It returns CodeStale for an old epoch and CodeStopRequested
// after a stop request.
func (s roundStore) AppendReply(ctx context.Context, fence store.Fence, in store.Reply) (store.Outcome, error) {
	now := time.Now().UTC()
	b := batch{fence: fence, now: now}
	b.addMessage(&in.Message)
	for i := range in.Calls {
		if in.Calls[i].State == regie.CallStarted {
			b.addStarted(&in.Calls[i])
		}
	}
	for i := range in.Calls {
		if in.Calls[i].State.Settled() {
			b.addSettled(&in.Calls[i])
		}
	}
	b.addAsked(in.Ask, func(id regie.ID) *regie.Call { return callByID(in.Calls, id) })
	if in.Results != nil {
		b.addMessage(in.Results)
	}
	b.addEnd(in.Advance.End)
	return transition(ctx, s.writer, func(t *tx, out *store.Outcome) error {
		t.rounds.advanceRound(fence, &in.Advance, in.Exchange.Number, totalsOf(in.Exchange), startsCall(in.Calls) ||
			in.Ask != nil || in.Park, now)
		t.rounds.exchangeReplied(fence, in.Exchange, in.Message.ID, now)
		t.rounds.insertCalls(fence.Chain, &in.Message, in.Calls, now)
		b.writeBatch(t)
		t.money.bookCost(fence, totalsOf(in.Exchange), now)
		t.money.cacheReply(fence, &in, now)
		out.Seq = in.Message.Seq
		t.rounds.applyFollows(fence, follows{
			ask: in.Ask, approval: b.askingSeq(), park: in.Park, exchange: in.Exchange.Number, advance: &in.Advance,
			closes: in.Results != nil || in.Message.System != nil,
		}, out, now)
		return nil
	})
}

func callByID(calls []regie.Call, id regie.ID) *regie.Call {
	for i := range calls {
		if calls[i].ID == id {
			return &calls[i]
		}
	}
	return nil
}

func startsCall(calls []regie.Call) bool {
	for i := range calls {
		if calls[i].State == regie.CallStarted {
			return true
		}
	}
	return false
}

// totalsOf returns an exchange's usage for its round's totals.
func totalsOf(e regie.Exchange) totals {
	return totals{
		tokens: e.Usage.Input + e.Usage.Output, cost: e.Money.Booked(),
		released: e.Money.Reserved, unknown: !e.Money.Known,
	}
}

func (t roundTx) exchangeReplied(fence store.Fence, e regie.Exchange, reply regie.ID, now time.Time) {
	var cost any
	if e.Money.Known {
		cost = e.Money.Cost
	}
	t.one(errNotOpen, `UPDATE exchanges SET state = 'REPLIED', head = coalesce(?, head), first_seq = ?, last_seq = ?, request = ?, reply_id = ?,
			input_tokens = ?, output_tokens = ?, cache_write_tokens = ?, cache_read_tokens = ?, reasoning_tokens = ?, cost_microusd = ?,
			overrun_microusd = ?, stop_reason = ?, first_byte_us = ?, model_us = ?, replied_at = ?, provider = coalesce(?, provider),
			model = coalesce(?, model) WHERE round_id = ? AND number = ? AND state = 'OPEN'`,
		e.Head, e.FirstSeq, e.LastSeq, e.Request, reply, e.Usage.Input, e.Usage.Output, e.Usage.CacheCreation,
		e.Usage.CacheRead, e.Usage.Reasoning, cost, e.Money.Overrun, e.StopReason, e.FirstByteUS, e.ModelUS,
		now.UnixMicro(), nullIfEmpty(e.Provider), nullIfEmpty(e.Model), fence.RoundID, e.Number)
}

var errNotOpen = regie.Errorf(regie.CodeConflict, "the exchange is not waiting for a reply")

var errHalfBatch = regie.Errorf(regie.CodeConflict, "a message and its calls do not agree")

// insertCalls stores the calls of a message, whole or not at all (spec 2.3, decision 7).
func (t roundTx) insertCalls(chain int64, m *regie.Message, calls []regie.Call, now time.Time) {
	ids := m.CallIDs()
	if len(ids) != len(calls) {
		t.fail(errHalfBatch)
	}
	for _, c := range calls {
		if c.MessageID != m.ID || !slices.Contains(ids, c.ID) {
			t.fail(errHalfBatch)
		}
		if c.ProposedAt, c.SettledAt = now, (time.Time{}); c.State.Settled() {
			c.SettledAt = now
		}
		t.insertCall(chain, &c)
	}
	t.noteFlow(chain, calls)
}

// noteFlow marks a session with what the results of its calls bring in (decision 34). No mark is
// ever taken back.
func (t roundTx) noteFlow(chain int64, calls []regie.Call) {
	var tainted, private int64
	for i := range calls {
		tainted, private = max(tainted, boolToInt(calls[i].Tainted)), max(private, boolToInt(calls[i].ReadPrivate))
	}
	if tainted+private > 0 {
		t.exec(`UPDATE sessions SET tainted = CASE WHEN ?1 = 1 THEN 1 ELSE tainted END,
				read_private = CASE WHEN ?2 = 1 THEN 1 ELSE read_private END
			WHERE n = ?3 AND (tainted < ?1 OR read_private < ?2)`, tainted, private, chain)
	}
}

func (t roundTx) insertCall(chain int64, c *regie.Call) {
	var as, by, note, resolved any
	if r := c.Resolution; r != nil {
		as, by, note, resolved = string(r.As), r.By, nullIfEmpty(r.Note), toMicros(r.At)
	}
	t.exec(`INSERT INTO calls (id, session, round_id, exchange, ordinal, message_id, origin, tool, provider_call_id, kind, class,
			signature, definition, arguments, executed, ask, state, code, intent, result, error, result_blob, duplicate_of, attempts, recovered,
			duration_us, proposed_at, started_at, settled_at, resolved_at, resolved_by, resolved_as, resolve_note, copy_of)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		c.ID, chain, c.RoundID, c.Exchange, c.Ordinal, c.MessageID, string(c.Origin), c.Tool, nullIfEmpty(c.ProviderCallID),
		string(c.Kind), string(c.Class), c.Signature, c.Definition, c.Arguments, nullIfEmpty(string(c.Executed)), boolToInt(c.Ask),
		string(c.State), nullIfEmpty(c.NotRun), nullIfEmpty(string(c.Intent)), callResult(c), asJSON{c.Error}, c.ResultBlob, c.DuplicateOf,
		c.Attempts, boolToInt(c.Recovered), callDuration(c), c.ProposedAt.UnixMicro(), toMicros(c.StartedAt), toMicros(c.SettledAt),
		resolved, by, as, note, c.CopyOf)
}

// callDuration returns the duration of a settled call, nil for a call that did not run.
func callDuration(c *regie.Call) any {
	if !c.State.Settled() {
		return nil
	}
	return c.DurationUS
}

// callResult returns a settled call's result for the model; an empty text is a result too.
func callResult(c *regie.Call) any {
	if !c.State.Settled() || c.Error != nil {
		return nullIfEmpty(c.Result)
	}
	return c.Result
}
