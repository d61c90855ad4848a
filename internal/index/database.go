package index

import (
	"context"
	"database/sql"
	_ "embed" // the schemas
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/regie-run/regie"
)

const (
	// wordsVersion is that of schema_words.sql and of its content: how files are cut into chunks,
	// and texts into terms.
	wordsVersion = 6
	// application marks the file as an index, with the tables of schema_vectors.sql.
	application = 0x52674979

	readers = 4
)

//go:embed schema_vectors.sql
var vectorSchema string

//go:embed schema_words.sql
var wordSchema string

// database is the open file. Readers never wait for the writer (WAL); writers of several processes
// take turns by lockFile.
type database struct {
	path        string
	read, write *sql.DB
	file        os.FileInfo // as it was opened
}

func (d *database) close() error { return errors.Join(d.read.Close(), d.write.Close()) }

// isFile reports whether file lies at path; nil never does.
func isFile(path string, file os.FileInfo) bool {
	at, err := os.Stat(path)
	return err == nil && file != nil && os.SameFile(at, file)
}

var (
	errForeign = errors.New("the file is no index")
	errVersion = errors.New("the index is another version's")
)

// openDatabase opens the index at path. It makes a missing one, one of another version, and the
// damaged one anew. locked says that the caller holds the lock of the writers.
func openDatabase(ctx context.Context, path string, locked bool, damaged os.FileInfo) (*database, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if !isFile(path, damaged) {
		if d, err := openFile(ctx, path); !isReplaceable(err) {
			return d, err
		}
	}
	if !locked {
		unlock, err := lockFile(ctx, path)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	if !isFile(path, damaged) { // another process may have been faster
		d, err := openFile(ctx, path)
		if !isReplaceable(err) {
			return d, err
		}
		if errors.Is(err, errVersion) && createFile(ctx, path) == nil { // its vectors stay
			return openFile(ctx, path)
		}
	}
	if err := errors.Join(removeFile(path), createFile(ctx, path)); err != nil {
		return nil, err
	}
	return openFile(ctx, path)
}

func isReplaceable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errForeign) || errors.Is(err, errVersion) || isDamage(err)
}

func openFile(ctx context.Context, path string) (_ *database, err error) {
	d := &database{path: path}
	if d.file, err = os.Stat(path); err != nil {
		return nil, err
	}
	// The writer's cache holds what a small commit changes.
	if d.write, err = openPool(path, 1, "synchronous(NORMAL)", "foreign_keys(1)", "cache_size(-16384)",
		"wal_autocheckpoint(8000)", "journal_size_limit(4194304)"); err != nil {
		return nil, err
	}
	if d.read, err = openPool(path, readers, "query_only(1)", "cache_size(-8192)", "temp_store(MEMORY)"); err != nil {
		return nil, errors.Join(err, d.write.Close())
	}
	if err = d.checkVersion(ctx); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// checkVersion reads the version of the file.
func (d *database) checkVersion(ctx context.Context) error {
	var version, mark int
	err := d.read.QueryRowContext(ctx, `SELECT (SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id)`).Scan(&version, &mark)
	switch {
	case err != nil:
		return err
	case mark != application:
		return errForeign
	case version != wordsVersion:
		return errVersion
	}
	return nil
}

// createFile makes the tables that are missing, and those of the words anew. SQLite undoes what a
// kill leaves half done. The caller holds the lock.
func createFile(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	pool, err := openPool(path, 1, "journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(1)")
	if err != nil {
		return err
	}
	return errors.Join(inTransaction(ctx, pool, func(tx *sql.Tx) error { return resetWords(ctx, tx) }), pool.Close())
}

// resetWords empties the index except for vectors and their costs.
func resetWords(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, fmt.Sprintf("%s; %s; PRAGMA application_id = %d; PRAGMA user_version = %d",
		vectorSchema, wordSchema, application, wordsVersion))
	return err
}

func inTransaction(ctx context.Context, pool *sql.DB, fn func(tx *sql.Tx) error) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback() // err says what went wrong
		return err
	}
	return tx.Commit()
}

// removeFile removes a database and its log, which would be taken for the next file's.
func removeFile(path string) error {
	var errs []error
	for _, end := range []string{"-wal", "-shm", ""} {
		if err := os.Remove(path + end); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// openPool opens connections.
func openPool(path string, size int, pragmas ...string) (*sql.DB, error) {
	query := url.Values{
		"mode": {"rw"}, "_txlock": {"immediate"},
		"_pragma": append([]string{"busy_timeout(10000)"}, pragmas...),
	}
	pool, err := sql.Open("sqlite", (&url.URL{
		Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode(),
	}).String())
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	return pool, nil
}

// sqliteCode returns the extended result code of an error, 0 for another one's.
func sqliteCode(err error) int {
	if failed, ok := errors.AsType[*sqlite.Error](err); ok {
		return failed.Code()
	}
	return 0
}

// isDamage reports whether an error says that the file is not a healthy database.
func isDamage(err error) bool {
	switch code := sqliteCode(err); code & 0xff {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_SCHEMA, lib.SQLITE_FORMAT:
		return true
	default:
		return code == lib.SQLITE_IOERR_SHORT_READ || code == lib.SQLITE_READONLY_DBMOVED
	}
}

// explainError gives an error its code and a sentence (spec 12.5).
func explainError(err error, path string) error {
	var coded *regie.Error
	code := sqliteCode(err) & 0xff
	switch {
	case err == nil, errors.As(err, &coded), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrPermission), code == lib.SQLITE_PERM, code == lib.SQLITE_AUTH:
		return regie.Errorf(regie.CodeNoPermission,
			"no permission for the index %s: it must belong to the user who runs regie (%v)", path, err)
	case errors.Is(err, errNoSpace), code == lib.SQLITE_FULL:
		return regie.Errorf(regie.CodeDiskFull,
			"the disk that holds the index %s is full: free some space, nothing was lost (%v)", path, err)
	case errors.Is(err, errReadOnly), code == lib.SQLITE_READONLY, code == lib.SQLITE_CANTOPEN:
		return regie.Errorf(regie.CodeReadOnly,
			"the index %s cannot be written: check the permissions of the file and of its directory (%v)", path, err)
	case code == lib.SQLITE_BUSY, code == lib.SQLITE_LOCKED:
		return regie.Errorf(regie.CodeDatabaseLocked, "another program holds the index %s: close it and try again (%v)",
			path, err)
	default:
		return regie.Errorf(regie.CodeInternal, "the index %s is unusable: remove the file, it is built again (%v)",
			path, err)
	}
}
