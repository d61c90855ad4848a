package index

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/regie-run/regie/internal/index/posting"
)

// files is what the index has of each file, by its path, and which commit that is.
func (d *database) files(ctx context.Context) (out map[string]*known, commit int64, err error) {
	tx, err := d.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = tx.Rollback() }() // it was only read
	if err := tx.QueryRowContext(ctx, lastCommit).Scan(&commit); err != nil {
		return nil, 0, err
	}
	rows, err := tx.QueryContext(ctx, "SELECT id, path, sha256, size, mtime, ctime, indexed_at, skipped FROM files")
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	out = map[string]*known{}
	for rows.Next() {
		var k known
		var path string
		var hash sql.RawBytes
		if err := rows.Scan(&k.id, &path, &hash, &k.stamp.Size, &k.stamp.Mtime, &k.stamp.Ctime,
			&k.indexedAt, &k.skipped); err != nil {
			return nil, 0, err
		}
		k.hash = string(hash)
		out[path] = &k
	}
	return out, commit, rows.Err()
}

// Each commit of an update is counted in the file itself. The lock beside it is lost to its holder
// when somebody deletes it, with all of its directory perhaps: then the next one makes a lock of
// that name and holds that, and two write what each believes to be its own. So a writer that finds
// commits that are not its own writes nothing (errOvertaken): what it knew of the files is no
// longer so.
const (
	lastCommit  = "SELECT coalesce((SELECT value FROM meta WHERE name = 'commits'), 0)"
	countCommit = "INSERT INTO meta (name, value) VALUES ('commits', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"
)

var errOvertaken = errors.New("another writer has changed the index meanwhile")

// writer writes on the one connection for that. Each file goes in whole or not at all; a commit
// takes some of them. It belongs to one goroutine, whose caller holds the lock.
type writer struct {
	conn  *sql.Conn
	begun bool
	since time.Time // of the first file of this commit
	bytes int64
	files int
	moved bool  // chunks have come or gone in this commit
	last  int64 // the commit upon which this one follows
	terms *posting.Builder

	newFile, putFile, touchFile, dropFile, dropChunks, chunksOf, putGone, putChunk, putSegment, putPage *sql.Stmt
}

// done is for statements that are not to be cut off in the middle: what a cancelled update has made
// by then is committed.
func done() context.Context { return context.Background() }

// newWriter returns a writer that goes on from a commit.
func newWriter(ctx context.Context, db *database, last int64) (*writer, error) {
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{conn: conn, last: last, terms: posting.NewBuilder()}
	for _, s := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{
			&w.newFile,
			"INSERT INTO files (sha256, size, mtime, ctime, indexed_at, skipped, path) VALUES (?, ?, ?, ?, ?, ?, ?)",
		},
		{
			&w.putFile,
			"UPDATE files SET sha256 = ?, size = ?, mtime = ?, ctime = ?, indexed_at = ?, skipped = ? WHERE id = ?",
		},
		{&w.touchFile, "UPDATE files SET size = ?2, mtime = ?3, ctime = ?4, indexed_at = ?5 WHERE id = ?1"},
		{&w.dropFile, "DELETE FROM files WHERE id = ?"},
		{&w.chunksOf, "SELECT id FROM chunks WHERE file = ? ORDER BY id"},
		{&w.putGone, "INSERT INTO gone (first, last) VALUES (?, ?)"},
		{&w.dropChunks, "DELETE FROM chunks WHERE file = ?"},
		{&w.putChunk, "INSERT INTO chunks (file, first, last, symbol, text, hash) VALUES (?, ?, ?, ?, ?, ?)"},
		{&w.putSegment, "INSERT INTO segments (first, last, chunks, files, directory) VALUES (0, 0, 0, x'', x'')"},
		{&w.putPage, "INSERT INTO pages (id, body) VALUES (?, ?)"},
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
	for _, s := range []*sql.Stmt{
		w.newFile, w.putFile, w.touchFile, w.dropFile, w.dropChunks, w.chunksOf, w.putGone,
		w.putChunk, w.putSegment, w.putPage,
	} {
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
	if err != nil {
		return err
	}
	var last int64
	if err := w.conn.QueryRowContext(done(), lastCommit).Scan(&last); err != nil {
		return err
	}
	if last != w.last {
		return errOvertaken
	}
	return nil
}

// commit commits what there is, if anything.
func (w *writer) commit() error {
	if !w.begun {
		return nil
	}
	if err := w.segment(); err != nil {
		return err
	}
	if w.moved {
		if _, err := w.conn.ExecContext(done(),
			"UPDATE meta SET value = value + 1 WHERE name = 'revision'"); err != nil {
			return err
		}
	}
	if _, err := w.conn.ExecContext(done(), countCommit); err != nil {
		return err
	}
	_, err := w.conn.ExecContext(done(), "COMMIT")
	if w.begun = err != nil; !w.begun {
		w.last++
	}
	return err
}

// put stores what became of a file.
func (w *writer) put(o *outcome) error {
	if err := w.begin(); err != nil {
		return err
	}
	stamp := o.entry.Stamp
	if o.same {
		_, err := w.touchFile.ExecContext(done(), o.known.id, stamp.Size, stamp.Mtime, stamp.Ctime, o.at)
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
		w.terms.Add(o.entry.Path, row, c.terms, c.length)
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
		_, err := w.putFile.ExecContext(done(), []byte(o.hash), stamp.Size, stamp.Mtime,
			stamp.Ctime, o.at, o.skipped, o.known.id)
		return o.known.id, err
	}
	in, err := w.newFile.ExecContext(done(), []byte(o.hash), stamp.Size, stamp.Mtime, stamp.Ctime,
		o.at, o.skipped, o.entry.Path)
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

// dropParts takes the chunks of a file out. Their terms stay where they are, and are passed over.
func (w *writer) dropParts(file int64) error {
	rows, err := w.chunksOf.QueryContext(done(), file)
	if err != nil {
		return err
	}
	defer rows.Close()
	var gone []posting.Range
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		if n := len(gone); n > 0 && gone[n-1].Last == id-1 {
			gone[n-1].Last = id
		} else {
			gone = append(gone, posting.Range{First: id, Last: id})
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, g := range gone {
		if _, err := w.putGone.ExecContext(done(), g.First, g.Last); err != nil {
			return err
		}
	}
	_, err = w.dropChunks.ExecContext(done(), file)
	w.moved = true
	return err
}
