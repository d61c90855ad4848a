package index

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"

	"github.com/regie-run/regie/internal/index/posting"
)

// words are which chunks there are, and the first terms of the pages that say which of them have
// which terms: read when they are first needed, and again where they have changed. It is some 16
// bytes a chunk. The pages are read from the file by each search.
type words struct {
	mu       sync.Mutex
	of       *database // where they were read
	revision int64
	now      *posting.View
	segments map[int64]*posting.Segment
}

// view is the terms as a transaction sees them.
func (w *words) view(ctx context.Context, tx *sql.Tx, db *database) (*posting.View, error) {
	var revision int64
	if err := tx.StmtContext(ctx, db.asks.revision).QueryRowContext(ctx). //nolint:sqlclosecheck // it goes with its connections
										Scan(&revision); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of != db {
		w.of, w.revision, w.now, w.segments = db, -1, nil, nil
	}
	if w.revision == revision {
		return w.now, nil
	}
	rows, err := readSegments(ctx, tx)
	if err != nil {
		return nil, err
	}
	gone, err := readGone(ctx, tx, 0)
	if err != nil {
		return nil, err
	}
	segments := map[int64]*posting.Segment{}
	var parts []posting.Part
	for _, r := range rows {
		s := w.segments[r.id]
		if s == nil {
			if s, err = r.read(ctx, tx); err != nil {
				return nil, err
			}
		}
		segments[r.id] = s
		parts = append(parts, posting.PartOf(s, gone))
	}
	now := posting.NewView(parts)
	if revision > w.revision { // and not one of a reader who has begun before another
		w.revision, w.now, w.segments = revision, now, segments
	}
	return now, nil
}

// querier is a transaction or a connection.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// segmentRow is what a row of segments says, without its larger part.
type segmentRow struct {
	id, first, last int64
	size            posting.Size
}

// readSegments reads the segments in the order of their chunks.
func readSegments(ctx context.Context, from querier) ([]segmentRow, error) {
	rows, err := from.QueryContext(ctx, "SELECT id, first, last, chunks FROM segments ORDER BY first")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []segmentRow
	for rows.Next() {
		var r segmentRow
		if err := rows.Scan(&r.id, &r.first, &r.last, &r.size.Chunks); err != nil {
			return nil, err
		}
		if n := len(out); n > 0 && out[n-1].last >= r.first {
			return nil, posting.ErrDamaged
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// readGone reads which chunks have gone of those with ids from some on.
func readGone(ctx context.Context, from querier, first int64) ([]posting.Range, error) {
	rows, err := from.QueryContext(ctx, "SELECT first, last FROM gone WHERE first >= ? ORDER BY first", first)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []posting.Range
	for rows.Next() {
		var r posting.Range
		if err := rows.Scan(&r.First, &r.Last); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// read reads the segment.
func (r *segmentRow) read(ctx context.Context, from querier) (*posting.Segment, error) {
	var files, directory []byte
	if err := from.QueryRowContext(ctx, "SELECT files, directory FROM segments WHERE id = ?",
		r.id).Scan(&files, &directory); err != nil {
		return nil, err
	}
	return posting.Read(r.id, files, directory)
}

func pageID(segment int64, page int) int64 { return segment*posting.MaxPages + int64(page) }

// fetchPages reads pages.
func fetchPages(ctx context.Context, tx *sql.Tx, db *database, pages []posting.Page,
	each func(posting.Page, []byte) error,
) error {
	ids := make([]int64, len(pages))
	for i, p := range pages {
		ids[i] = pageID(p.Segment, p.Number)
	}
	slices.Sort(ids)                                                  // as they lie in the file
	rows, err := tx.StmtContext(ctx, db.asks.pages).QueryContext(ctx, //nolint:sqlclosecheck // it goes with its connections
		"["+join(ids)+"]")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var body sql.RawBytes
		if err := rows.Scan(&id, &body); err != nil {
			return err
		}
		if err := each(posting.Page{Segment: id / posting.MaxPages, Number: int(id % posting.MaxPages)},
			body); err != nil {
			return err
		}
	}
	return rows.Err()
}

// segment writes the terms of the chunks of this commit.
func (w *writer) segment() error {
	if w.terms.Len() == 0 {
		return nil
	}
	err := w.putBuilt(func(put func(int, []byte) error) (posting.Built, error) { return w.terms.Build(put) })
	w.terms = posting.NewBuilder()
	return err
}

// putBuilt writes a segment that is built meanwhile. One without a chunk is not kept.
func (w *writer) putBuilt(build func(put func(page int, body []byte) error) (posting.Built, error)) error {
	in, err := w.putSegment.ExecContext(done())
	if err != nil {
		return err
	}
	id, err := in.LastInsertId()
	if err != nil {
		return err
	}
	built, err := build(func(page int, body []byte) error {
		_, err := w.putPage.ExecContext(done(), pageID(id, page), body)
		return err
	})
	switch {
	case err != nil:
	case built.Chunks == 0:
		_, err = w.conn.ExecContext(done(), "DELETE FROM segments WHERE id = ?", id)
	default:
		_, err = w.conn.ExecContext(done(),
			"UPDATE segments SET first = ?, last = ?, chunks = ?, files = ?, directory = ? WHERE id = ?",
			built.First, built.Last, built.Chunks, built.Files, built.Directory, id)
	}
	return err
}

// merge merges segments until there are few of them, and little in them has gone. What was not
// committed when the context ends is undone.
func (w *writer) merge(ctx context.Context) error {
	for {
		rows, err := readSegments(ctx, w.conn)
		if err != nil {
			return err
		}
		gone, err := readGone(ctx, w.conn, 0)
		if err != nil {
			return err
		}
		sizes := make([]posting.Size, len(rows))
		at := 0
		for i := range rows {
			sizes[i] = rows[i].size
			for ; at < len(gone) && gone[at].First <= rows[i].last; at++ {
				sizes[i].Gone += int(gone[at].Last - gone[at].First + 1)
			}
		}
		from, to := posting.Plan(sizes)
		if from == to {
			return nil
		}
		if err := w.begin(); err != nil {
			return err
		}
		if err := w.mergeThese(ctx, rows[from:to], gone); err != nil {
			return err
		}
		w.moved = true
		if err := w.commit(); err != nil {
			return err
		}
	}
}

// mergeThese puts one segment in the place of some.
func (w *writer) mergeThese(ctx context.Context, rows []segmentRow, gone []posting.Range) (err error) {
	page, err := w.conn.PrepareContext(ctx, "SELECT body FROM pages WHERE id = ?")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, page.Close()) }()
	sources := make([]posting.Source, len(rows))
	for i, r := range rows {
		s, err := r.read(ctx, w.conn)
		if err != nil {
			return err
		}
		sources[i] = posting.Source{Part: posting.PartOf(s, gone), Page: func(number int) (body []byte, err error) {
			if err = page.QueryRowContext(ctx, pageID(s.ID, number)).Scan(&body); errors.Is(err, sql.ErrNoRows) {
				err = posting.ErrDamaged
			}
			return body, err
		}}
	}
	if err := w.putBuilt(func(put func(int, []byte) error) (posting.Built, error) {
		return posting.Merge(sources, put)
	}); err != nil {
		return err
	}
	for _, r := range rows {
		for _, statement := range []struct {
			text string
			args []any
		}{
			{"DELETE FROM segments WHERE id = ?", []any{r.id}},
			{"DELETE FROM pages WHERE id BETWEEN ? AND ?", []any{pageID(r.id, 0), pageID(r.id+1, 0) - 1}},
			{"DELETE FROM gone WHERE first BETWEEN ? AND ?", []any{r.first, r.last}},
		} {
			if _, err := w.conn.ExecContext(done(), statement.text, statement.args...); err != nil {
				return err
			}
		}
	}
	return nil
}
