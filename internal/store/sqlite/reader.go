package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"

	"github.com/regie-run/regie"
)

// querier is something to read from.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (cursor, error)
	QueryRowContext(ctx context.Context, query string, args ...any) scanner
	// explain gives an error its code, except within a snapshot, which may have to run again.
	explain(err error) error
}

// cursor is the rows of a query, one after another: *sql.Rows.
type cursor interface {
	scanner
	Next() bool
	Err() error
	Close() error
}

// reader reads through statements that are prepared once for each connection; within a transaction
// where it has one.
type reader struct {
	db       *sql.DB
	prepared *sync.Map // query → *sql.Stmt
	missed   *sync.Map // queries that a transaction wanted and did not find prepared
	tx       *sql.Tx
	// translate writes a statement as another database reads it, and isolation is what its
	// snapshots need; nil and zero for SQLite.
	translate func(query string) string
	arguments func(args []any) ([]any, error)
	isolation sql.IsolationLevel
	// again is Backend.Read; nil for SQLite, whose file is always there.
	again func(ctx context.Context, read func(context.Context) error) error
}

// statement returns the prepared query. A transaction holds a connection, and preparing for all
// needs another one: transactions that wait for each other's would wait for ever. So a transaction
// prepares what it misses on its own connection, for itself.
func (r reader) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	if r.translate != nil {
		query = r.translate(query)
	}
	found, ok := r.prepared.Load(query)
	switch {
	case !ok && r.tx != nil:
		r.missed.Store(query, nil)
		return r.tx.PrepareContext(ctx, query)
	case !ok:
		stmt, err := r.db.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		var loaded bool
		if found, loaded = r.prepared.LoadOrStore(query, stmt); loaded {
			_ = stmt.Close() // another goroutine was faster
		}
	}
	stmt, _ := found.(*sql.Stmt)
	if r.tx != nil {
		stmt = r.tx.StmtContext(ctx, stmt)
	}
	return stmt, nil
}

// catchUp prepares what earlier transactions missed.
func (r reader) catchUp(ctx context.Context) error {
	var failed error
	r.missed.Range(func(query, _ any) bool {
		text, _ := query.(string)
		if _, failed = r.statement(ctx, text); failed == nil {
			r.missed.Delete(query)
		}
		return failed == nil
	})
	return failed
}

// QueryContext implements querier. What may have to be read once more is read to its end before
// anybody sees a row of it.
func (r reader) QueryContext(ctx context.Context, query string, args ...any) (cursor, error) {
	if r.again == nil || r.tx != nil {
		rows, err := r.query(ctx, query, args) //nolint:rowserrcheck // the reader of the rows asks
		return sqlRows{rows}, err
	}
	var out fetched
	err := r.again(ctx, func(ctx context.Context) error {
		rows, err := r.query(ctx, query, args)
		if err != nil {
			return err
		}
		out, err = fetch(rows)
		return err
	})
	return &out, err
}

func (r reader) query(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	stmt, err := r.statement(ctx, query)
	if err == nil && r.arguments != nil {
		args, err = r.arguments(args)
	}
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// QueryRowContext implements querier.
func (r reader) QueryRowContext(ctx context.Context, query string, args ...any) scanner {
	rows, err := r.QueryContext(ctx, query, args...)
	if err != nil {
		return found{err: r.explain(err)}
	}
	return first{rows, r}
}

// explain implements querier.
func (r reader) explain(err error) error {
	if r.tx != nil {
		return err
	}
	return explain(err, FileName)
}

// first is the first row of a query; sql.ErrNoRows where there is none.
type first struct {
	rows cursor
	from reader
}

// Scan reads the row and ends the query.
func (f first) Scan(dest ...any) error {
	defer f.rows.Close()
	if f.rows.Next() {
		return f.from.explain(f.rows.Scan(dest...))
	}
	if err := f.rows.Err(); err != nil {
		return f.from.explain(err)
	}
	return sql.ErrNoRows
}

// sqlRows are rows that come one after another.
type sqlRows struct{ *sql.Rows }

// Scan implements cursor.
func (r sqlRows) Scan(dest ...any) error {
	into := make([]any, len(dest))
	for i := range dest {
		into[i] = column{dest[i]}
	}
	err := r.Rows.Scan(into...)
	if coded := (*regie.Error)(nil); errors.As(err, &coded) { // without the words of database/sql
		return coded
	}
	return err
}

// fetched is rows that were read to their end.
type fetched struct {
	rows [][]driver.Value
	at   int // of the next row
}

func fetch(rows *sql.Rows) (out fetched, err error) {
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return out, err
	}
	for rows.Next() {
		row, into := make([]driver.Value, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = (*any)(&row[i])
		}
		if err := rows.Scan(into...); err != nil {
			return out, err
		}
		out.rows = append(out.rows, row)
	}
	return out, rows.Err()
}

// Next implements cursor.
func (f *fetched) Next() bool {
	f.at++
	return f.at <= len(f.rows)
}

// Scan implements cursor.
func (f *fetched) Scan(dest ...any) error { return found{row: f.rows[f.at-1]}.Scan(dest...) }

// Err implements cursor.
func (*fetched) Err() error { return nil }

// Close implements cursor.
func (*fetched) Close() error { return nil }

// snapshot runs reads that must agree with each other, again where the connection broke: fn keeps
// nothing of a time before.
func (s *core) snapshot(ctx context.Context, fn func(context.Context, querier) error) error {
	if s.read.again == nil {
		return s.once(ctx, fn)
	}
	return s.read.explain(s.read.again(ctx, func(ctx context.Context) error { return s.readWithin(ctx, fn) }))
}

// once is a snapshot that takes as long as it takes, and is not run again.
func (s *core) once(ctx context.Context, fn func(context.Context, querier) error) error {
	return s.read.explain(s.readWithin(ctx, fn))
}

func (s *core) readWithin(ctx context.Context, fn func(context.Context, querier) error) error {
	if err := s.read.catchUp(ctx); err != nil {
		return err
	}
	tx, err := s.read.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: s.read.isolation})
	if err != nil {
		return err
	}
	within := s.read
	within.tx = tx
	return errors.Join(fn(ctx, within), ignoreDone(tx.Rollback()))
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}
