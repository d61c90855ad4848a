package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
)

// maxGroup bounds the transitions of one commit.
const maxGroup = 256

// head is the end of a chain.
type head struct {
	seq int64
	mac [32]byte
}

// writer owns the one writing connection. run is its goroutine; every other method runs on it,
// except do and close. It calls the driver directly: an exchange has some twenty statements, and
// the conversions and locks of database/sql take processor time for each.
type writer struct {
	db         *sql.DB
	conn       *sql.Conn
	driver     driver.ConnPrepareContext
	statements map[string]statement
	lastEvent  int64 // the highest n of events
	key        auditMAC
	notify     store.Notify
	gate       func(committed, wrote bool) error // of Config; read by callers, not changed once there are any
	other      Backend                           // where set, runs the transitions instead of all above
	slots      slot.Capacity                     // not changed once there are transitions
	channels   []store.Channel                   // of notifications; not changed once there are transitions

	ops     chan *op // nil asks the writer to end
	closing bool
	stopped chan struct{}
	failed  error // from closing
}

// statement is a prepared statement of the driver.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// op is one transition on its way through the writer.
type op struct {
	run   func(*tx) error
	err   error
	wrote bool
	done  chan struct{}
}

// tx writes for a transition. It lives for one run of one group.
type tx struct {
	w       *writer
	writes  int
	heads   map[int64]head
	notices map[regie.ID][]regie.Event
	// lastEvent becomes the writer's with the commit.
	lastEvent int64
	values    []driver.NamedValue // of the statement that runs
	err       error               // the error of the running transition
	other     Statements          // nil for SQLite

	sessions sessionTx
	rounds   roundTx
	pending  pendingTx
	waits    waitTx
	slots    slotTx
	money    moneyTx
	undos    undoTx
	tokens   tokenTx

	automations automationTx
}

func newWriter(ctx context.Context, db *sql.DB, key []byte, notify store.Notify) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if notify == nil {
		notify = func(regie.ID, []regie.Event) {}
	}
	w := &writer{
		db: db, conn: conn, statements: map[string]statement{}, key: key, notify: notify,
		ops: make(chan *op, maxGroup), stopped: make(chan struct{}),
	}
	if err := conn.QueryRowContext(ctx, "SELECT coalesce(max(n), 0) FROM events").Scan(&w.lastEvent); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	go w.run()
	return w, nil
}

// do runs a transition and returns after its commit. fn may run more than once and must not keep
// data of an earlier run. A caller that stops waiting does not stop the transition: it is either
// whole or absent.
func (w *writer) do(ctx context.Context, fn func(*tx) error) error {
	switch {
	case w == nil:
		return errReadOnly
	case w.gate == nil:
		_, err := w.commit(ctx, fn)
		return err
	}
	if err := w.gate(false, false); err != nil {
		return err
	}
	wrote, err := w.commit(ctx, fn)
	if err != nil {
		return err
	}
	return w.gate(true, wrote)
}

// transition runs a transition with a result, which is reset before each run.
func transition[T any](ctx context.Context, w *writer, fn func(*tx, *T) error) (T, error) {
	var out *T
	err := w.do(ctx, func(t *tx) error {
		out = new(T)
		return fn(t, out)
	})
	if out == nil {
		out = new(T)
	}
	return *out, err
}

// commit hands a transition to the writer and returns after its commit, and whether it wrote
// anything.
func (w *writer) commit(ctx context.Context, fn func(*tx) error) (wrote bool, err error) {
	if w.other != nil {
		return w.transactElsewhere(ctx, fn)
	}
	o := &op{run: fn, done: make(chan struct{})}
	select {
	case <-w.stopped:
		return false, errClosed
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case w.ops <- o:
	}
	select {
	case <-o.done:
		return o.wrote, explainError(o.err, FileName)
	case <-w.stopped:
		select {
		case <-o.done:
			return o.wrote, explainError(o.err, FileName)
		default:
			return false, errClosed
		}
	}
}

var errClosed = regie.Errorf(regie.CodeEngineGone, "the engine has stopped")

// close ends the writer after the transitions that it has accepted.
func (w *writer) close() error {
	select {
	case w.ops <- nil:
	case <-w.stopped:
	}
	<-w.stopped
	return w.failed
}

// run runs groups of transitions until close.
func (w *writer) run() {
	defer close(w.stopped)
	err := w.conn.Raw(func(conn any) error {
		var ok bool
		if w.driver, ok = conn.(driver.ConnPrepareContext); !ok {
			return regie.Errorf(regie.CodeInternal, "the SQLite driver cannot prepare statements")
		}
		for !w.closing {
			first := <-w.ops
			if first == nil {
				break
			}
			w.runGroup(first)
		}
		var errs []error
		for _, stmt := range w.statements {
			errs = append(errs, stmt.Close())
		}
		return errors.Join(errs...)
	})
	w.failed = errors.Join(err, w.conn.Close(), w.db.Close())
}

// waiting returns the next transition that waits, or nil where none does.
func (w *writer) waiting() *op {
	if w.closing {
		return nil
	}
	select {
	case o := <-w.ops:
		w.closing = o == nil
		return o
	default:
		return nil
	}
}

// runGroup commits a transition with all that arrive meanwhile, and answers each.
func (w *writer) runGroup(first *op) {
	group := &group{pending: []*op{first}}
	defer func() {
		for _, o := range group.all {
			close(o.done)
		}
	}()
	group.all = append(group.all, first)
	for len(group.pending) > 0 {
		bad, err := w.tryGroup(group)
		if err != nil { // the transaction itself failed: none of it is stored
			for _, o := range group.pending {
				o.err = errors.Join(o.err, err)
			}
			return
		}
		if bad < 0 {
			return
		}
		group.pending = slices.Delete(group.pending, bad, bad+1)
		for _, o := range group.pending {
			o.err = nil
		}
	}
}

// group is the transitions of one commit.
type group struct {
	all     []*op // to be answered
	pending []*op // to be committed
}

// tryGroup runs the transitions in one transaction, and those that arrive meanwhile. It returns the
// index of one that failed after it had written, with everything rolled back, or -1. Transitions
// that fail before they write keep their error and do not affect others.
func (w *writer) tryGroup(g *group) (bad int, err error) {
	if err := w.control("BEGIN IMMEDIATE"); err != nil {
		return -1, err
	}
	t := newTx(w, nil)
	t.lastEvent = w.lastEvent
	for i := 0; ; i++ {
		if i == len(g.pending) && i < maxGroup {
			if o := w.waiting(); o != nil {
				g.all, g.pending = append(g.all, o), append(g.pending, o)
			}
		}
		if i == len(g.pending) {
			break
		}
		o, before := g.pending[i], t.writes
		o.err = runRecovered(o, t)
		o.wrote = t.writes > before
		if o.err != nil && t.writes > before {
			return i, w.control("ROLLBACK")
		}
	}
	if t.writes == 0 {
		return -1, w.control("ROLLBACK")
	}
	if err := w.control("COMMIT"); err != nil {
		_ = w.control("ROLLBACK") // on most errors SQLite has rolled back already; then this fails
		return -1, err
	}
	w.lastEvent = t.lastEvent
	for session, added := range t.notices {
		w.notify(session, added)
	}
	return -1, nil
}

// runRecovered keeps a panic of one transition from ending the writer, and with it every session.
func runRecovered(o *op, t *tx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			t.writes++ // its writes are not to be committed
			err = regie.Errorf(regie.CodeInternal, "a transition of the store panicked: %v", r)
		}
	}()
	t.err = nil
	err = o.run(t)
	if t.err != nil {
		err = t.err
	}
	return err
}

// prepare prepares a query once for the life of the connection.
func (w *writer) prepare(query string) (statement, error) {
	if stmt, ok := w.statements[query]; ok {
		return stmt, nil
	}
	prepared, err := w.driver.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	stmt, ok := prepared.(statement)
	if !ok {
		return nil, regie.Errorf(regie.CodeInternal, "the SQLite driver's statements lack methods")
	}
	w.statements[query] = stmt
	return stmt, nil
}

// control runs a statement outside the transitions, such as COMMIT.
func (w *writer) control(query string) error {
	stmt, err := w.prepare(query)
	if err == nil {
		_, err = stmt.ExecContext(context.Background(), nil)
	}
	return err
}

// fail fails the transition with its first error, and no later statement runs: so only reads have
// to check errors. It reports whether err is one.
func (t *tx) fail(err error) bool {
	if t.err == nil {
		t.err = err
	}
	return err != nil
}

// exec runs a changing statement, unless the transition has failed.
func (t *tx) exec(query string, args ...any) {
	if t.other == nil {
		t.count(query, args...)
	} else if t.err == nil {
		t.other.Queue(nil, query, args)
	}
}

// count runs a writing statement and returns how many rows it changed.
func (t *tx) count(query string, args ...any) (n int64) {
	if t.err != nil {
		return 0
	}
	if t.other != nil {
		n, t.err = t.other.Count(query, args)
		return n
	}
	stmt, err := t.prepare(query, args)
	if t.fail(err) {
		return 0
	}
	result, err := stmt.ExecContext(context.Background(), t.values)
	if err == nil {
		n, err = result.RowsAffected()
	}
	if t.fail(err) || n > 0 { // a failed statement may have fired triggers
		t.writes++
	}
	return n
}

// one runs a writing statement that must change exactly one row; refused is the error where it
// changes none.
func (t *tx) one(refused error, query string, args ...any) {
	if t.other == nil {
		if n := t.count(query, args...); t.err == nil && n != 1 {
			t.err = refused
		}
	} else if t.err == nil {
		t.other.Queue(refused, query, args)
	}
}

// row returns the first row of a reading statement inside the transaction.
func (t *tx) row(query string, args ...any) found {
	return t.QueryRowContext(context.Background(), query, args...)
}

// QueryRowContext implements querier.
func (t *tx) QueryRowContext(ctx context.Context, query string, args ...any) found {
	return firstRow(t.fetchRows(ctx, query, args))
}

// explainError implements querier: commit explains what a transition returns.
func (*tx) explainError(err error) error { return err }

// readAll reads all rows of a query inside the transaction.
func readAll[T any](t *tx, scan func(scanner, *T) error, query string, args ...any) ([]T, error) {
	return queryAll(context.Background(), t, scan, query, args...)
}

// fetchRows implements querier.
func (t *tx) fetchRows(ctx context.Context, query string, args []any) ([][]driver.Value, error) {
	switch {
	case t.err != nil:
		return nil, t.err
	case t.other != nil:
		return t.other.Rows(query, args)
	}
	stmt, err := t.prepare(query, args)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(ctx, t.values)
	if err != nil {
		return nil, err
	}
	var all [][]driver.Value
	for {
		row := make([]driver.Value, len(rows.Columns()))
		if err = rows.Next(row); err != nil {
			break
		}
		for i, value := range row { // the driver may use the bytes again
			if data, ok := value.([]byte); ok {
				row[i] = bytes.Clone(data)
			}
		}
		all = append(all, row)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, errors.Join(err, rows.Close())
}

// prepare prepares a query, and its arguments in t.values.
func (t *tx) prepare(query string, args []any) (statement, error) {
	t.values = t.values[:0]
	for i, arg := range args {
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, regie.Errorf(regie.CodeInternal, "a statement was given a %T: %v", arg, err)
		}
		t.values = append(t.values, driver.NamedValue{Ordinal: i + 1, Value: value})
	}
	return t.w.prepare(query)
}

// overwriteFree has SQLite overwrite freed space, until the result is called. It is slow, and only
// for erasures.
func (t *tx) overwriteFree() func() {
	if t.other != nil {
		return func() {}
	}
	t.fail(t.w.control("PRAGMA secure_delete = ON"))
	return func() { _ = t.w.control("PRAGMA secure_delete = OFF") }
}
