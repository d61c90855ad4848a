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

// Backend is another database below the same transitions. The statements are those of this package:
// what is written otherwise there is translated, not written twice. A database that several
// processes write to keeps them apart by what a transition holds (Holding).
type Backend interface {
	// Transact runs a transition in one transaction and returns after its commit, and whether it
	// wrote anything. run may be called more than once, each time in a new transaction; an error of
	// it leaves nothing behind. Once begun it does not end with ctx, but by its deadline.
	Transact(ctx context.Context, run func(Statements) error) (wrote bool, err error)
	// Read runs a read, again where the connection broke in it, and bounds how long it waits for an
	// answer.
	Read(ctx context.Context, read func(context.Context) error) error
	// Explain turns an error of the driver into one with a code and a sentence that a person can
	// act on.
	Explain(err error) error
	// CheckIntegrity reads everything through db and returns CodeCorrupt where anything is damaged.
	CheckIntegrity(ctx context.Context, db *sql.DB) error
	Close() error
}

// Statements runs the statements of one transition. Where one fails, everything after it fails too,
// and nothing is committed.
type Statements interface {
	// Queue has a writing statement run before the next one that returns something, or with the
	// commit. With refused it must change exactly one row, and refused is the transition's error
	// where it does not. The arguments may not be changed afterwards.
	Queue(refused error, query string, args []any)
	// Count runs a writing statement and returns how many rows it changed.
	Count(query string, args []any) (int64, error)
	// Rows runs a reading statement: int64, string, []byte, bool and nil are what it returns.
	Rows(query string, args []any) ([][]driver.Value, error)
	// Hold takes logs for this transition alone, before anything of them is read: what it reads
	// afterwards stays so until its commit.
	Hold(by Holding, key any)
	// HoldSlots locks the slots of a user in a workspace for this transition (spec 5.1), after its
	// logs.
	HoldSlots(workspace, user regie.ID)
	// Hurry has this transition wait for logs that others hold for a second only: then it fails
	// with CodeDatabaseLocked. It comes before Hold.
	Hurry()
	// Held returns the end of a log that is held.
	Held(chain int64) (seq int64, mac []byte, err error)
	// NeedsHolder has some process look at a round, from a time on, whether or not this one lives
	// then: it may be without a holder. Zero means at once. It goes with the transition.
	NeedsHolder(round regie.ID, after time.Duration)
	// Deadline schedules a look for overdue waits at a time, in some process. It is part of the
	// transition.
	Deadline(at time.Time)
	// Wrote records the last row written to a log: its presence tells later whether the commit was
	// done.
	Wrote(chain, seq int64, mac []byte)
}

// Holding is how a transition names the logs that it holds. A transition holds sessions' logs
// before their workspace's, and several sessions' logs in the order of creation, so that two
// transitions never deadlock.
type Holding int

// The ways to name them.
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
	// Translate writes a statement of this package as the database reads it, and Arguments what its
	// parameters get.
	Translate func(query string) string
	Arguments func(args []any) ([]any, error)
	Dir       string // of the audit key
	Key       []byte // of the chains
	Schema    int64  // the version of the schema that this program knows
	Notify    store.Notify
	Gate      func(committed, wrote bool) error
	// ReadOnly has every transition refused with CodeReadOnly.
	ReadOnly bool
}

// NewStore is the same store over another database, which is open and has its schema.
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

// closeOther ends the pools of another database. Reads that are under way come to their end first,
// so that none takes a connection for broken that is only closed.
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

// headStart is the time that the process which stored a change has to claim the round before
// another process is notified: the client of the request listens there.
const headStart = 200 * time.Millisecond

// needsHolder makes some process claim a round without a holder after a delay. SQLite has one
// process, which claims it anyway.
func (t *tx) needsHolder(round regie.ID, after time.Duration) {
	if t.other != nil {
		t.other.NeedsHolder(round, after)
	}
}

// ErrNotHeld says that a transition writes to a log that it does not hold.
var ErrNotHeld = regie.Errorf(regie.CodeInternal, "a transition writes to a log that it does not hold")
