package index

import (
	"context"
	"database/sql"
	"sync"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/workspace"
)

// Config sets up an Index.
type Config struct {
	// Path is the index's file. Its directory is made where it is missing; files that belong to it
	// lie beside it under longer names.
	Path string
	// MaxFile is how many bytes a file has at most to be indexed; zero means 1 MiB.
	MaxFile int64
	// Embedder turns texts into vectors; nil leaves the search lexical. NoEmbedder says why there
	// is none, where one is configured.
	Embedder   provider.Embedder
	NoEmbedder regie.Sentence
	// Money is what the embedder costs.
	Money Money
}

const defaultMaxFile = 1 << 20

// Mode says how a search was made (spec 8.3).
type Mode string

// The modes of a search.
const (
	Lexical Mode = "lexical" // by the words of the question: BM25 over split identifiers and stems
	Hybrid  Mode = "hybrid"  // by words and by vectors, fused
)

// Query is what is looked for.
type Query struct {
	Text  string // words, identifiers, a question; no character of it is syntax
	Limit int    // hits that are wanted; zero means 10, and there are at most 100
	Under string // a directory or a file, by its path as Clean gives it; "" and "." mean the whole workspace
}

// Hit is a part of a file that answers a query.
type Hit struct {
	Path   string  `json:"path"`
	Start  int     `json:"start"` // lines, from 1
	End    int     `json:"end"`
	Symbol string  `json:"symbol,omitempty"` // the declaration or the headings that it stands under
	Text   string  `json:"text"`
	Score  float64 `json:"score"` // larger is better; it means nothing beyond one answer
}

// Answer is what a search found, the best first.
type Answer struct {
	Mode Mode `json:"mode"`
	// Reason says why the answer is lexical only, where more was to be expected.
	Reason regie.Sentence `json:"reason,omitzero"`
	Hits   []Hit          `json:"hits"`
}

// Index searches one workspace's files (spec 8.3). Its methods may be called from any goroutine.
type Index struct {
	root    *workspace.Root
	config  Config
	vectors vectorCache
	asked   questions
	rest    func(ctx context.Context, d time.Duration) error // between two tries of an embedder

	mu         sync.Mutex
	db         *database // nil after Close
	generation string    // of the words that the last Update of this process left; empty before one
	watches    bool
	watch      *watch // of the last Update; nil: there was none, or nothing is watched
}

// Open opens the index of a confined directory. It makes a missing or damaged one, or one of
// another version, anew and empty: Update fills it. It returns CodeNoPermission, CodeReadOnly,
// CodeDiskFull or CodeDatabaseLocked. The caller closes the index, and then the root.
func Open(ctx context.Context, root *workspace.Root, config Config) (*Index, error) {
	if config.MaxFile <= 0 {
		config.MaxFile = defaultMaxFile
	}
	db, err := openDatabase(ctx, config.Path, false, nil)
	if err != nil {
		return nil, explain(err, config.Path)
	}
	return &Index{root: root, config: config, db: db, rest: rest}, nil
}

// Close closes the file when the calls under way have ended.
func (x *Index) Close() error {
	x.stopWatching()
	x.mu.Lock()
	db := x.db
	x.db = nil
	x.mu.Unlock()
	if db == nil {
		return nil
	}
	return db.release()
}

// Skip says why a file is not in the index.
type Skip string

// The reasons.
const (
	SkipBinary    Skip = "binary"     // it is no text
	SkipLarge     Skip = "large"      // it has more bytes than Config.MaxFile
	SkipLongLines Skip = "long lines" // a program wrote it for programs, as minified JavaScript
	SkipName      Skip = "name"       // no tool could name it
	SkipSecret    Skip = "secret"     // it may hold a secret
	// an ignore file names it, or the directory that it is: what is below is not counted
	SkipIgnored    Skip = "ignored"
	SkipUnreadable Skip = "unreadable" // it could not be opened
	// the kernel makes up what lies in the directory, as in /proc: what is below is not counted
	SkipSystem Skip = "system"
	// the workspace has more files, or deeper directories, than are looked at: how many is not
	// known
	SkipBeyond Skip = "beyond"
)

// Progress is how far an update has come.
type Progress struct {
	Done, Total int64 // files that have to be read; Total may grow while Walking
	Bytes       int64 // of the files that were read
	Walking     bool  // how many files there are is not known yet
	// Waits says that nothing is done yet, because another update is waited for, of this or of
	// another process. All else is zero then.
	Waits bool
	// Embedding says that Done and Total are texts that have to be embedded, not files.
	Embedding bool
}

// Summary is what an update found and did.
type Summary struct {
	Files   int64          `json:"files"`   // in the index now
	Chunks  int64          `json:"chunks"`  // in the index now
	Read    int64          `json:"read"`    // files that were new or could have changed
	Bytes   int64          `json:"bytes"`   // of those
	Changed int64          `json:"changed"` // files whose chunks were made, or made anew
	Removed int64          `json:"removed"` // files that have gone
	Skipped map[Skip]int64 `json:"skipped"` // files and directories that are not in the index
	Took    time.Duration  `json:"took_ns"`
}

// using runs fn with the database that lies on the disk. Where that was deleted, replaced or
// damaged, or where another writer came between, fn runs again, in an index that may be new and
// empty. locked says that the caller holds the lock of the writers.
func (x *Index) using(ctx context.Context, locked bool, fn func(*database) error) error {
	for try := 1; ; try++ {
		db, err := x.current(ctx, locked)
		if err != nil {
			return explain(err, x.config.Path)
		}
		err = fn(db)
		if isDamage(err) {
			db.damaged.Store(true)
		}
		again := err != nil && ctx.Err() == nil && try < maxTries &&
			(!db.inPlace() || sqliteCode(err)&0xff == lib.SQLITE_CONSTRAINT)
		closed := db.release()
		if !again {
			if err == nil {
				err = closed
			}
			return explain(err, x.config.Path)
		}
	}
}

// current returns the database, opened anew where it no longer lies in its place. The caller
// releases it.
func (x *Index) current(ctx context.Context, locked bool) (*database, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db == nil {
		return nil, regie.Errorf(regie.CodeConflict, "the index was closed")
	}
	if !x.db.inPlace() {
		// Where the file itself is still there, it is damaged or has lost its log.
		fresh, err := openDatabase(ctx, x.config.Path, locked, x.db.file)
		if err != nil {
			return nil, err
		}
		_ = x.db.release() // its content is lost already
		x.db = fresh
	}
	x.db.uses.Add(1)
	return x.db, nil
}

// querier is a transaction or a pool.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// metaValue reads a value of the table meta.
func metaValue(ctx context.Context, from querier, name string) (value string, err error) {
	err = from.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = ?", name).Scan(&value)
	return value, err
}

// isUpdated reports whether the words in the file are those that the last Update of this process
// left, or later ones.
func (x *Index) isUpdated(generation string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.generation == generation
}
