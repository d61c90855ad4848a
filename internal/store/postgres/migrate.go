package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"hash/fnv"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3/database"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

// prepare brings the schema forward and returns the audit key, and the version of the schema. Of
// several processes that start at once, one migrates and the others wait.
func prepare(ctx context.Context, c *pgx.ConnConfig, cfg Config, schema string) (key []byte, known int64, err error) {
	settings := c.Copy()
	settings.RuntimeParams["statement_timeout"], settings.RuntimeParams["lock_timeout"] = "0", "0"
	db := stdlib.OpenDB(*settings)
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := fit(ctx, conn, cfg); err != nil {
		return nil, 0, err
	}
	if cfg.ReadOnly {
		return nil, 0, checkSchema(ctx, conn, db, schema, cfg.Migrations)
	}
	lock := lockOf(schema)
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", lock); err != nil {
		return nil, 0, err
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", lock) }()
	if known, err = migrate(ctx, conn, db, schema, cfg.Migrations); err != nil {
		return nil, 0, err
	}
	if err := migrateJobs(ctx, settings, schema); err != nil {
		return nil, 0, err
	}
	key, err = agreeOnKey(ctx, conn, cfg.Dir)
	return key, known, err
}

// lockOf returns the advisory lock of a schema's migrations.
func lockOf(schema string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("regie migrations of " + schema))
	return int64(h.Sum64()) // any number will do
}

// fit refuses an unsuitable server.
func fit(ctx context.Context, conn *sql.Conn, cfg Config) error {
	var version int
	var shown, encoding string
	var onlyRead bool
	if err := conn.QueryRowContext(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'), current_setting('server_encoding'),
		current_setting('transaction_read_only')::bool`).Scan(&version, &shown, &encoding, &onlyRead); err != nil {
		return err
	}
	switch {
	case version < max(cfg.MinVersion, MinVersion):
		return regie.Errorf(regie.CodeConflict, "the database server is PostgreSQL %s: version %d or newer is needed",
			shown, max(cfg.MinVersion, MinVersion)/10000)
	case encoding != "UTF8":
		return regie.Errorf(regie.CodeConflict, "the database has the encoding %s: create one with the encoding UTF8",
			encoding)
	case onlyRead && !cfg.ReadOnly: // a standby too; refused here, because the first transition would wait for a failover
		return regie.Errorf(regie.CodeReadOnly, "the database is read-only: use its primary server (%v)", readOnly)
	}
	return nil
}

// migrate brings the schema forward (spec 11.1), never back and never under a running engine, and
// returns its version. It refuses a newer schema. Each step is a transaction.
func migrate(ctx context.Context, conn *sql.Conn, db *sql.DB, schema string, files fs.FS) (newest int64, err error) {
	var there bool // IF NOT EXISTS would need the right to create one
	if err = conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)",
		schema).Scan(&there); err == nil && !there {
		_, err = conn.ExecContext(ctx, "CREATE SCHEMA "+pgx.Identifier{schema}.Sanitize())
	}
	if err != nil {
		return 0, err
	}
	m, err := sqlite.NewMigrator(database.DialectPostgres, db, migrations, files)
	if err != nil {
		return 0, err
	}
	current, err := readVersion(ctx, m, conn, schema)
	if err != nil || current == m.Newest {
		return m.Newest, err
	}
	if err := nobodyThere(ctx, conn, schema, current, m.Newest); err != nil {
		return 0, err
	}
	fault.Point(fault.MigrateBefore)
	if _, err = m.Up(ctx); err == nil {
		fault.Point(fault.MigrateAfter)
	}
	return m.Newest, err
}

// nobodyThere refuses a migration while an engine lives that knows the old tables. An engine that
// starts meanwhile gets no lease.
func nobodyThere(ctx context.Context, conn *sql.Conn, schema string, current, newest int64) error {
	if current == 0 {
		return nil
	}
	var engine sql.NullString
	if err := conn.QueryRowContext(ctx, "SELECT min(name) FROM holders WHERE until > clock_timestamp()").
		Scan(&engine); err != nil || !engine.Valid {
		return err
	}
	return regie.Errorf(regie.CodeConflict,
		"the database has schema %d in %s and must be migrated to %d, and an engine of the older version works on it (%s): stop all engines first; a killed one counts for some seconds more", current, schema, newest, engine.String)
}

// checkSchema refuses a database without this program's schema; it changes nothing.
func checkSchema(ctx context.Context, conn *sql.Conn, db *sql.DB, schema string, files fs.FS) error {
	m, err := sqlite.NewMigrator(database.DialectPostgres, db, migrations, files)
	if err != nil {
		return err
	}
	current, err := readVersion(ctx, m, conn, schema)
	switch {
	case err != nil:
		return err
	case current == 0:
		return regie.Errorf(regie.CodeNotFound,
			"the schema %s of the database is empty: nothing has run there yet", schema)
	case current < m.Newest:
		return regie.Errorf(regie.CodeConflict,
			"the database has schema %d in %s, this version reads %d: stop the engines of the older version, then run `regie run` once to migrate it", current, schema, m.Newest)
	}
	return nil
}

// readVersion returns the version of a schema, 0 for a new one. It returns CodeNewerSchema or
// CodeSchemaTooOld for one that cannot be migrated.
func readVersion(ctx context.Context, m sqlite.Migrator, conn *sql.Conn, schema string) (current int64, err error) {
	current, err = schemaVersion(ctx, conn, schema)
	switch {
	case err != nil:
		return 0, err
	case current > m.Newest:
		return current, regie.Errorf(regie.CodeNewerSchema,
			"the database has schema %d in %s, this version knows %d: use the newer version that wrote it, or another search_path", current, schema, m.Newest)
	case current > 0 && current < m.Oldest:
		return current, regie.Errorf(regie.CodeSchemaTooOld,
			"the database has schema %d in %s, too old to migrate: export its sessions with the regie that wrote it (`regie sessions export`), then name an empty schema with search_path in the URL", current, schema)
	}
	return current, nil
}

// schemaVersion reads the version that goose keeps; 0 for a new schema. goose itself would write
// into a newer program's schema.
func schemaVersion(ctx context.Context, conn *sql.Conn, schema string) (version int64, err error) {
	var there, ours bool
	err = conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = 'goose_db_version'),
		coalesce(has_schema_privilege((SELECT oid FROM pg_namespace WHERE nspname = $1), 'USAGE'), true)`, schema).Scan(&there, &ours)
	if err == nil && !ours { // without the right to use a schema its tables look missing
		err = &pgconn.PgError{Code: "42501", Message: "permission denied for schema " + schema}
	}
	if err != nil || !there {
		return 0, err
	}
	err = conn.QueryRowContext(ctx, "SELECT version_id FROM goose_db_version ORDER BY id DESC LIMIT 1").Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return version, err
}

// agreeOnKey returns the key of the data directory, and makes one only for a database without a
// key. All processes of a database need the same key, to continue and verify each other's logs
// (decision 15).
func agreeOnKey(ctx context.Context, conn *sql.Conn, dir string) ([]byte, error) {
	var recorded string
	err := conn.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = $1", sqlite.RecordedKey).Scan(&recorded)
	if err == nil {
		return sqlite.OpenAuditKey(dir, recorded)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	key, hash, err := sqlite.MakeAuditKey(dir)
	if err == nil {
		_, err = conn.ExecContext(ctx, "INSERT INTO meta (key, value) VALUES ($1, $2)", sqlite.RecordedKey, hash)
	}
	return key, err
}
