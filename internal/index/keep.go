package index

import (
	"context"
	"errors"
)

// keepVectors takes over what was embedded, and what that has cost, from an index that is to be
// replaced. Where that cannot be read, or is another version's that kept it otherwise, its error
// says so, and the fresh one is as empty as it was. The caller holds the lock.
func keepVectors(ctx context.Context, from, fresh string) (err error) {
	db, err := openPool(from, 1) // which leaves the log of the old one where it is
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	var mark int
	if err := conn.QueryRowContext(ctx, "SELECT application_id FROM pragma_application_id").Scan(&mark); err != nil ||
		mark != application {
		return errors.Join(errOther, err)
	}
	if _, err := conn.ExecContext(ctx, "ATTACH ? AS fresh", fresh); err != nil {
		return err
	}
	// Nobody else has the fresh one, and who finds half of it removes it: so it needs no log, which
	// would be as large as all vectors.
	statements := []string{
		"PRAGMA fresh.journal_mode = MEMORY", "BEGIN",
		`INSERT INTO fresh.spaces (id, name, dimensions, upto) SELECT id, name, dimensions, 0 FROM main.spaces
			WHERE name NOT IN (SELECT value FROM main.meta WHERE name = 'outdated')`,
		"INSERT INTO fresh.embeddings (id, space, hash, vector) SELECT id, space, hash, vector FROM main.embeddings WHERE space IN (SELECT id FROM fresh.spaces) ORDER BY id",
		"INSERT INTO fresh.signs (id, space, signs) SELECT id, space, signs FROM main.signs WHERE id IN (SELECT id FROM fresh.embeddings) ORDER BY id",
		"INSERT INTO fresh.embedding_costs (day, microusd) SELECT day, microusd FROM main.embedding_costs",
		"COMMIT",
	}
	for _, statement := range statements {
		if _, err = conn.ExecContext(ctx, statement); err != nil {
			_, undone := conn.ExecContext(done(), "ROLLBACK")
			err = errors.Join(err, undone)
			break
		}
	}
	_, back := conn.ExecContext(done(), "PRAGMA fresh.journal_mode = WAL")
	_, away := conn.ExecContext(done(), "DETACH fresh")
	return errors.Join(err, back, away)
}
