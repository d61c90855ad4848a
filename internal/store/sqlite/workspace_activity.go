package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
)

// LastActive returns when something last happened in the sessions of each workspace that has any.
func (s sessionStore) LastActive(ctx context.Context) (map[regie.ID]time.Time, error) {
	list, err := queryList(ctx, s.read, func(row scanner, w *regie.Workspace) error { return row.Scan(&w.ID, &w.LastActive) },
		`SELECT s.workspace_id, max(c.head_at) FROM sessions s JOIN chains c ON c.n = s.n
		WHERE s.deleted_at IS NULL GROUP BY s.workspace_id`)
	out := make(map[regie.ID]time.Time, len(list))
	for _, w := range list {
		out[w.ID] = w.LastActive
	}
	return out, err
}
