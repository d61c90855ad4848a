package index

import (
	"context"
	"database/sql"
)

// questions are the statements of a search, prepared once for each connection: to parse them took
// as long as to run some of them.
type questions struct {
	revision, pages, space, vectors, chunks, embedded, hit *sql.Stmt
}

// prepare prepares them when the file is opened: later, searches could hold all connections while
// each of them wants one more.
func (d *database) prepare(ctx context.Context) error {
	for _, q := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&d.asks.revision, "SELECT value FROM meta WHERE name = 'revision'"},
		{&d.asks.pages, "SELECT p.id, p.body FROM json_each(?) j JOIN pages p ON p.id = j.value"},
		{
			&d.asks.space,
			"SELECT id, dimensions, (SELECT coalesce(max(id), 0) FROM embeddings) FROM spaces WHERE name = ?",
		},
		{&d.asks.vectors, "SELECT e.id, e.vector FROM json_each(?) j JOIN embeddings e ON e.id = j.value"},
		{
			&d.asks.chunks,
			"SELECT e.id, c.id FROM json_each(?) j JOIN embeddings e ON e.id = j.value JOIN chunks c ON c.hash = e.hash",
		},
		{&d.asks.embedded, `SELECT id, upto, (SELECT count(*) FROM chunks c WHERE c.id > s.upto),
			EXISTS (SELECT 1 FROM embeddings e WHERE e.space = s.id AND e.vector IS NULL) FROM spaces s WHERE name = ?`},
		{
			&d.asks.hit,
			"SELECT f.path, c.first, c.last, c.symbol, c.text FROM chunks c JOIN files f ON f.id = c.file WHERE c.id = ?",
		},
	} {
		var err error
		if *q.stmt, err = d.read.PrepareContext(ctx, //nolint:sqlclosecheck // it goes with its connections
			q.text); err != nil {
			return err
		}
	}
	return nil
}
