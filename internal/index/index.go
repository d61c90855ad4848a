package index

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/workspace"
)

// Config sets up an Index.
type Config struct {
	// Path is the index's file. Open makes its directory; related files have longer names in the
	// same directory.
	Path string
	// MaxFile is how many bytes a file has at most to be indexed; zero means 1 MiB.
	MaxFile int64
	// Embedder turns texts into vectors; nil leaves the search lexical. NoEmbedder says why a
	// configured one is missing.
	Embedder   provider.Embedder
	NoEmbedder regie.Sentence
	// Money is the embedder's price and budget.
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

// Query is a search.
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
	Symbol string  `json:"symbol,omitempty"` // its declaration or headings
	Text   string  `json:"text"`
	Score  float64 `json:"score"` // larger is better; it means nothing beyond one answer
}

// Answer is the result of a search, the best hits first.
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

	mu      sync.Mutex
	db      *database // nil after Close
	watches bool
	watch   *watch // of the last Update; nil: there was none, or nothing is watched
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
		return nil, explainError(err, config.Path)
	}
	return &Index{root: root, config: config, db: db, rest: waitFor}, nil
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
	return db.close()
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
	// the workspace has more files, or deeper directories, than are looked at: how many is not
	// known
	SkipBeyond Skip = "beyond"
)

// Progress is how far an update has come.
type Progress struct {
	Done, Total int64 // files that have to be read; Total may grow while Walking
	Bytes       int64 // of the files that were read
	Walking     bool  // how many files there are is not known yet
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

// useDatabase runs fn with the database. A damaged one is made anew and empty, and fn runs again.
// locked says that the caller holds the lock of the writers.
func (x *Index) useDatabase(ctx context.Context, locked bool, fn func(*database) error) error {
	for again := false; ; again = true {
		x.mu.Lock()
		db := x.db
		x.mu.Unlock()
		if db == nil {
			return regie.Errorf(regie.CodeConflict, "the index was closed")
		}
		err := fn(db)
		if again || !isDamage(err) {
			return explainError(err, x.config.Path)
		}
		if err := x.replaceDatabase(ctx, db, locked); err != nil {
			return explainError(err, x.config.Path)
		}
	}
}

// replaceDatabase replaces a damaged database with a new one.
func (x *Index) replaceDatabase(ctx context.Context, damaged *database, locked bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db != damaged { // another goroutine has replaced it
		return nil
	}
	fresh, err := openDatabase(ctx, x.config.Path, locked, damaged.file)
	if err == nil {
		_ = damaged.close() // its content is lost already
		x.db = fresh
	}
	return err
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
