package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrateSchema brings the schema forward (spec 11.1), never back, and makes a backup before. It
// refuses a newer schema. files replaces the migrations of this program; nil leaves them.
func migrateSchema(ctx context.Context, db *sql.DB, path string, files fs.FS) error {
	m, err := NewMigrator(database.DialectSQLite3, db, migrations, files)
	if err != nil {
		return err
	}
	current, err := m.readVersion(ctx, db, path)
	if err != nil || current == m.Newest {
		return err
	}
	used := false // a process that died over the first migrations has left nothing to keep
	if current > 0 {
		if err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM users)").Scan(&used); err != nil {
			return err
		}
	}
	if used {
		if err := backUp(ctx, db, path+".before-", m.Newest); err != nil {
			return regie.Errorf(regie.CodeDiskFull,
				"no backup could be written before the migration, so nothing was migrated: %v", err)
		}
	}
	fault.Point(fault.MigrateBefore)
	if _, err = m.Up(ctx); err == nil {
		fault.Point(fault.MigrateAfter)
	}
	return err
}

// checkSchema refuses a database without this program's schema; it changes nothing.
func checkSchema(ctx context.Context, db *sql.DB, path string) error {
	m, err := NewMigrator(database.DialectSQLite3, db, migrations, nil)
	if err != nil {
		return err
	}
	current, err := m.readVersion(ctx, db, path)
	if err == nil && current < m.Newest {
		err = regie.Errorf(regie.CodeConflict,
			"the database %s has schema %d, this version reads %d: run `regie run` once to migrate it, a backup is made", path, current, m.Newest)
	}
	return err
}

// Migrator migrates a database to the schema newest, from an empty database or from oldest on.
type Migrator struct {
	*goose.Provider
	Oldest, Newest int64
}

// NewMigrator reads the migrations of a database, or those of files where it is not nil.
func NewMigrator(dialect database.Dialect, db *sql.DB, own embed.FS, files fs.FS) (m Migrator, err error) {
	if files == nil {
		if files, err = fs.Sub(own, "migrations"); err != nil {
			return m, err
		}
	}
	if m.Provider, err = goose.NewProvider(dialect, db, files, goose.WithDisableGlobalRegistry(true)); err != nil {
		return m, err
	}
	sources := m.ListSources()
	m.Oldest, m.Newest = sources[0].Version, sources[len(sources)-1].Version
	return m, nil
}

// readVersion returns the schema of a database, 0 for a new one. It returns CodeNewerSchema or
// CodeSchemaTooOld for one that cannot be migrated.
func (m Migrator) readVersion(ctx context.Context, db *sql.DB, path string) (current int64, err error) {
	current, err = schemaVersion(ctx, db)
	switch {
	case err != nil:
		return 0, err
	case current > m.Newest:
		return current, regie.Errorf(regie.CodeNewerSchema,
			"the database %s has schema %d, this version knows %d: use the newer version that wrote it, or another data directory", path, current, m.Newest)
	case current > 0 && current < m.Oldest:
		return current, regie.Errorf(regie.CodeSchemaTooOld,
			"the database %s has schema %d, too old to migrate: export its sessions with the regie that wrote it (`regie sessions export`), then start another data directory (REGIE_DATA_DIR)", path, current)
	}
	return current, nil
}

// unfinished ends the name of a backup in progress. A file of that name was left by a crash.
const unfinished = ".unfinished"

// backUp writes a copy of the database to prefix, the schema that comes after it, and the time. A
// file of that name is complete and synced, even if the process dies meanwhile: SQLite itself
// promises neither for VACUUM INTO.
func backUp(ctx context.Context, db *sql.DB, prefix string, newest int64) error {
	cut, err := filepath.Glob(prefix + "*" + unfinished + "*") // SQLite's journal of it too
	if err != nil {
		return err
	}
	for _, name := range cut {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	backup := fmt.Sprintf("%s%d.%s", prefix, newest, time.Now().UTC().Format("20060102T150405.000000000"))
	// SQLite fills an empty file, and keeps its mode
	if err := createPrivate(backup + unfinished); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", backup+unfinished); err != nil {
		return err
	}
	fault.Point(fault.BackupBefore)
	f, err := os.OpenFile(backup+unfinished, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(backup+unfinished, backup); err != nil {
		return err
	}
	return syncDir(filepath.Dir(backup))
}

// schemaVersion reads the version that goose keeps; 0 for a new database. It uses its own query,
// because goose would write into a database that a newer program owns.
func schemaVersion(ctx context.Context, db *sql.DB) (int64, error) {
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'").
		Scan(&tables); err != nil {
		return 0, err
	}
	if tables == 0 {
		return 0, nil
	}
	var version sql.NullInt64
	err := db.QueryRowContext(ctx, "SELECT version_id FROM goose_db_version ORDER BY id DESC LIMIT 1").Scan(&version)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err == nil && !version.Valid:
		return 0, regie.Errorf(regie.CodeCorrupt, "the database is damaged: its schema version cannot be read")
	}
	return version.Int64, err
}
