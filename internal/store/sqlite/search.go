package sqlite

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// searchBatch is how many messages a search reads at once.
const searchBatch = 500

// Said calls visit with the messages of people and models in the sessions of a workspace, the
// newest first, starting behind the message before, until visit returns false.
func (s sessionStore) Said(ctx context.Context, workspace, before regie.ID, visit func(store.SaidMessage) bool) error {
	type named struct {
		id   regie.ID
		name string
	}
	all, err := queryAll(ctx, s.read, func(row scanner, n *named) error { return row.Scan(&n.id, &n.name) },
		"SELECT id, name FROM sessions WHERE workspace_id = ?", workspace)
	if err != nil {
		return err
	}
	names := map[regie.ID]string{}
	for _, n := range all {
		names[n.id] = n.name
	}
	for {
		batch, err := readMessages(ctx, s.read, `WHERE s.workspace_id = ?1 AND s.deleted_at IS NULL AND m.seq IS NOT NULL AND m.sender <> 'SYSTEM'
			AND (m.id < ?2 OR ?2 IS NULL) ORDER BY m.id DESC LIMIT ?3`, workspace, before, searchBatch)
		if err != nil {
			return err
		}
		for i := range batch {
			m := &batch[i]
			if !visit(store.SaidMessage{Message: *m, Session: names[m.SessionID]}) {
				return nil
			}
			before = m.ID
		}
		if len(batch) < searchBatch {
			return nil
		}
	}
}
