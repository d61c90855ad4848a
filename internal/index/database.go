package index

import (
	"context"
	"database/sql"
	"database/sql/driver"
	_ "embed" // the schema
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/index/posting"
)

// schemaVersion is that of the schema, and of what is put into it: how files are cut into chunks,
// and texts into terms.
const schemaVersion = 4

// application marks the file as an index ("RgIx").
const application = 0x52674978

const readers = 4

//go:embed schema.sql
var schema string

// database is the open file. Readers never wait for the writer (WAL); the writer's lock is beside
// it (lock).
type database struct {
	path        string
	read, write *sql.DB
	file, log   os.FileInfo  // the file and its write-ahead log as they were opened
	uses        atomic.Int32 // it closes when the last one ends
	lost        atomic.Bool  // it is damaged
	filled      atomic.Bool  // an update of this process has run to its end in it
	asks        questions
}

func (d *database) acquire() { d.uses.Add(1) }

func (d *database) release() error {
	if d.uses.Add(-1) > 0 {
		return nil
	}
	return errors.Join(d.read.Close(), d.write.Close())
}

// inPlace reports whether the files still lie where they were opened. Somebody may delete them at
// any time, and then others are what the next process opens; a log without its file, or a file
// without its log, is as good as damaged.
func (d *database) inPlace() bool {
	if d.lost.Load() {
		return false
	}
	file, err := os.Stat(d.path)
	if err != nil || !os.SameFile(file, d.file) {
		return false
	}
	log, err := os.Stat(d.path + "-wal")
	if err != nil || !os.SameFile(log, d.log) {
		d.lost.Store(true)
		return false
	}
	return true
}

var (
	errMissing = errors.New("the index is not there")
	errOther   = errors.New("the index is another version's")
)

// openOrMake opens the file at path. Where it cannot be used, or is the one that is known to be
// spoiled, it is made anew, by one process at a time; held says that the caller holds the lock for
// that.
func openOrMake(ctx context.Context, path string, held bool, spoiled os.FileInfo) (db *database, err error) {
	for range maxTries {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		dir, _ := os.Stat(filepath.Dir(path)) // where it has gone by now, what follows fails
		db, err = openOrMakeOnce(ctx, path, held, spoiled)
		away := errors.Is(err, fs.ErrNotExist) || errors.Is(err, errMissing) || vanished(err, path) ||
			!same(filepath.Dir(path), dir)
		if err == nil || ctx.Err() != nil || !away {
			break // nobody takes away what is being opened or made, or the lock of who makes it
		}
	}
	return db, err
}

// vanished reports whether a database failed because somebody has taken its files away meanwhile.
func vanished(err error, path string) bool {
	var driver *sqlite.Error
	if !errors.As(err, &driver) {
		return false
	}
	if code := driver.Code() & 0xff; code != lib.SQLITE_IOERR && code != lib.SQLITE_CANTOPEN {
		return false
	}
	_, missing := os.Stat(path)
	return errors.Is(missing, fs.ErrNotExist)
}

// maxTries is how often something is tried that others keep taking away.
const maxTries = 5

func openOrMakeOnce(ctx context.Context, path string, held bool, spoiled os.FileInfo) (*database, error) {
	if !same(path, spoiled) {
		if db, err := openFile(ctx, path); !unusable(err) {
			return db, err
		}
	}
	if !held {
		unlock, err := lock(ctx, path, nil)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	keep := false
	if !same(path, spoiled) { // another process may have been faster
		db, err := openFile(ctx, path)
		if !unusable(err) {
			return db, err
		}
		keep = errors.Is(err, errOther)
	}
	if err := makeFile(ctx, path, keep); err != nil {
		return nil, err
	}
	return openFile(ctx, path)
}

// same reports whether a file is what lies at a path; nil is none.
func same(path string, file os.FileInfo) bool {
	if file == nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(there, file)
}

func unusable(err error) bool {
	return errors.Is(err, errMissing) || errors.Is(err, errOther) || damaged(err)
}

// damaged reports whether an error says that the file is not a healthy database.
func damaged(err error) bool {
	var driver *sqlite.Error
	if errors.Is(err, posting.ErrDamaged) {
		return true
	}
	if !errors.As(err, &driver) {
		return false
	}
	switch code := driver.Code(); code & 0xff {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_SCHEMA, lib.SQLITE_FORMAT:
		return true
	case lib.SQLITE_IOERR:
		return code == lib.SQLITE_IOERR_SHORT_READ
	case lib.SQLITE_READONLY:
		return code == lib.SQLITE_READONLY_DBMOVED
	default:
		return false
	}
}

// whole fails where a table is not there.
func (d *database) whole(ctx context.Context) error {
	_, err := d.read.ExecContext(ctx,
		"SELECT 1 FROM meta, files, chunks, segments, pages, gone, spaces, embeddings, signs, embedding_costs LIMIT 0")
	return err
}

// spoiled reports whether an error comes from a file that has to be made anew: a damaged one, or
// one that another program has changed.
func (d *database) spoiled(ctx context.Context, err error) bool {
	var driver *sqlite.Error
	if damaged(err) {
		return true
	}
	return errors.As(err, &driver) && driver.Code() == lib.SQLITE_ERROR && ctx.Err() == nil && d.whole(ctx) != nil
}

// openFile opens a file that was made by makeFile.
func openFile(ctx context.Context, path string) (_ *database, err error) {
	before, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMissing
	}
	if err != nil {
		return nil, err
	}
	d := &database{path: path, file: before}
	d.uses.Store(1)
	// The writer's cache holds what a small commit changes.
	if d.write, err = openPool(path, 1, "synchronous(NORMAL)", "cache_size(-16384)", "wal_autocheckpoint(8000)",
		"journal_size_limit(4194304)"); err != nil {
		return nil, err
	}
	if d.read, err = openPool(path, readers, "query_only(1)", "cache_size(-8192)", "temp_store(MEMORY)"); err != nil {
		return nil, errors.Join(err, d.write.Close())
	}
	defer func() {
		if err == nil {
			return
		}
		// another process makes a new one: what was found of this one means nothing
		if ctx.Err() == nil && !d.stands() {
			err = errMissing
		}
		err = errors.Join(err, d.release())
	}()
	var version, mark int
	if err := d.read.QueryRowContext(ctx,
		"SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id)").
		Scan(&version, &mark); err != nil {
		return nil, err
	}
	if version != schemaVersion || mark != application {
		return nil, errOther
	}
	if err := errors.Join(d.whole(ctx), d.prepare(ctx)); err != nil {
		if ctx.Err() != nil || damaged(err) {
			return nil, err
		}
		return nil, errors.Join(errOther, err) // somebody has changed it
	}
	if d.log, err = os.Stat(path + "-wal"); err != nil {
		return nil, err
	}
	if !d.stands() {
		return nil, errMissing
	}
	return d, nil
}

// stands reports whether the file that is being opened lies there with its log.
func (d *database) stands() bool {
	after, err := os.Stat(d.path)
	if err != nil || !os.SameFile(d.file, after) {
		return false
	}
	_, err = os.Stat(d.path + "-wal")
	return err == nil
}

// makeFile puts an empty index in the place of whatever is there; keep says that the vectors of
// that are taken over, if they can be read. It is made under a name that no other has, so that at
// no moment half of one lies there, even where two believe to hold the lock: see errOvertaken. The
// caller holds the lock.
func makeFile(ctx context.Context, path string, keep bool) (err error) {
	if err := removeHalf(path); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+newSuffix+"*") // 0600
	if err != nil {
		return err
	}
	fresh := f.Name()
	if err := f.Close(); err != nil {
		return err
	}
	db, err := openPool(fresh, 1, "journal_mode(WAL)", "synchronous(NORMAL)")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, fmt.Sprintf(
		"BEGIN IMMEDIATE; %s; PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT; PRAGMA wal_checkpoint(TRUNCATE)",
		schema, application, schemaVersion))
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if keep {
		if err := keepVectors(ctx, path, fresh); err != nil && ctx.Err() != nil {
			return errors.Join(err, removeFile(fresh))
		}
	}
	if err := errors.Join(removeLog(fresh), removeFile(path)); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// newSuffix stands in the names of what is being made.
const newSuffix = ".new-"

// removeHalf removes what a kill has left half made. From one that is being made, by somebody who
// has lost the lock, it takes the name, so that it does not come into the place of another.
func removeHalf(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), filepath.Base(path)+newSuffix) {
			if err := remove(filepath.Join(filepath.Dir(path), entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeFile removes a database with what SQLite keeps beside it: a log that stayed behind would be
// taken for the next file's.
func removeFile(path string) error { return errors.Join(removeLog(path), remove(path)) }

func removeLog(path string) error { return errors.Join(remove(path+"-wal"), remove(path+"-shm")) }

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// openPool opens connections that leave the write-ahead log where it is when they close: SQLite
// removes it by its name, under which another process may have put that of a new index by then.
func openPool(path string, size int, pragmas ...string) (*sql.DB, error) {
	query := url.Values{"mode": {"rw"}, "_pragma": append([]string{"busy_timeout(10000)"}, pragmas...)}
	inner, err := sqlite.NewConnector((&url.URL{
		Scheme: "file", OmitHost: true, Path: path,
		RawQuery: query.Encode(),
	}).String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(keepsLog{inner})
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

type keepsLog struct{ driver.Connector }

// Connect implements driver.Connector.
func (k keepsLog) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if control, ok := conn.(sqlite.FileControl); ok {
		if _, err := control.FileControlPersistWAL("main", 1); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// explain gives an error its code and a sentence (spec 12.5).
func explain(err error, path string) error {
	var coded *regie.Error
	code := 0
	if driver, ok := errors.AsType[*sqlite.Error](err); ok {
		code = driver.Code() & 0xff
	}
	switch {
	case err == nil, errors.As(err, &coded), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, errOvertaken):
		return regie.Errorf(regie.CodeDatabaseLocked,
			"other programs write the index %s, and somebody takes its lock away all the while: close them and try again", path)
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
		return regie.Errorf(regie.CodeInternal, "the index %s failed: remove the file, it will be made again (%v)",
			path, err)
	}
}
