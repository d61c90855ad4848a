package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/regie-run/regie"
)

var errReadOnly = regie.Errorf(regie.CodeReadOnly, "the store was opened for reading only")

// OpenReadOnly opens the database of a data directory for reading, also while an engine writes it
// (spec 11.1). It makes no directory, no database and no key, and migrates nothing; SQLite uses the
// -wal and -shm files in the directory and makes missing ones. Transitions return CodeReadOnly.
// Only Verify needs the audit key.
//
// It returns CodeNotFound for a missing database, CodeConflict for an older schema, CodeNewerSchema
// for a newer one, CodeNoPermission, and CodeCorrupt, also where the audit key is left without its
// database. It returns CodeReadOnly where -wal and -shm are missing and the directory does not let
// SQLite make them.
func OpenReadOnly(ctx context.Context, dir string) (*Store, error) {
	path := filepath.Join(dir, FileName)
	f, err := os.Open(path) // SQLite has one error for all problems of a file
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, auditKey)); err == nil { // which is made after the database
			return nil, regie.Errorf(regie.CodeCorrupt,
				"there is an %s in %s but no %s: the database was removed; restore it from a backup of the data directory", auditKey, dir, FileName)
		}
		return nil, regie.Errorf(regie.CodeNotFound, "there is no database in %s: nothing has run there yet", dir)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, explainError(err, path)
	}
	read, err := newReader(path, "ro", busyTimeout)
	if err != nil {
		return nil, explainError(err, path)
	}
	if err := checkSchema(ctx, read.db, path); err != nil {
		return nil, errors.Join(explainError(err, path), read.db.Close())
	}
	return newStore(&core{dir: dir, read: read}), nil
}
