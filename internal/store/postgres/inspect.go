package postgres

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3/database"

	"github.com/regie-run/regie/internal/store/sqlite"
)

// Inspection is the state of a database, read without changing anything in it (spec 10.1, doctor).
// Where Err is set, the other fields hold only earlier findings.
type Inspection struct {
	Err  error         // why it cannot be reached or used, with its code
	Took time.Duration // from connecting to the first answer

	Place, Schema, Version string // host/name, schema, version as the server reports it
	User                   string
	Fsync                  bool
	Size                   int64 // of all tables of the schema, in bytes
	// Current is the version of the schema, 0 where it is empty or not there; Newest is what this
	// program writes.
	Current, Newest int64
	Key             error // why the audit key is unusable, where the logs need it
}

// Inspect reads the database of the settings: it writes nothing and takes no lock. Dir holds the
// audit key.
func Inspect(ctx context.Context, cfg Config) (in Inspection) {
	pools, err := parse(cfg.URL)
	if err != nil {
		return Inspection{Err: err}
	}
	c := pools.ConnConfig
	in.Schema, in.Place, in.User = c.RuntimeParams["search_path"], c.Host+"/"+c.Database, c.User
	db := stdlib.OpenDB(*c)
	defer db.Close()
	in.Err = explain(in.look(ctx, db, cfg), c, in.Schema)
	return in
}

func (in *Inspection) look(ctx context.Context, db *sql.DB, cfg Config) error {
	begun := time.Now()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.QueryRowContext(ctx, `SELECT current_setting('server_version'), current_setting('fsync') = 'on', coalesce((SELECT sum(pg_total_relation_size(c.oid))
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'), 0)`, in.Schema).
		Scan(&in.Version, &in.Fsync, &in.Size); err != nil {
		return err
	}
	in.Took = time.Since(begun)
	if err := fit(ctx, conn, cfg); err != nil {
		return err
	}
	m, err := sqlite.NewMigrator(database.DialectPostgres, db, migrations, nil)
	if err != nil {
		return err
	}
	in.Newest = m.Newest
	if in.Current, err = readVersion(ctx, m, conn, in.Schema); err != nil || in.Current < in.Newest {
		return err
	}
	var recorded sql.NullString
	err = conn.QueryRowContext(ctx, "SELECT (SELECT value FROM meta WHERE key = $1)", sqlite.RecordedKey).Scan(&recorded)
	if recorded.Valid {
		_, in.Key = sqlite.OpenAuditKey(cfg.Dir, recorded.String)
	}
	return err
}
