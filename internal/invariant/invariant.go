// Package invariant checks a finished session against the invariants of spec 12.1. It reads the
// session's log and rows, a ledger of outside effects, and a journal of the person's requests and
// answers. The crash harness and the simulation both use it. It is for tests and starts no
// goroutine.
package invariant

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// Effect is one side effect as the ledger sees it.
type Effect struct {
	Key    regie.ID          `json:"key"` // the call id: the idempotency key
	Class  regie.EffectClass `json:"class"`
	Name   string            `json:"name"` // what the arguments call it
	Holder int               `json:"pid"`  // the process, or the life of one, that brought it about
	At     time.Time         `json:"-"`    // when it came
	Late   bool              `json:"-"`    // of a process that was stopped on the way, when another one had the session
}

// The stages of an Entry.
const (
	Sent    = "sent"
	Acked   = "acked"
	Refused = "refused"
)

// Entry is a request of the person, or a response to them. Exactly one of the fields after At is
// set.
type Entry struct {
	Key    string                  `json:"key"` // the request's own id
	Stage  string                  `json:"stage"`
	Code   regie.Code              `json:"code,omitempty"` // why it was refused
	Why    string                  `json:"why,omitempty"`  // in words
	Holder int                     `json:"pid"`            // who said it
	At     time.Time               `json:"at"`
	Decide *dispatch.DecideRequest `json:"decide,omitempty"`
	Answer *dispatch.AnswerRequest `json:"answer,omitempty"`
	Note   *dispatch.Run           `json:"note,omitempty"` // what was answered to a message
	Word   *Word                   `json:"word,omitempty"`
	Revoke bool                    `json:"revoke,omitempty"` // revokes every rule in force
	Undo   *dispatch.UndoRequest   `json:"undo,omitempty"`
}

// Word is a stop request, or Resume.
type Word struct {
	Word  regie.StopRequest `json:"word"`
	Round regie.ID          `json:"round"`
}

// Resume is the request that ends a pause.
const Resume regie.StopRequest = "RESUME"

// Note is a message of the person.
type Note struct {
	ID   string // the client's
	Text string // as it is to be stored
	// Follows says that the note may become an answer, which is stored together with later notes.
	Follows bool
}

// Rows reads rows of a store's database from outside: *sql.DB, or postgres.Rows.
type Rows interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Case is a session at its end. Store, DB, Session, Saw and Fail are required.
type Case struct {
	Store   *sqlite.Store
	DB      Rows // the same database, for rows that no view shows
	Session regie.ID
	Effects []Effect // of this session, in the order in which they came
	Told    []Entry  // in the order of sending and receiving
	Notes   []Note
	Shown   map[string]bool // the notes, by text, that stood in a prompt
	Acked   int64           // how far the log was said to reach
	// MayWait says that the person left: rounds may wait for them. Unique says that no two calls
	// name the same effect.
	MayWait, Unique bool
	// Root is the root of the workspace, if there are several; empty: any.
	Root string
	// Shared says that several engines hold the session in turn: AtHolder checked the holder at
	// each effect.
	Shared bool
	// Allows reports whether the policy allows a tool of the ledger without approval; nil allows
	// none.
	Allows func(tool string) bool
	// Files reads the workspace; nil if files are not checked.
	Files Files
	// Saw counts features that a long run must meet; Fail reports a violation.
	Saw  func(what string)
	Fail func(format string, args ...any)
}

// check is a Case on its way.
type check struct {
	Case
	events []regie.Event
	views  []store.RoundView
	closed bool // at some time
}

func (c *check) saw(what string) { c.Saw(what) }

// Check asserts invariants 1 to 12, 17 and 19, as far as one session at its end shows them, and
// returns its rounds, oldest first. The error says that it could not be read, or that its log does
// not verify.
func Check(ctx context.Context, of Case) ([]store.RoundView, error) {
	c := &check{Case: of}
	if err := c.read(ctx); err != nil {
		return nil, err
	}
	c.checkRounds()
	c.checkLimits()
	c.checkOrder()
	c.checkDecisions()
	c.checkNotes()
	c.checkKnown()
	c.checkNamed(ctx)
	c.checkUndos(ctx)
	c.checkMoney(ctx)
	c.checkSlots(ctx)
	for i := range c.views {
		c.checkCalls(&c.views[i])
	}
	return c.views, nil
}

// read takes the session and its log; on the way it asserts invariants 6, 7 and 17 on the log.
func (c *check) read(ctx context.Context) error {
	report, err := c.Store.Verify(ctx, c.Session)
	if err != nil {
		return fmt.Errorf("the chain does not verify (invariants 6, 17): %w", err)
	}
	if _, err := c.Store.VerifyRules(ctx, ""); err != nil {
		return fmt.Errorf("the log of the rules does not verify (invariant 17): %w", err)
	}
	if report.Events < c.Acked {
		c.Fail("event %d was acknowledged, the log ends at %d (invariant 7)", c.Acked, report.Events)
	}
	if c.events, err = c.Store.Events(ctx, c.Session, 0, int(report.Events)+1); err != nil {
		return err
	}
	for i := range c.events {
		if c.events[i].Seq != int64(i+1) {
			c.Fail("row %d of the log has number %d (invariant 6)", i+1, c.events[i].Seq)
		}
	}
	rounds, err := c.Store.Rounds(ctx, store.RoundFilter{Root: c.Root, Limit: 10000})
	if err != nil {
		return err
	}
	for _, round := range slices.Backward(rounds) { // oldest first
		if round.Session.ID == c.Session {
			view, err := c.Store.RoundView(ctx, round.Round.ID)
			if err != nil {
				return err
			}
			c.views = append(c.views, view)
		}
	}
	return nil
}
