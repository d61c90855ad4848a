package sqlite

import (
	"context"
	"database/sql"
	drivers "database/sql/driver"
	"errors"
	"io"
	"io/fs"
	"net"
	"syscall"

	sqlite3 "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/regie-run/regie"
)

// explainError turns an error of the driver or the operating system into one with a code and a
// sentence that a person can act on.
func explainError(err error, path string) error {
	var coded *regie.Error
	var driver *sqlite3.Error
	var elsewhere interface{ SQLState() string }
	var network *net.OpError
	var closed interface{ SafeToRetry() bool } // PostgreSQL's driver on a connection that it has closed
	switch {
	case err == nil:
		return nil
	case errors.As(err, &coded), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, sql.ErrConnDone), err.Error() == "sql: database is closed": // database/sql has no error value for it
		return errClosed
	case errors.Is(err, syscall.ENOSPC):
		return regie.Errorf(regie.CodeDiskFull,
			"the disk that holds %s is full: free some space, nothing was lost (%v)", path, err)
	case errors.Is(err, syscall.EROFS):
		return regie.Errorf(regie.CodeReadOnly,
			"%s is on a read-only file system: choose another data directory with REGIE_DATA_DIR (%v)", path, err)
	case errors.Is(err, fs.ErrPermission):
		return regie.Errorf(regie.CodeNoPermission,
			"no permission for %s: it must belong to the user who runs regie (%v)", path, err)
	case errors.As(err, &elsewhere), errors.As(err, &closed), errors.As(err, &network),
		errors.Is(err, drivers.ErrBadConn),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return ExplainState(err)
	case errors.As(err, &driver):
		return explainDriver(driver, path)
	default:
		return regie.Errorf(regie.CodeInternal, "the store failed: %v", err)
	}
}

// driverError is what the driver says of an error: the extended code of SQLite.
type driverError interface {
	error
	Code() int
}

func explainDriver(err driverError, path string) error {
	switch code := err.Code(); {
	case code&0xff == lib.SQLITE_FULL, code == lib.SQLITE_IOERR_SHMSIZE: // no room for the index of the write-ahead log
		return regie.Errorf(regie.CodeDiskFull,
			"the disk that holds %s is full: free some space, nothing was lost (%v)", path, err)
	case code&0xff == lib.SQLITE_BUSY, code&0xff == lib.SQLITE_LOCKED:
		return regie.Errorf(regie.CodeDatabaseLocked,
			"another program holds the database %s: close it and try again (%v)", path, err)
	case code&0xff == lib.SQLITE_CORRUPT, code&0xff == lib.SQLITE_NOTADB:
		return regie.Errorf(regie.CodeCorrupt,
			"%s is not a healthy database: restore a backup, the newest ones are beside it (%v)", path, err)
	case code&0xff == lib.SQLITE_READONLY, code&0xff == lib.SQLITE_CANTOPEN:
		return regie.Errorf(regie.CodeReadOnly,
			"the database %s cannot be written: check the permissions of the file and of its directory (%v)", path, err)
	case code&0xff == lib.SQLITE_CONSTRAINT:
		return regie.Errorf(regie.CodeConflict, "the store refused this: %v", err)
	case code&0xff == lib.SQLITE_IOERR:
		return regie.Errorf(regie.CodeInternal,
			"the disk that holds %s fails to read or write: check the disk and the system's log (%v)", path, err)
	default:
		return regie.Errorf(regie.CodeInternal, "the store failed: %v", err)
	}
}
