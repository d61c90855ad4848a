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

// whole is what the migrations make of an empty file, written down by TestWholeSchema.
//
//go:embed schema.sql
var whole string

// migrate brings the schema forward (spec 11.1): never back, never onto a newer one, and with a
// backup of what was there.
func migrate(ctx context.Context, db *sql.DB, path string) error {
	provider, newest, err := migrator(db)
	if err != nil {
		return err
	}
	current, err := schemaVersion(ctx, db)
	switch {
	case err != nil:
		return err
	case current == newest:
		return nil
	case current > newest:
		return newerSchema(path, current, newest)
	case current == 0:
		fault.Point(fault.MigrateBefore)
		if err := create(ctx, db, provider); err != nil {
			return err
		}
		fault.Point(fault.MigrateAfter)
		return nil
	case current > 0:
		if err := backUp(ctx, db, path+".before-", newest); err != nil {
			return regie.Errorf(regie.CodeDiskFull,
				"no backup could be written before the migration, so nothing was migrated: %v", err)
		}
	}
	fault.Point(fault.MigrateBefore)
	if _, err = provider.Up(ctx); err == nil {
		fault.Point(fault.MigrateAfter)
	}
	return err
}

// create makes the whole schema of a new database at once: the way through all migrations is one
// commit for each, and reads the schema again after each change of a table.
func create(ctx context.Context, db *sql.DB, provider *goose.Provider) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, whole)
	for _, version := range append([]*goose.Source{{}}, provider.ListSources()...) { // goose begins with a row for 0
		if err == nil {
			_, err = tx.ExecContext(ctx, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, 1)",
				version.Version)
		}
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// checkSchema refuses a database that has not this program's schema; it changes nothing.
func checkSchema(ctx context.Context, db *sql.DB, path string) error {
	_, newest, err := migrator(db)
	if err != nil {
		return err
	}
	current, err := schemaVersion(ctx, db)
	switch {
	case err != nil:
		return err
	case current > newest:
		return newerSchema(path, current, newest)
	case current < newest:
		return regie.Errorf(regie.CodeConflict,
			"the database %s has schema %d, this program reads %d: run `regie run` once to migrate it, a backup is made", path, current, newest)
	}
	return nil
}

func newerSchema(path string, current, newest int64) error {
	return regie.Errorf(regie.CodeNewerSchema,
		"the database %s has schema %d, this program knows %d: use the newer program that wrote it, or another data directory", path, current, newest)
}

// migrator returns what migrates, and the schema that it brings a database to.
func migrator(db *sql.DB) (provider *goose.Provider, newest int64, err error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, 0, err
	}
	if provider, err = goose.NewProvider(database.DialectSQLite3, db, files,
		goose.WithDisableGlobalRegistry(true)); err != nil {
		return nil, 0, err
	}
	sources := provider.ListSources()
	return provider, sources[len(sources)-1].Version, nil
}

// unfinished ends the name of a backup that is being written. What is left under it was cut short
// by a death.
const unfinished = ".unfinished"

// backUp writes a copy of the database to prefix, the schema that comes after it, and the time.
// Whatever bears that name is whole and on the disk, however the process ends: SQLite itself
// promises neither for what VACUUM INTO writes.
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
	// SQLite fills a file that is empty, and leaves it its mode
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

// schemaVersion reads the version that goose keeps; 0 for a new database. It is asked directly
// because asking through goose would write into a database that a newer program owns.
func schemaVersion(ctx context.Context, db *sql.DB) (int64, error) {
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'").
		Scan(&tables); err != nil {
		return 0, err
	}
	if tables == 0 {
		return 0, nil
	}
	var version int64
	err := db.QueryRowContext(ctx, "SELECT version_id FROM goose_db_version ORDER BY id DESC LIMIT 1").Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return version, err
}
