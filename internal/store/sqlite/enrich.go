package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Enrich stores the data that a person's message names: the queries with their results and their
// DATA_ADDED, whole or not at all (decision 46). The round's phase does not change. It returns
// CodeStale, and CodeStopRequested after a stop request. The fence makes it run once: only the
// round's one holder reads, in the order of the thread.
func (s roundStore) Enrich(ctx context.Context, fence store.Fence, in store.Enrichment) (store.Outcome, error) {
	now := time.Now().UTC()
	b := batch{fence: fence, now: now}
	b.addMessage(&in.Message)
	for i := range in.Calls {
		b.addSettled(&in.Calls[i])
	}
	return transition(ctx, s.writer, func(t *tx, out *store.Outcome) error {
		t.rounds.mayWrite(fence, false)
		t.rounds.insertCalls(fence.Chain, &in.Message, in.Calls, now)
		b.writeBatch(t)
		out.Seq = in.Message.Seq
		return nil
	})
}

// readEnrichments returns a round's enrichments.
func readEnrichments(ctx context.Context, q querier, round regie.ID) ([]store.EnrichmentView, error) {
	messages, err := readMessages(ctx, q, `WHERE m.session = (SELECT session FROM rounds WHERE id = ?1) AND m.round_id = ?1 AND m.system_type = 'DATA_ADDED'
		AND m.calls > 0 ORDER BY m.seq`, round)
	if err != nil {
		return nil, err
	}
	var out []store.EnrichmentView
	for i := range messages {
		view := store.EnrichmentView{Message: messages[i]}
		if view.Calls, err = readCalls(ctx, q, callsOfMessage, messages[i].ID); err != nil {
			return nil, err
		}
		out = append(out, view)
	}
	return out, nil
}
