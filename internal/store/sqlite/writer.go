package sqlite

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"errors"
	"hash"

	"github.com/regie-run/regie"
)

const (
	maxGroup = 256 // transitions in one commit
	maxHeads = 10_000
)

// head is the end of a chain: the cache of its row in chains, which is the truth.
type head struct {
	seq int64
	mac [32]byte
}

// writer owns the one writing connection. run is its goroutine; every other method is called on it, except do and close.
type writer struct {
	db         *sql.DB
	conn       *sql.Conn
	statements map[string]*sql.Stmt
	begin      *sql.Stmt
	commit     *sql.Stmt
	rollback   *sql.Stmt
	mac        hash.Hash
	heads      map[int64]head
	notify     func(regie.ID, int64)

	ops     chan *op
	stopped chan struct{}
	failed  error // from closing
}

// op is one transition on its way through the writer.
type op struct {
	run  func(*tx) error
	err  error
	done chan struct{}
}

// tx is what a transition writes with. It lives for one run of one group.
type tx struct {
	w        *writer
	writes   int
	heads    map[int64]head
	notices  map[regie.ID]int64
	prepared error
}

func newWriter(ctx context.Context, db *sql.DB, key []byte, notify func(regie.ID, int64)) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if notify == nil {
		notify = func(regie.ID, int64) {}
	}
	w := &writer{
		db: db, conn: conn, statements: map[string]*sql.Stmt{}, mac: hmac.New(sha256.New, key), heads: map[int64]head{},
		notify: notify, ops: make(chan *op, maxGroup), stopped: make(chan struct{}),
	}
	for query, stmt := range map[string]**sql.Stmt{"BEGIN IMMEDIATE": &w.begin, "COMMIT": &w.commit, "ROLLBACK": &w.rollback} {
		if *stmt, err = conn.PrepareContext(ctx, query); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	go w.run()
	return w, nil
}

// do runs a transition and returns after its commit. fn may run more than once and must not keep what it read from an earlier
// run. A caller that stops waiting does not stop the transition: it is either whole or absent.
func (w *writer) do(ctx context.Context, fn func(*tx) error) error {
	o := &op{run: fn, done: make(chan struct{})}
	select {
	case <-w.stopped:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	case w.ops <- o:
	}
	select {
	case <-o.done:
		return explain(o.err, FileName)
	case <-w.stopped:
		select {
		case <-o.done:
			return explain(o.err, FileName)
		default:
			return errClosed
		}
	}
}

var errClosed = regie.Errorf(regie.CodeConflict, "the store is closed")

// close ends the writer after the transitions that it has accepted.
func (w *writer) close() error {
	select {
	case w.ops <- nil:
	case <-w.stopped:
	}
	<-w.stopped
	return w.failed
}

func (w *writer) run() {
	defer close(w.stopped)
	group := make([]*op, 0, maxGroup)
	for closing := false; !closing; {
		group = group[:0]
		first := <-w.ops
		if first == nil {
			closing = true
		} else {
			group = append(group, first)
		}
	gather:
		for len(group) < maxGroup && !closing {
			select {
			case next := <-w.ops:
				if next == nil {
					closing = true
				} else {
					group = append(group, next)
				}
			default:
				break gather
			}
		}
		w.runGroup(group)
	}
	for _, stmt := range w.statements {
		w.failed = errors.Join(w.failed, stmt.Close())
	}
	w.failed = errors.Join(w.failed, w.begin.Close(), w.commit.Close(), w.rollback.Close(), w.conn.Close(), w.db.Close())
}

// runGroup commits all transitions of the group that can be committed, and answers every one.
func (w *writer) runGroup(group []*op) {
	for _, o := range group {
		defer close(o.done)
	}
	pending := group
	for len(pending) > 0 {
		bad, err := w.tryGroup(pending)
		if err != nil { // the transaction itself failed: nothing of it is stored
			for _, o := range pending {
				o.err = errors.Join(o.err, err)
			}
			return
		}
		if bad < 0 {
			return
		}
		rest := make([]*op, 0, len(pending)-1)
		rest = append(rest, pending[:bad]...)
		pending = append(rest, pending[bad+1:]...)
		for _, o := range pending {
			o.err = nil
		}
	}
}

// tryGroup runs the transitions in one transaction. It returns the index of one that failed after it had written, in which case
// everything was rolled back, or -1. Transitions that failed before they wrote anything keep their error and harm nobody.
func (w *writer) tryGroup(group []*op) (bad int, err error) {
	ctx := context.Background()
	if _, err := w.begin.ExecContext(ctx); err != nil {
		return -1, err
	}
	t := &tx{w: w, heads: map[int64]head{}, notices: map[regie.ID]int64{}}
	for i, o := range group {
		before := t.writes
		o.err = runRecovered(o, t)
		if o.err != nil && t.writes > before {
			_, err := w.rollback.ExecContext(ctx)
			return i, err
		}
	}
	if t.writes == 0 {
		_, err := w.rollback.ExecContext(ctx)
		return -1, err
	}
	if _, err := w.commit.ExecContext(ctx); err != nil {
		_, _ = w.rollback.ExecContext(ctx) // SQLite has rolled back already on most errors; then this one says so
		return -1, err
	}
	if len(w.heads) > maxHeads {
		clear(w.heads)
	}
	for n, h := range t.heads {
		w.heads[n] = h
	}
	for session, seq := range t.notices {
		w.notify(session, seq)
	}
	return -1, nil
}

// runRecovered keeps a panic of one transition from taking the writer, and with it every session, down.
func runRecovered(o *op, t *tx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			t.writes++ // whatever it had written is not to be committed
			err = regie.Errorf(regie.CodeInternal, "a transition of the store panicked: %v", r)
		}
	}()
	return o.run(t)
}

// statement prepares a query once for the life of the connection.
func (t *tx) statement(query string) (*sql.Stmt, error) {
	if stmt, ok := t.w.statements[query]; ok {
		return stmt, nil
	}
	stmt, err := t.w.conn.PrepareContext(context.Background(), query)
	if err == nil {
		t.w.statements[query] = stmt
	}
	return stmt, err
}

// exec runs a writing statement and returns how many rows it changed.
func (t *tx) exec(query string, args ...any) (int64, error) {
	stmt, err := t.statement(query)
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(context.Background(), args...)
	if err != nil {
		t.writes++ // a failed statement may have fired triggers
		return 0, err
	}
	n, err := result.RowsAffected()
	if n > 0 {
		t.writes++
	}
	return n, err
}

// one runs a writing statement that must change exactly one row; refused is the error where it changes none.
func (t *tx) one(refused error, query string, args ...any) error {
	n, err := t.exec(query, args...)
	if err == nil && n != 1 {
		err = refused
	}
	return err
}

// row runs a reading statement inside the transaction.
func (t *tx) row(query string, args ...any) *rowOrError {
	stmt, err := t.statement(query)
	if err != nil {
		return &rowOrError{err: err}
	}
	return &rowOrError{row: stmt.QueryRowContext(context.Background(), args...)}
}

type rowOrError struct {
	row *sql.Row
	err error
}

// Scan reads the row; sql.ErrNoRows if there is none.
func (r *rowOrError) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	return r.row.Scan(dest...)
}
