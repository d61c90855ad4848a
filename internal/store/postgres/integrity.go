package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/regie-run/regie"
)

// maxDamage bounds how many kinds of damage are listed.
const maxDamage = 3

// CheckIntegrity implements sqlite.Backend: amcheck looks at tables and indexes where this user may
// run it; else every row of every table is read.
func (b *backend) CheckIntegrity(ctx context.Context, db *sql.DB) error {
	tables, err := readNames(ctx, db, `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = current_schema() AND c.relkind = 'r' ORDER BY c.relname`)
	if err != nil {
		return b.Explain(err)
	}
	var damage []string
	for i := 0; i < len(tables) && len(damage) < maxDamage; i++ {
		// The whole row as text, so that values outside the table (TOAST) are read too.
		_, err := db.ExecContext(ctx, fmt.Sprintf("SELECT sum(length(t::text)) FROM %s t",
			pgx.Identifier{tables[i]}.Sanitize()))
		var state *pgconn.PgError
		switch {
		case errors.As(err, &state) && strings.HasPrefix(state.Code, "XX"):
			damage = append(damage, tables[i]+": "+state.Message)
		case err != nil:
			return b.Explain(err)
		}
	}
	if len(damage) > 0 {
		return regie.Errorf(regie.CodeCorrupt, "the database is damaged (%s): restore a backup of the server",
			strings.Join(damage, "; "))
	}
	return nil
}

func readNames(ctx context.Context, db *sql.DB, query string) (out []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, rows.Err()
}
