package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver, pure Go

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
)

// Names of the files in the data directory.
const (
	FileName    = "regie.db"
	auditKey    = "audit.key"
	readerCount = 4
	busyTimeout = 5000 // milliseconds
)

// Config sets up a Store. The zero value of each field but Dir is useful.
type Config struct {
	// Dir is the data directory; it is made with mode 0700 if it is missing.
	Dir string
	// Notify is called on the writer's goroutine.
	Notify store.Notify
	// BusyTimeout is how long another program may hold the file, in milliseconds; zero means 5,000.
	BusyTimeout int
	// Gate is called before each transition, and after its commit with whether it wrote anything.
	// The caller gets its error, even after a commit. Harnesses use it to end a process at such a
	// moment, when nothing may proceed; nil lets all pass.
	Gate func(committed, wrote bool) error
	// Migrations replaces the migrations of this program, in tests.
	Migrations fs.FS
	// MaxPages bounds the file, in pages of 4 KiB; zero leaves it to the disk.
	MaxPages int
}

// Store is the embedded store. All its methods may be called from any goroutine.
type Store struct {
	*core
	sessionStore
	roundStore
	approvalStore
	slotStore
	tokenStore
	undoStore
	moneyStore
	auditStore
	agentStore
	statStore
	automationStore
	outboxStore
}

// core is shared by the nouns of a store: the writer, the readers and the caches.
type core struct {
	dir    string
	read   reader
	writer *writer // nil in a store that was opened for reading only
	other  Backend // nil for SQLite
	schema int64   // as in BackendConfig
	slots  slot.Capacity
	holder string // set by SetHolder
}

// Open opens the data directory's database, makes a missing one, and migrates it forward. It
// returns CodeNewerSchema for a database of a newer program, CodeSchemaTooOld for one that cannot
// be migrated, CodeCorrupt, CodeDatabaseLocked, CodeNoPermission, CodeReadOnly or CodeDiskFull.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	fault.Point(fault.OpenBefore)
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, explainError(err, cfg.Dir)
	}
	path := filepath.Join(cfg.Dir, FileName)
	if err := createPrivate(path); err != nil {
		return nil, explainError(err, path)
	}
	if cfg.BusyTimeout == 0 {
		cfg.BusyTimeout = busyTimeout
	}
	pragmas := []string{
		"foreign_keys(1)", "journal_mode(WAL)", "synchronous(FULL)",
		"wal_autocheckpoint(2000)", "temp_store(MEMORY)", "cache_size(-8192)",
	}
	if cfg.MaxPages > 0 {
		pragmas = append(pragmas, fmt.Sprintf("max_page_count(%d)", cfg.MaxPages))
	}
	if fault.Bug(fault.BugUnsynced) {
		pragmas = append(pragmas, "synchronous(NORMAL)")
	}
	writing, err := sql.Open("sqlite", fileDSN(path, "rwc", cfg.BusyTimeout, pragmas...))
	if err != nil {
		return nil, explainError(err, path)
	}
	writing.SetMaxOpenConns(1)
	if err := migrateSchema(ctx, writing, path, cfg.Migrations); err != nil {
		return nil, errors.Join(explainError(err, path), writing.Close())
	}
	key, err := openAuditKey(ctx, writing, cfg.Dir)
	if err != nil {
		return nil, errors.Join(explainError(err, path), writing.Close())
	}
	fault.Point(fault.OpenAfter)
	w, err := newWriter(ctx, writing, key, cfg.Notify)
	if err != nil {
		return nil, errors.Join(explainError(err, path), writing.Close())
	}
	w.gate = cfg.Gate
	read, err := newReader(path, "rwc", cfg.BusyTimeout)
	if err != nil {
		return nil, errors.Join(explainError(err, path), w.close())
	}
	return newStore(&core{dir: cfg.Dir, read: read, writer: w}), nil
}

// newReader opens the pool that reads go through.
func newReader(path, mode string, busy int) (reader, error) {
	db, err := sql.Open("sqlite", fileDSN(path, mode, busy, "query_only(1)", "temp_store(MEMORY)", "cache_size(-4096)"))
	if err != nil {
		return reader{}, err
	}
	db.SetMaxOpenConns(readerCount)
	db.SetMaxIdleConns(readerCount)
	return reader{db: db, prepared: new(sync.Map)}, nil
}

// Close waits for the transitions under way and closes the file.
func (s *core) Close() error {
	if s.other != nil {
		return s.closeOther()
	}
	if s.writer == nil {
		return s.read.db.Close()
	}
	return errors.Join(s.read.db.Close(), s.writer.close())
}

// QuickCheck checks the whole file and returns CodeCorrupt for damage. It reads the whole database,
// so it runs in the background (decision 31).
func (s *core) QuickCheck(ctx context.Context) error {
	if s.other != nil { // PostgreSQL looks after its files itself
		return nil
	}
	damage, err := checkPages(ctx, s.read.db, "quick_check")
	if err == nil && len(damage) > 0 {
		err = regie.Errorf(regie.CodeCorrupt,
			"the database is damaged (%s): restore a backup; the newest ones are beside %s", strings.Join(damage, "; "),
			filepath.Join(s.dir, FileName))
	}
	return explainError(err, FileName)
}

// fileDSN names the file for the driver; mode is SQLite's: "rwc" or "ro".
func fileDSN(path, mode string, busy int, pragmas ...string) string {
	query := url.Values{"mode": {mode}, "_pragma": append([]string{fmt.Sprintf("busy_timeout(%d)", busy)}, pragmas...)}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}).String()
}

// createPrivate makes the file with mode 0600 before SQLite would make it with the umask's; the
// journal files inherit the mode.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// toMicros turns a time into a column's value; the zero time is NULL.
func toMicros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

// nullIfEmpty turns an empty string into NULL.
func nullIfEmpty[S ~string](s S) any {
	if s == "" {
		return nil
	}
	return string(s)
}

func boolToInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
