package postgres

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5/stdlib"
)

// Rows reads rows outside the store, with the statements of SQLite, for harnesses.
type Rows struct{ db *sql.DB }

// Look opens a database for reading.
func Look(url string) (*Rows, error) {
	pools, err := parse(url)
	if err != nil {
		return nil, err
	}
	return &Rows{stdlib.OpenDB(*pools.ConnConfig)}, nil
}

// QueryContext is *sql.DB's.
func (r *Rows) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	args, err := arguments(args)
	if err != nil {
		return nil, err
	}
	return r.db.QueryContext(ctx, translate(query), args...)
}

// QueryRowContext is *sql.DB's.
func (r *Rows) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	args, err := arguments(args)
	if err != nil {
		args = nil // which the server refuses
	}
	return r.db.QueryRowContext(ctx, translate(query), args...)
}

// Close ends the connections.
func (r *Rows) Close() error { return r.db.Close() }
