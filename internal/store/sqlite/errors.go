package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"syscall"

	sqlite3 "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/regie-run/regie"
)

// explain turns an error of the driver or the operating system into one with a code and a sentence that a person can act on.
func explain(err error, path string) error {
	var coded *regie.Error
	var driver *sqlite3.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &coded), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, sql.ErrConnDone), err.Error() == "sql: database is closed": // database/sql has no name for it
		return errClosed
	case errors.Is(err, syscall.ENOSPC):
		return regie.Errorf(regie.CodeDiskFull, "the disk that holds %s is full: free some space, nothing was lost (%v)", path, err)
	case errors.Is(err, syscall.EROFS):
		return regie.Errorf(regie.CodeReadOnly, "%s lies on a read-only file system: choose another data directory with REGIE_DATA_DIR (%v)", path, err)
	case errors.Is(err, fs.ErrPermission):
		return regie.Errorf(regie.CodeNoPermission, "no permission for %s: it must belong to the user who runs regie (%v)", path, err)
	case errors.As(err, &driver):
		return explainDriver(driver, path)
	default:
		return regie.Errorf(regie.CodeInternal, "the store failed: %v", err)
	}
}

func explainDriver(err *sqlite3.Error, path string) error {
	switch err.Code() & 0xff {
	case lib.SQLITE_FULL:
		return regie.Errorf(regie.CodeDiskFull, "the disk that holds %s is full: free some space, nothing was lost (%v)", path, err)
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return regie.Errorf(regie.CodeDatabaseLocked, "another program holds the database %s: close it and try again (%v)", path, err)
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return regie.Errorf(regie.CodeCorrupt, "%s is not a healthy database: restore a backup, the newest ones lie beside it (%v)", path, err)
	case lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN:
		return regie.Errorf(regie.CodeReadOnly, "the database %s cannot be written: check the permissions of the file and of its directory (%v)", path, err)
	case lib.SQLITE_CONSTRAINT:
		return regie.Errorf(regie.CodeConflict, "the store refused this: %v", err)
	default:
		return regie.Errorf(regie.CodeInternal, "the store failed: %v", err)
	}
}
