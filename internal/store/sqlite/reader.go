package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
)

// querier is a source of reads: the pool of readers, a snapshot, or a transition.
type querier interface {
	fetchRows(ctx context.Context, query string, args []any) ([][]driver.Value, error)
	QueryRowContext(ctx context.Context, query string, args ...any) found
	// explain gives an error its code, except within a snapshot, which may have to run again.
	explainError(err error) error
}

// reader reads through a pool, or within a transaction where it has one.
type reader struct {
	db *sql.DB
	tx *sql.Tx
	// prepared holds the statements of the pool by their text.
	prepared *sync.Map
	// translate turns a statement into one for another database, and isolation is the level of its
	// snapshots; nil and zero for SQLite.
	translate func(query string) string
	arguments func(args []any) ([]any, error)
	isolation sql.IsolationLevel
	// again is Backend.Read; nil for SQLite, where a read needs no retry.
	again func(ctx context.Context, read func(context.Context) error) error
}

// fetchRows implements querier.
func (r reader) fetchRows(ctx context.Context, query string, args []any) (out [][]driver.Value, err error) {
	read := func(ctx context.Context) error {
		out, err = r.fetchOnce(ctx, query, args)
		return err
	}
	if r.again == nil || r.tx != nil {
		return out, r.explainError(read(ctx))
	}
	return out, r.explainError(r.again(ctx, read))
}

func (r reader) fetchOnce(ctx context.Context, query string, args []any) (out [][]driver.Value, err error) {
	if r.translate != nil {
		query = r.translate(query)
		if args, err = r.arguments(args); err != nil {
			return nil, err
		}
	}
	rows, err := r.query(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return readRows(rows)
}

// query runs a statement that is prepared once for each connection. A transaction prepares nothing
// for the pool: that takes another connection, and transactions that wait for each other's would
// deadlock.
func (r reader) query(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	known, found := r.prepared.Load(query)
	switch {
	case !found && r.tx != nil:
		return r.tx.QueryContext(ctx, query, args...)
	case !found:
		stmt, err := r.db.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		if known, found = r.prepared.LoadOrStore(query, stmt); found {
			_ = stmt.Close() // another goroutine was faster
		}
	}
	stmt, _ := known.(*sql.Stmt)
	if r.tx != nil {
		stmt = r.tx.StmtContext(ctx, stmt)
	}
	return stmt.QueryContext(ctx, args...)
}

// QueryRowContext implements querier.
func (r reader) QueryRowContext(ctx context.Context, query string, args ...any) found {
	return firstRow(r.fetchRows(ctx, query, args))
}

// explainError implements querier.
func (r reader) explainError(err error) error {
	if r.tx != nil {
		return err
	}
	return explainError(err, FileName)
}

// readRows reads rows to their end.
func readRows(rows *sql.Rows) (out [][]driver.Value, err error) {
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		row, into := make([]driver.Value, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = (*any)(&row[i])
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// readSnapshot runs reads that must agree with each other, and retries them after a lost
// connection: fn keeps nothing of an earlier run.
func (s *core) readSnapshot(ctx context.Context, fn func(context.Context, querier) error) error {
	if s.read.again == nil {
		return s.readOnce(ctx, fn)
	}
	return s.read.explainError(s.read.again(ctx, func(ctx context.Context) error { return s.readWithin(ctx, fn) }))
}

// readOnce is a snapshot without a time limit or a retry.
func (s *core) readOnce(ctx context.Context, fn func(context.Context, querier) error) error {
	return s.read.explainError(s.readWithin(ctx, fn))
}

func (s *core) readWithin(ctx context.Context, fn func(context.Context, querier) error) error {
	tx, err := s.read.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: s.read.isolation})
	if err != nil {
		return err
	}
	within := s.read
	within.tx = tx
	err = fn(ctx, within)
	if ended := tx.Rollback(); !errors.Is(ended, sql.ErrTxDone) {
		err = errors.Join(err, ended)
	}
	return err
}
