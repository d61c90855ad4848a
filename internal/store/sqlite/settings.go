package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie/internal/store"
)

// Settings returns the values that were set through the interface, by their names (decision 52).
func (s tokenStore) Settings(ctx context.Context) (map[string]string, error) {
	values, err := queryAll(ctx, s.read, func(row scanner, v *store.Setting) error { return row.Scan(&v.Name, &v.Value) },
		"SELECT name, value FROM settings s WHERE value <> '' AND n = (SELECT max(n) FROM settings l WHERE l.name = s.name)")
	out := make(map[string]string, len(values))
	for _, v := range values {
		out[v.Name] = v.Value
	}
	return out, err
}

// Settle stores new values, all of them or none, and their author.
func (s tokenStore) Settle(ctx context.Context, values []store.Setting, by string) error {
	now := time.Now()
	return s.writer.do(ctx, func(t *tx) error {
		for _, v := range values {
			t.exec("INSERT INTO settings (name, value, by, at) VALUES (?, ?, ?, ?)", v.Name, v.Value, by,
				now.UnixMicro())
		}
		return nil
	})
}
