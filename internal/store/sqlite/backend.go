package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Backend runs the transitions on a database other than SQLite. It translates the statements of
// this package instead of having its own. Where several processes write, the logs that a transition
// holds keep them apart (Holding).
type Backend interface {
	// Transact runs a transition in one transaction and returns after its commit, and whether it
	// wrote anything. run may be called more than once, each time in a new transaction; an error of
	// it leaves nothing behind. Once begun it does not end with ctx, but by its deadline.
	Transact(ctx context.Context, run func(Statements) error) (wrote bool, err error)
	// Read runs a read, retries it after a lost connection, and bounds its wait for an answer.
	Read(ctx context.Context, read func(context.Context) error) error
	// Explain turns an error of the driver into one with a code and a remedy.
	Explain(err error) error
	// CheckIntegrity reads everything through db and returns CodeCorrupt where anything is damaged.
	CheckIntegrity(ctx context.Context, db *sql.DB) error
	Close() error
}

// Statements runs the statements of one transition. Where one fails, everything after it fails too,
// and nothing is committed.
type Statements interface {
	// Queue queues a writing statement. It runs before the next statement with a result, or with
	// the commit. With refused it must change exactly one row, else refused is the transition's
	// error. The arguments may not be changed afterwards.
	Queue(refused error, query string, args []any)
	// Count runs a writing statement and returns how many rows it changed.
	Count(query string, args []any) (int64, error)
	// Rows runs a reading statement. Its values are int64, string, []byte, bool or nil.
	Rows(query string, args []any) ([][]driver.Value, error)
	// Hold locks logs until the commit, before the transition reads them.
	Hold(by Holding, key any)
	// HoldSlots locks the slots of a user in a workspace until the commit (spec 5.1), after the
	// logs.
	HoldSlots(workspace, user regie.ID)
	// Hurry has Hold wait for a locked log for a second only, and then fail with
	// CodeDatabaseLocked. It comes before Hold.
	Hurry()
	// Held returns the end of a held log.
	Held(chain int64) (seq int64, mac []byte, err error)
	// NeedsHolder schedules a job, with the transition: some process looks after that time whether
	// the round has no holder, even if this process has died. Zero means at once.
	NeedsHolder(round regie.ID, after time.Duration)
	// Deadline schedules a job, with the transition, that some process runs once at has passed: it
	// looks for expired waits.
	Deadline(at time.Time)
	// Wrote receives the last row that was written to a log. Whether the row exists tells later
	// whether the commit was done.
	Wrote(chain, seq int64, mac []byte)
}

// Holding is the kind of key by which a transition names a log to hold. A transition holds
// sessions' logs before their workspace's, and several sessions' in the order of their creation. So
// two transitions never deadlock.
type Holding int

// The kinds of keys.
const (
	ByChain    Holding = iota // the store's own key of a log, int64
	ByOwner                   // the session, the workspace, or the user
	ByRound                   // its session's log
	ByApproval                // its session's
	ByWait                    // its session's
	ByCall                    // its session's
	ByUndo                    // its session's
	ByRule                    // its workspace's
	ByToken                   // its user's
)

// BackendConfig sets up a Store over another database.
type BackendConfig struct {
	Backend Backend
	// Read is the pool that reads go through.
	Read *sql.DB
	// Translate turns a statement of this package into the database's, and Arguments its
	// parameters.
	Translate func(query string) string
	Arguments func(args []any) ([]any, error)
	Dir       string // of the audit key
	Key       []byte // of the chains
	Schema    int64  // this program's version of the schema
	Notify    store.Notify
	Gate      func(committed, wrote bool) error
	// ReadOnly refuses every transition with CodeReadOnly.
	ReadOnly bool
}

// NewStore returns the store over another database, which is open and has its schema.
func NewStore(c BackendConfig) *Store {
	if c.Notify == nil {
		c.Notify = func(regie.ID, []regie.Event) {}
	}
	s := &core{
		dir: c.Dir, other: c.Backend, schema: c.Schema,
		read: reader{
			db: c.Read, prepared: new(sync.Map), translate: c.Translate, arguments: c.Arguments,
			isolation: sql.LevelRepeatableRead, again: c.Backend.Read,
		},
	}
	if !c.ReadOnly {
		s.writer = &writer{other: c.Backend, key: c.Key, notify: c.Notify, gate: c.Gate}
	}
	return newStore(s)
}

// closeOther ends the pools of another database. It waits for running reads first, so that none
// takes its connection for broken and retries.
func (s *core) closeOther() error {
	return errors.Join(s.read.db.Close(), s.other.Close())
}

// transactElsewhere runs a transition on another database.
func (w *writer) transactElsewhere(ctx context.Context, fn func(*tx) error) (wrote bool, err error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	var last *tx
	wrote, err = w.other.Transact(ctx, func(s Statements) error {
		last = newTx(w, s)
		return runRecovered(&op{run: fn}, last)
	})
	if err != nil {
		return false, w.other.Explain(err)
	}
	for session, added := range last.notices {
		w.notify(session, added)
	}
	return wrote, nil
}

// holdRow is Statements.Hold. SQLite has one writer, which holds everything.
func (t *tx) holdRow(by Holding, key any) {
	if t.other != nil {
		t.other.Hold(by, key)
	}
}

// hurryCommit is Statements.Hurry.
func (t *tx) hurryCommit() {
	if t.other != nil {
		t.other.Hurry()
	}
}

// headStart is how long the process that stores an event has to claim the round itself, before
// another one is sent to it: the client listens at the first process.
const headStart = 200 * time.Millisecond

// needsHolder schedules a claim of a round without a holder, by any process, from a time on. SQLite
// has one process, which looks for such rounds anyway.
func (t *tx) needsHolder(round regie.ID, after time.Duration) {
	if t.other != nil {
		t.other.NeedsHolder(round, after)
	}
}

// ErrNotHeld says that a transition writes to a log that it does not hold.
var ErrNotHeld = regie.Errorf(regie.CodeInternal, "a transition writes to a log that it does not hold")
