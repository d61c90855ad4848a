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

// OpenReadOnly opens the database of a data directory for reading, next to an engine that may be
// writing it (spec 11.1). It creates no directory, database or key, and migrates nothing; SQLite
// keeps -wal and -shm next to the file and creates them where they are missing. Transitions return
// CodeReadOnly. Only Verify needs the audit key.
//
// It returns CodeNotFound without a database, CodeConflict for an older schema, CodeNewerSchema for
// a newer one, CodeCorrupt, also where only the audit key is left, CodeNoPermission, and
// CodeReadOnly where -wal and -shm are missing in a directory without write permission.
func OpenReadOnly(ctx context.Context, dir string) (*Store, error) {
	path := filepath.Join(dir, FileName)
	f, err := os.Open(path) // asked here, because SQLite has one answer for all that can be wrong with a file
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, auditKey)); err == nil { // which is made after the database
			return nil, regie.Errorf(regie.CodeCorrupt,
				"there is an %s in %s and no %s: the database was taken away; put it back from a backup of the data directory", auditKey, dir, FileName)
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
