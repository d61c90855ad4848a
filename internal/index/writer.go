package index

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// What one commit takes at most. A kill loses so much, and the next update reads it again.
const (
	commitBytes = 32 << 20
	commitAfter = 5 * time.Second
)

// readFiles returns the index's record of each file, by its path.
func readFiles(ctx context.Context, db *database) (map[string]*known, error) {
	rows, err := db.read.QueryContext(ctx,
		"SELECT id, path, sha256, size, mtime, ctime, indexed_at, skipped FROM files")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]*known{}
	for rows.Next() {
		var k known
		var path string
		var hash sql.RawBytes
		if err := rows.Scan(&k.id, &path, &hash, &k.stamp.Size, &k.stamp.Mtime, &k.stamp.Ctime,
			&k.indexedAt, &k.skipped); err != nil {
			return nil, err
		}
		k.hash = string(hash)
		out[path] = &k
	}
	return out, rows.Err()
}

// writer writes files, each completely or not at all, several in a commit. It belongs to one
// goroutine; the caller holds the lock. The context of an update does not cancel its statements: a
// cancelled update commits its finished files.
type writer struct {
	db    *database
	tx    *sql.Tx
	since time.Time // of the first file of this commit
	bytes int64
	terms *splitter

	newFile, putFile, touchFile, dropFile, chunksOf, dropTerms, dropChunks, putChunk, putTerms *sql.Stmt
}

func newWriter(db *database) (*writer, error) {
	w := &writer{db: db, terms: newSplitter()}
	err := w.beginTx()
	return w, err
}

func (w *writer) beginTx() (err error) {
	tx, err := w.db.write.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	w.tx, w.since, w.bytes = tx, time.Now(), 0
	for _, s := range []struct {
		stmt **sql.Stmt
		text string
	}{
		// No upserts: each would have a savepoint of its own, at which FTS5 writes out what it has
		// gathered.
		{&w.newFile, "INSERT INTO files (sha256, size, mtime, ctime, indexed_at, skipped, path) VALUES (?, ?, ?, ?, ?, ?, ?)"},
		{&w.putFile, "UPDATE files SET sha256 = ?, size = ?, mtime = ?, ctime = ?, indexed_at = ?, skipped = ? WHERE id = ?"},
		{&w.touchFile, "UPDATE files SET size = ?, mtime = ?, ctime = ?, indexed_at = ? WHERE id = ?"},
		{&w.dropFile, "DELETE FROM files WHERE id = ?"},
		{&w.chunksOf, "SELECT id, symbol, text FROM chunks WHERE file = ?"},
		{&w.dropTerms, "INSERT INTO terms (terms, rowid, path, symbol, body) VALUES ('delete', ?, ?, ?, ?)"},
		{&w.dropChunks, "DELETE FROM chunks WHERE file = ?"},
		{&w.putChunk, "INSERT INTO chunks (file, first, last, symbol, text, hash) VALUES (?, ?, ?, ?, ?, ?)"},
		{&w.putTerms, "INSERT INTO terms (rowid, path, symbol, body) VALUES (?, ?, ?, ?)"},
	} {
		//nolint:sqlclosecheck // they go with the transaction
		if *s.stmt, err = w.tx.PrepareContext(context.Background(), s.text); err != nil {
			return errors.Join(err, w.tx.Rollback())
		}
	}
	return nil
}

// endTx commits what there is, unless a statement failed.
func (w *writer) endTx(failed error) error {
	if sqliteCode(failed) != 0 {
		_ = w.tx.Rollback() // failed says what went wrong
		return nil
	}
	return w.tx.Commit()
}

// storeFile stores what was read of a file.
func (w *writer) storeFile(f *file) error {
	switch {
	case f.same:
		return w.runStatement(w.touchFile, f.stamp.Size, f.stamp.Mtime, f.stamp.Ctime, f.at, f.known.id)
	case f.known != nil:
		if err := w.dropParts(f.known.id, f.path); err != nil {
			return err
		}
		if err := w.runStatement(w.putFile, []byte(f.hash), f.stamp.Size, f.stamp.Mtime, f.stamp.Ctime, f.at, f.skipped,
			f.known.id); err != nil {
			return err
		}
		return w.putChunks(f.known.id, f)
	default:
		id, err := insertRow(w.newFile, []byte(f.hash), f.stamp.Size, f.stamp.Mtime, f.stamp.Ctime, f.at, f.skipped,
			f.path)
		if err != nil {
			return err
		}
		return w.putChunks(id, f)
	}
}

func (w *writer) putChunks(id int64, f *file) error {
	for i := range f.chunks {
		c := &f.chunks[i]
		row, err := insertRow(w.putChunk, id, c.First, c.Last, c.Symbol, c.Text, c.hash[:])
		if err != nil {
			return err
		}
		if err := w.runStatement(w.putTerms, row, c.path, c.symbols, c.body); err != nil {
			return err
		}
	}
	if w.bytes += f.size; w.bytes < commitBytes && time.Since(w.since) < commitAfter {
		return nil
	}
	if err := w.tx.Commit(); err != nil {
		return err
	}
	return w.beginTx()
}

// removeFile takes a file out.
func (w *writer) removeFile(id int64, path string) error {
	if err := w.dropParts(id, path); err != nil {
		return err
	}
	return w.runStatement(w.dropFile, id)
}

// dropParts takes the chunks of a file out. FTS5 needs the very terms to take them out, so that the
// measures of BM25 stay those of an index that was made from nothing.
func (w *writer) dropParts(id int64, path string) error {
	rows, err := w.chunksOf.QueryContext(context.Background(), id)
	if err != nil {
		return err
	}
	defer rows.Close()
	pathTerms := w.terms.spellTerms(path)
	for rows.Next() {
		var chunk int64
		var symbol, text string
		if err := rows.Scan(&chunk, &symbol, &text); err != nil {
			return err
		}
		if err := w.runStatement(w.dropTerms, chunk, pathTerms, w.terms.spellTerms(symbol),
			w.terms.spellTerms(text)); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return w.runStatement(w.dropChunks, id)
}

func (w *writer) runStatement(stmt *sql.Stmt, args ...any) error {
	_, err := stmt.ExecContext(context.Background(), args...)
	return err
}

func insertRow(stmt *sql.Stmt, args ...any) (id int64, err error) {
	result, err := stmt.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}
