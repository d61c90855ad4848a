package sqlite

import (
	"context"
	"database/sql"

	"github.com/regie-run/regie"
)

// Workspaces lists the workspaces, by name.
func (s sessionStore) Workspaces(ctx context.Context) ([]regie.Workspace, error) {
	rows, err := s.read.QueryContext(ctx,
		"SELECT id, name, root, found_by, created_at FROM workspaces ORDER BY name, id")
	if err != nil {
		return nil, explain(err, FileName)
	}
	defer rows.Close()
	out := []regie.Workspace{}
	for rows.Next() {
		var w regie.Workspace
		var root sql.NullString
		var made int64
		if err := rows.Scan(&w.ID, &w.Name, &root, &w.FoundBy, &made); err != nil {
			return nil, explain(err, FileName)
		}
		w.Root, w.CreatedAt = root.String, fromMicros(made)
		out = append(out, w)
	}
	return out, explain(rows.Err(), FileName)
}
