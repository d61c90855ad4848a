package sqlite

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// searchBatch is how many messages are read at once while a search looks through them.
const searchBatch = 500

// Said gives visit what people and models have said in the sessions of a workspace, the newest
// first, from behind a message on, until it returns false or there is no more.
func (s sessionStore) Said(ctx context.Context, workspace, before regie.ID, visit func(store.SaidMessage) bool) error {
	names := map[regie.ID]string{}
	for {
		batch, err := readMessages(ctx, s.read, `WHERE s.workspace_id = ?1 AND s.deleted_at IS NULL AND m.seq IS NOT NULL AND m.sender <> 'SYSTEM'
			AND (m.id < ?2 OR ?2 IS NULL) ORDER BY m.id DESC LIMIT ?3`, workspace, before, searchBatch)
		if err != nil {
			return err
		}
		for i := range batch {
			m := &batch[i]
			name, known := names[m.SessionID]
			if !known {
				if err := s.read.QueryRowContext(ctx, "SELECT name FROM sessions WHERE id = ?",
					m.SessionID).Scan(&name); err != nil {
					return err
				}
				names[m.SessionID] = name
			}
			if !visit(store.SaidMessage{Message: *m, Session: name}) {
				return nil
			}
			before = m.ID
		}
		if len(batch) < searchBatch {
			return nil
		}
	}
}
