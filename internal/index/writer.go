package index

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// files is what the index has of each file, by its path.
func (d *database) files(ctx context.Context) (map[string]*known, error) {
	rows, err := d.read.QueryContext(ctx, "SELECT id, path, sha256, size, mtime, ctime, indexed_at, skipped FROM files")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]*known{}
	for rows.Next() {
		var k known
		var path string
		var hash sql.RawBytes
		if err := rows.Scan(&k.id, &path, &hash, &k.stamp.Size, &k.stamp.Modified, &k.stamp.Changed, &k.indexedAt, &k.skipped); err != nil {
			return nil, err
		}
		k.hash = string(hash)
		out[path] = &k
	}
	return out, rows.Err()
}

// writer writes on the one connection for that. Each file goes in whole or not at all; a commit takes some of them. It belongs to one goroutine,
// whose caller holds the lock.
type writer struct {
	conn  *sql.Conn
	begun bool
	since time.Time // of the first file of this commit
	bytes int64
	files int
	moved bool // chunks have come or gone in this commit

	newFile, putFile, touchFile, dropFile, dropChunks, dropTerms, putChunk, putTerms *sql.Stmt
}

// done is for statements that are not to be cut off in the middle: what a cancelled update has made by then is committed.
func done() context.Context { return context.Background() }

func newWriter(ctx context.Context, db *database) (*writer, error) {
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{conn: conn}
	for _, s := range []struct {
		stmt **sql.Stmt
		text string
	}{
		// Not one statement for both: it would have a savepoint of its own, and FTS5 writes out what it has gathered at each of them.
		{&w.newFile, "INSERT INTO files (sha256, size, mtime, ctime, indexed_at, skipped, path) VALUES (?, ?, ?, ?, ?, ?, ?)"},
		{&w.putFile, "UPDATE files SET sha256 = ?, size = ?, mtime = ?, ctime = ?, indexed_at = ?, skipped = ? WHERE id = ?"},
		{&w.touchFile, "UPDATE files SET size = ?2, mtime = ?3, ctime = ?4, indexed_at = ?5 WHERE id = ?1"},
		{&w.dropFile, "DELETE FROM files WHERE id = ?"},
		{&w.dropTerms, "DELETE FROM terms WHERE rowid IN (SELECT id FROM chunks WHERE file = ?)"},
		{&w.dropChunks, "DELETE FROM chunks WHERE file = ?"},
		{&w.putChunk, "INSERT INTO chunks (file, first, last, symbol, text, hash) VALUES (?, ?, ?, ?, ?, ?)"},
		{&w.putTerms, "INSERT INTO terms (rowid, path, symbol, body) VALUES (?, ?, ?, ?)"},
	} {
		if *s.stmt, err = conn.PrepareContext(ctx, s.text); err != nil { //nolint:sqlclosecheck // close does
			return nil, errors.Join(err, w.close())
		}
	}
	return w, nil
}

// close undoes what was not committed.
func (w *writer) close() error {
	var errs []error
	if w.begun {
		_, err := w.conn.ExecContext(done(), "ROLLBACK")
		if damaged(err) { // there is nothing left to go back to
			err = nil
		}
		errs = append(errs, err)
	}
	for _, s := range []*sql.Stmt{w.newFile, w.putFile, w.touchFile, w.dropFile, w.dropChunks, w.dropTerms, w.putChunk, w.putTerms} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(append(errs, w.conn.Close())...)
}

func (w *writer) begin() error {
	if w.begun {
		return nil
	}
	_, err := w.conn.ExecContext(done(), "BEGIN IMMEDIATE")
	w.begun = err == nil
	w.since, w.bytes, w.files, w.moved = time.Now(), 0, 0, false
	return err
}

// commit commits what there is, if anything.
func (w *writer) commit() error {
	if !w.begun {
		return nil
	}
	if w.moved {
		if _, err := w.conn.ExecContext(done(), "UPDATE meta SET value = value + 1 WHERE name = 'revision'"); err != nil {
			return err
		}
	}
	_, err := w.conn.ExecContext(done(), "COMMIT")
	w.begun = err != nil
	return err
}

// put stores what became of a file.
func (w *writer) put(o *outcome) error {
	if err := w.begin(); err != nil {
		return err
	}
	stamp := o.entry.Stamp
	if o.same {
		_, err := w.touchFile.ExecContext(done(), o.known.id, stamp.Size, stamp.Modified, stamp.Changed, o.at)
		return errors.Join(err, w.full(o))
	}
	id, err := w.file(o)
	if err != nil {
		return err
	}
	for i := range o.chunks {
		c := &o.chunks[i]
		in, err := w.putChunk.ExecContext(done(), id, c.First, c.Last, c.Symbol, c.Text, c.hash[:])
		if err != nil {
			return err
		}
		row, err := in.LastInsertId()
		if err != nil {
			return err
		}
		if _, err := w.putTerms.ExecContext(done(), row, c.pathTerms, c.symbols, c.body); err != nil {
			return err
		}
		w.moved = true
	}
	return w.full(o)
}

// file stores a file, without the parts that it had, and returns its id.
func (w *writer) file(o *outcome) (int64, error) {
	stamp := o.entry.Stamp
	if o.known != nil {
		if err := w.dropParts(o.known.id); err != nil {
			return 0, err
		}
		_, err := w.putFile.ExecContext(done(), []byte(o.hash), stamp.Size, stamp.Modified, stamp.Changed, o.at, o.skipped, o.known.id)
		return o.known.id, err
	}
	in, err := w.newFile.ExecContext(done(), []byte(o.hash), stamp.Size, stamp.Modified, stamp.Changed, o.at, o.skipped, o.entry.Path)
	if err != nil {
		return 0, err
	}
	return in.LastInsertId()
}

// full commits where enough has come together.
func (w *writer) full(o *outcome) error {
	w.files++
	if w.bytes += o.size; w.bytes < commitBytes && w.files < commitFiles && time.Since(w.since) < commitAfter {
		return nil
	}
	return w.commit()
}

// remove takes a file out.
func (w *writer) remove(id int64) error {
	err := w.begin()
	if err == nil {
		err = w.dropParts(id)
	}
	if err == nil {
		_, err = w.dropFile.ExecContext(done(), id)
	}
	return err
}

func (w *writer) dropParts(file int64) error {
	if _, err := w.dropTerms.ExecContext(done(), file); err != nil {
		return err
	}
	_, err := w.dropChunks.ExecContext(done(), file)
	w.moved = true
	return err
}
