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

// maxDamage is how many kinds of damage are named.
const maxDamage = 3

// object is a table or a B-tree index.
type object struct {
	oid   int64
	name  string
	table bool
}

// CheckIntegrity implements sqlite.Backend: amcheck looks at tables and indexes where this user may
// run it; else every row of every table is read.
func (b *backend) CheckIntegrity(ctx context.Context, db *sql.DB) error {
	objects, err := readObjects(ctx, db)
	if err != nil {
		return b.Explain(err)
	}
	var amcheck string // its schema
	err = db.QueryRowContext(ctx,
		"SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'amcheck'").
		Scan(&amcheck)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return b.Explain(err)
	}
	var damage []string
	for i := 0; i < len(objects) && len(damage) < maxDamage; i++ {
		found, err := objects[i].check(ctx, db, amcheck)
		if amcheck != "" && isState(err, "42501", "42883", "3F000") { // this user may not run it, or it is an old one
			amcheck, i, damage = "", -1, nil
			continue
		}
		var state *pgconn.PgError
		switch {
		case errors.As(err, &state) && strings.HasPrefix(state.Code, "XX"):
			found = state.Message
		case err != nil:
			return b.Explain(err)
		}
		if found != "" {
			damage = append(damage, objects[i].name+": "+found)
		}
	}
	if len(damage) > 0 {
		return regie.Errorf(regie.CodeCorrupt, "the database is damaged (%s): restore a backup of the server",
			strings.Join(damage, "; "))
	}
	return nil
}

func readObjects(ctx context.Context, db *sql.DB) (out []object, err error) {
	rows, err := db.QueryContext(ctx, `SELECT c.oid::bigint, c.relname, c.relkind = 'r'
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_am a ON a.oid = c.relam
		WHERE n.nspname = current_schema() AND (c.relkind = 'r' OR c.relkind = 'i' AND a.amname = 'btree') ORDER BY c.relname`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var o object
		if err := rows.Scan(&o.oid, &o.name, &o.table); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, rows.Err()
}

// check returns the first damage of a table or an index; amcheck is the schema of the extension,
// empty without it.
func (o *object) check(ctx context.Context, db *sql.DB, amcheck string) (found string, err error) {
	switch {
	case amcheck == "" && o.table: // the whole row as text: values that lie beside the table are read too
		_, err = db.ExecContext(ctx, fmt.Sprintf("SELECT sum(length(t::text)) FROM %s t",
			pgx.Identifier{o.name}.Sanitize()))
	case amcheck == "":
	case o.table:
		err = db.QueryRowContext(ctx, fmt.Sprintf(
			"SELECT msg FROM %s.verify_heapam(relation => $1::bigint::oid::regclass, check_toast => true) LIMIT 1",
			pgx.Identifier{amcheck}.Sanitize()), o.oid).Scan(&found)
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
	default:
		_, err = db.ExecContext(ctx, fmt.Sprintf("SELECT %s.bt_index_check($1::bigint::oid::regclass, true)",
			pgx.Identifier{amcheck}.Sanitize()), o.oid)
	}
	return found, err
}
