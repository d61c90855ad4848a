package sqlite

import (
	"context"

	"github.com/regie-run/regie"
)

// Workspaces lists the workspaces, by name.
func (s sessionStore) Workspaces(ctx context.Context) ([]regie.Workspace, error) {
	return queryList(ctx, s.read, func(row scanner, w *regie.Workspace) error {
		return row.Scan(&w.ID, &w.Name, &w.Root, &w.FoundBy, &w.CreatedAt)
	}, "SELECT id, name, root, found_by, created_at FROM workspaces ORDER BY name, id")
}
