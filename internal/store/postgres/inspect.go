package postgres

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3/database"

	"github.com/regie-run/regie/internal/store/sqlite"
)

// Inspection is what can be told of a database from here without changing anything in it (spec
// 10.1, doctor). Where Err is set the rest is what was found out before.
type Inspection struct {
	Err  error         // why it cannot be reached or used, with its code
	Took time.Duration // from nothing to a first answer

	Place, Schema, Version string // host/name, the schema's name, the server's version as it says it
	Standby, ReadOnly      bool

	// Current is the version of the schema, 0 where it is empty or not there; Newest is what this
	// program writes.
	Current, Newest int64
	Unfit           error // the schema is too new or too old for this program
	Foreign         error // another program uses the schema
	// Missing are tables that the user may not write.
	Missing    []string
	There      bool
	User       string
	Key        error // what is wrong with the audit key, where the logs need it
	Engines    int   // whose lease is not over
	Size       int64 // of all tables of the schema, in bytes
	SyncCommit string
	Fsync      bool
	// Limit is how many connections this user may have, Used how many all have now, Pool how many
	// one engine takes at most.
	Limit, Used, Pool int
}

// Inspect looks at the database that the settings name: it writes nothing and takes no lock. Dir
// holds the audit key.
func Inspect(ctx context.Context, cfg Config) (in Inspection) {
	pools, err := parse(cfg.URL)
	if err != nil {
		return Inspection{Err: err}
	}
	c := pools.ConnConfig
	in.Schema, in.Place, in.User = c.RuntimeParams["search_path"], c.Host+"/"+c.Database, c.User
	in.Pool = int(pools.MaxConns) + readerCount + 1 + queueConns // one to listen on
	begun := time.Now()
	db := stdlib.OpenDB(*c)
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err == nil {
		defer conn.Close()
		err = in.server(ctx, conn)
		in.Took = time.Since(begun)
	}
	if err == nil {
		err = in.tables(ctx, conn, db)
	}
	if err == nil && in.Current > 0 && in.Unfit == nil && in.Foreign == nil && len(in.Missing) == 0 {
		err = in.content(ctx, conn, cfg.Dir)
	}
	in.Err = explain(err, c, in.Schema)
	return in
}

// server reads what the server says of itself, and what it leaves to this user.
func (in *Inspection) server(ctx context.Context, conn *sql.Conn) error {
	return conn.QueryRowContext(ctx, `SELECT current_setting('server_version'), pg_is_in_recovery(),
			current_setting('default_transaction_read_only') = 'on', current_setting('synchronous_commit'), current_setting('fsync') = 'on',
			(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()),
			least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
				(SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user), (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()))`).
		Scan(&in.Version, &in.Standby, &in.ReadOnly, &in.SyncCommit, &in.Fsync,
			&in.Used, &in.Limit)
}

// tables looks at the schema, and at what this user may do there.
func (in *Inspection) tables(ctx context.Context, conn *sql.Conn, db *sql.DB) error {
	err := conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1),
		coalesce((SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'), 0)`,
		in.Schema).Scan(&in.There, &in.Size)
	if err != nil || !in.There {
		return err
	}
	m, err := sqlite.NewMigrator(database.DialectPostgres, db, migrations, nil)
	if err != nil {
		return err
	}
	in.Newest = m.Newest
	in.Current, err = readVersion(ctx, m, conn, in.Schema)
	switch {
	case in.Current > 0 && err != nil:
		in.Unfit = err
		return nil //nolint:nilerr // it is what was found
	case err != nil:
		return err
	}
	in.Foreign = foreign(ctx, conn, in.Schema, in.Current)
	in.Missing, err = readNames(ctx, conn, `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relkind = 'r' AND NOT (has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE')
			AND has_table_privilege(c.oid, 'DELETE')) ORDER BY c.relname`, in.Schema)
	return err
}

// content looks into the tables: whose key they want, and how many engines hold them.
func (in *Inspection) content(ctx context.Context, conn *sql.Conn, dir string) error {
	var recorded string
	err := conn.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = $1", sqlite.RecordedKey).Scan(&recorded)
	switch {
	case err == nil:
		_, in.Key = sqlite.OpenAuditKey(dir, recorded)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	return conn.QueryRowContext(ctx, `SELECT count(*) FROM holders WHERE until > clock_timestamp()`).Scan(&in.Engines)
}
