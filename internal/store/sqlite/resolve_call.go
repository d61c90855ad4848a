package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// ResolveCall stores a person's finding about an UNKNOWN call (decision 5): it happened, and the
// call becomes SUCCEEDED, or it did not, and the call becomes FAILED. The call keeps its error for
// the audit. Repeating the same finding changes nothing; any other call or finding gets
// CodeConflict.
func (s approvalStore) ResolveCall(ctx context.Context, id regie.ID, as regie.ResolvedAs, note, by string) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		t.holdRow(ByCall, id)
		c := regie.Call{ID: id, State: regie.CallFailed, Error: &regie.CallError{Code: regie.CodeOutcomeUnknown}}
		if as == regie.ResolvedHappened {
			c.State = regie.CallSucceeded
		}
		fence := store.Fence{}
		var state regie.CallState
		var before regie.ResolvedAs
		var earlier string
		err := t.row(`SELECT s.id, s.n, c.round_id, c.exchange, c.tool, coalesce(c.executed, c.arguments), c.state, c.resolved_as, c.resolved_by FROM calls c
			JOIN sessions s ON s.n = c.session WHERE c.id = ? AND s.deleted_at IS NULL`, id).
			Scan(&fence.SessionID, &fence.Chain, &fence.RoundID, &c.Exchange, &c.Tool,
				&c.Arguments, &state, &before, &earlier)
		switch {
		case err != nil:
			return unlessFound(err, notFound("call", id))
		case before == as:
			return nil
		case before != "":
			return regie.Errorf(regie.CodeConflict, "%s has already resolved this call: %s",
				earlier, before)
		case state != regie.CallUnknown:
			return regie.Errorf(regie.CodeConflict, "the outcome of this call is known: it is %s", state)
		}
		t.one(errSettled,
			"UPDATE calls SET state = ?, resolved_at = ?, resolved_by = ?, resolved_as = ?, resolve_note = ? WHERE id = ? AND state = 'UNKNOWN'",
			string(c.State), now.UnixMicro(), by, string(as), nullIfEmpty(note), id)
		b := batch{fence: fence, now: now}
		b.addEvent(regie.EventToolResult, callEvent{
			CallID: id, Exchange: c.Exchange, Tool: c.Tool, About: store.About(&c), State: c.State,
			Error: regie.CodeOutcomeUnknown, ResolvedAs: as, ResolvedBy: by, Note: note,
		})
		b.writeBatch(t)
		return nil
	})
}
