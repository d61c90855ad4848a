package undo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

// Store is what undo needs of a store.
type Store interface {
	UndoCandidates(ctx context.Context, filter store.UndoFilter) ([]store.UndoCandidate, error)
	UndoSource(ctx context.Context, round regie.ID) (store.UndoSource, error)
	Later(ctx context.Context, workspace regie.ID, since time.Time) (store.Later, error)
	Undo(ctx context.Context, id regie.ID) (regie.Undo, error)
	OpenUndos(ctx context.Context) ([]store.OpenUndo, error)
	BeginUndo(ctx context.Context, in regie.Undo, holder string) (store.HeldUndo, error)
	ClaimUndo(ctx context.Context, id regie.ID, holder string) (store.HeldUndo, error)
	FinishUndo(ctx context.Context, in store.FinishUndo) (regie.Undo, error)
	PutBlob(ctx context.Context, data []byte) (regie.Hash, error)
	Blob(ctx context.Context, hash regie.Hash) ([]byte, error)
	Session(ctx context.Context, id regie.ID) (regie.Session, regie.Workspace, error)
}

// Request describes an undo.
type Request struct {
	// UndoID is the undo's own id: a second request with it adds nothing. A plan needs none.
	UndoID regie.ID
	// Target is a round or an undo; Short is a part of its id. With neither it is the newest round
	// of the session, or of the workspace at Root, that something can be undone of.
	Target    regie.ID
	Short     string
	Root      string
	SessionID regie.ID
	// Chat takes the round's messages out of the conversation too. An undo of an undo does so where
	// that did.
	Chat bool
	// Force restores files even if others changed them since; their present content is kept first.
	Force bool
	// Plan is the hash of the plan that a person agreed to; zero agrees to the present plan.
	Plan regie.Hash
	By   string
}

// Config sets up an Undoer.
type Config struct {
	Store Store
	// Tools returns the tools that interpret the evidence of calls.
	Tools func(context.Context) *tool.Registry
	// Holder names this process in leases. Holds reports whether its leases are still safe from
	// takeover; nil if there is no other process.
	Holder string
	Holds  func() bool
	Log    *slog.Logger
}

// Undoer undoes. Its methods may be called from any goroutine.
type Undoer struct {
	Config

	mu      sync.Mutex
	closed  bool
	closing chan struct{}
	places  map[regie.ID]chan struct{} // by workspace: one undo at a time
	running map[regie.ID]chan struct{} // by session: closed when its undo has ended
	wg      sync.WaitGroup
}

// New returns an Undoer.
func New(c Config) *Undoer {
	return &Undoer{
		Config: c, closing: make(chan struct{}), places: map[regie.ID]chan struct{}{},
		running: map[regie.ID]chan struct{}{},
	}
}

// Plan returns the present plan of an undo, with every conflict. It changes nothing. It returns
// CodeNotFound if there is nothing to undo, CodeRoundInProgress while a round of the session is
// open, and CodeConflict if it is undone already.
func (u *Undoer) Plan(ctx context.Context, in Request) (regie.UndoPlan, error) {
	source, target, err := u.findTarget(ctx, in)
	if err != nil {
		return regie.UndoPlan{}, err
	}
	b := builder{Undoer: u, in: in, source: source, target: target, show: true}
	return b.makePlan(ctx)
}

// Undo carries out an undo (decision 16). It returns the errors of Plan, CodeUndoConflict if files
// differ from the round's result, and CodeStalePreview if the plan is not the agreed one: in each
// case nothing has changed. The undo lists files that changed meanwhile and were left.
func (u *Undoer) Undo(ctx context.Context, in Request) (regie.Undo, error) {
	if in.UndoID.IsZero() {
		return regie.Undo{}, regie.Errorf(regie.CodeBadRequest, "the undo has no id")
	}
	if err := u.enterUndo(); err != nil {
		return regie.Undo{}, err
	}
	defer u.wg.Done()
	if known, err := u.Store.Undo(ctx, in.UndoID); err == nil {
		return u.answerRepeated(ctx, known, in)
	} else if regie.CodeOf(err) != regie.CodeNotFound {
		return regie.Undo{}, err
	}
	source, target, err := u.findTarget(ctx, in)
	if err != nil { // what it means may have been undone meanwhile by this very request, heard twice
		if known, failed := u.Store.Undo(ctx, in.UndoID); failed == nil {
			return u.answerRepeated(ctx, known, in)
		}
		return regie.Undo{}, err
	}
	leave, err := u.awaitTurn(ctx, source.Workspace.ID, source.Session.ID)
	if err != nil {
		return regie.Undo{}, err
	}
	defer leave()
	if err := u.finishOpen(ctx, source.Workspace.ID); err != nil {
		return regie.Undo{}, err
	}
	// Read again: another one may have come first, also this very one.
	if known, err := u.Store.Undo(ctx, in.UndoID); err == nil {
		return known, nil
	}
	if source, err = u.Store.UndoSource(ctx, source.Round.ID); err != nil {
		return regie.Undo{}, err
	}
	b := builder{Undoer: u, in: in, source: source, target: target}
	plan, err := b.makePlan(ctx)
	if err != nil {
		return regie.Undo{}, err
	}
	return u.beginUndo(ctx, &plan, in)
}

// answerRepeated answers a request that was heard before.
func (u *Undoer) answerRepeated(ctx context.Context, known regie.Undo, in Request) (regie.Undo, error) {
	if !in.Target.IsZero() && in.Target != known.RoundID && in.Target != known.Undoes {
		return regie.Undo{}, regie.Errorf(regie.CodeConflict, "the undo id %s is taken", in.UndoID)
	}
	if known.State == regie.UndoDone {
		return known, nil
	}
	if err := u.Settle(ctx, known.SessionID); err != nil {
		return regie.Undo{}, err
	}
	return u.Store.Undo(ctx, known.ID)
}

// beginUndo stores a plan without conflicts and carries it out.
func (u *Undoer) beginUndo(ctx context.Context, plan *regie.UndoPlan, in Request) (regie.Undo, error) {
	if !in.Plan.IsZero() && in.Plan != plan.Plan {
		return regie.Undo{}, regie.Errorf(regie.CodeStalePreview,
			"the effect of the undo has changed since it was shown: look at it again")
	}
	if conflicts := plan.Conflicts(in.Force); len(conflicts) > 0 {
		return regie.Undo{}, conflictError(plan)
	}
	root, err := workspace.Open(plan.Root)
	if err != nil {
		return regie.Undo{}, err
	}
	defer root.Close()
	if err := u.keepContents(ctx, root, &plan.Undo); err != nil {
		return regie.Undo{}, err
	}
	intended := plan.Undo
	intended.ID, intended.By, intended.Forced = in.UndoID, in.By, in.Force && len(plan.Conflicts(false)) > 0
	if fault.Bug(fault.BugUndoFirst) {
		for i := range intended.Files {
			u.putBack(ctx, root, &intended, i, false)
		}
	}
	fault.Point(fault.UndoBefore)
	stored, err := u.Store.BeginUndo(ctx, intended, u.Holder)
	switch {
	case err != nil || stored.State == regie.UndoDone:
		return stored.Undo, err
	case stored.Epoch == 0: // the same request came to another engine first
		return u.takeOver(ctx, stored.ID, patience)
	}
	fault.Point(fault.UndoBegun)
	return u.carryOut(context.WithoutCancel(ctx), root, nil, stored, false)
}

// keepContents stores the present contents of the files as blobs before the undo is intended, so
// that no replaced content is lost.
func (u *Undoer) keepContents(ctx context.Context, root *workspace.Root, undo *regie.Undo) error {
	for i := range undo.Files {
		f := &undo.Files[i]
		if !f.From.Exists() {
			continue
		}
		now, err := readFile(root, f.Path)
		if err == nil && (stateOf(now) != f.From || now.Path != f.Path) {
			err = regie.Errorf(regie.CodeUndoConflict, "%s changed while it was being read: nothing was undone",
				f.Path)
		}
		if err != nil {
			return err
		}
		hash, err := u.Store.PutBlob(ctx, now.Data)
		if err == nil && hash != f.From.Hash {
			err = regie.Errorf(regie.CodeCorrupt, "the content of %s was not saved", f.Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// conflictError names the files in the way.
func conflictError(plan *regie.UndoPlan) error {
	const most = 5
	var names []string
	for i := range plan.Previews {
		if c := plan.Previews[i].Conflict; c != nil {
			names = append(names, plan.Files[i].Path+" ("+c.Sentence.String()+")")
		}
	}
	if all := len(names); all > most {
		names = append(names[:most], fmt.Sprintf("… (%d)", all))
	}
	if len(plan.Conflicts(true)) == 0 {
		return regie.Errorf(regie.CodeUndoConflict,
			"nothing was undone: files have changed since the run: %s; force restores them anyway and keeps their present content", strings.Join(names, "; "))
	}
	return regie.Errorf(regie.CodeUndoConflict, "nothing was undone: files cannot be restored: %s",
		strings.Join(names, "; "))
}

// findTarget resolves the target of a request.
func (u *Undoer) findTarget(ctx context.Context, in Request) (source store.UndoSource, target regie.ID, err error) {
	filter := store.UndoFilter{Root: in.Root, SessionID: in.SessionID, ID: in.Target, Short: in.Short, Talk: in.Chat}
	named := !in.Target.IsZero() || in.Short != ""
	if named {
		filter.Root, filter.SessionID = "", regie.ID{} // an id says where
	}
	found, err := u.Store.UndoCandidates(ctx, filter)
	switch {
	case err != nil:
		return source, target, err
	case named && len(found) == 0:
		return source, target, regie.Errorf(regie.CodeNotFound, "no run and no undo has the id %s", nameOf(in))
	case named && len(found) > 1:
		names := make([]string, len(found))
		for i, c := range found {
			names[i] = c.RoundID.String()
			if !c.UndoID.IsZero() {
				names[i] = c.UndoID.String()
			}
		}
		return source, target, regie.Errorf(regie.CodeConflict,
			"%s matches several ids, write more of it: %s", nameOf(in), strings.Join(names, " "))
	case named:
		source, err = u.Store.UndoSource(ctx, found[0].RoundID)
		return source, found[0].UndoID, err
	}
	for _, c := range found {
		if source, err = u.Store.UndoSource(ctx, c.RoundID); err != nil {
			return source, target, err
		}
		b := builder{Undoer: u, in: in, source: source}
		if source.Round.State != regie.RoundEnded || b.canUndo(ctx) {
			return source, target, nil
		}
	}
	if in.Chat {
		return source, target, regie.Errorf(regie.CodeNotFound, "there is nothing to undo here")
	}
	return source, target, regie.Errorf(regie.CodeNotFound, "no run here has changed files that can be put back")
}

func nameOf(in Request) string {
	if in.Short != "" {
		return in.Short
	}
	return in.Target.String()
}

// enterUndo keeps Close waiting for the caller.
func (u *Undoer) enterUndo() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return errGone
	}
	u.wg.Add(1)
	return nil
}

var errGone = regie.Errorf(regie.CodeEngineGone, "the engine has stopped")

// Close refuses further requests, and waits for running undos.
func (u *Undoer) Close() {
	u.mu.Lock()
	if !u.closed {
		u.closed = true
		close(u.closing)
	}
	u.mu.Unlock()
	u.wg.Wait()
}

// awaitTurn waits until no other undo of the workspace runs, and has rounds of the session wait
// until leave.
func (u *Undoer) awaitTurn(ctx context.Context, place, session regie.ID) (leave func(), err error) {
	u.mu.Lock()
	turn := u.places[place]
	if turn == nil {
		turn = make(chan struct{}, 1)
		u.places[place] = turn
	}
	u.mu.Unlock()
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	done := make(chan struct{})
	u.mu.Lock()
	u.running[session] = done
	u.mu.Unlock()
	return func() {
		u.mu.Lock()
		delete(u.running, session)
		u.mu.Unlock()
		close(done)
		<-turn
	}, nil
}

// Idle returns when no undo of a session runs here: a new round of the session waits for that.
func (u *Undoer) Idle(ctx context.Context, session regie.ID) error {
	u.mu.Lock()
	done := u.running[session]
	u.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Settle waits for an undo of a session that is under way, and ends one that was left in the
// middle. It returns store.ErrUndoing where another process is still at it after a while.
func (u *Undoer) Settle(ctx context.Context, session regie.ID) error {
	open, err := u.Store.OpenUndos(ctx)
	if err != nil {
		return err
	}
	for i := range open {
		if open[i].SessionID != session {
			continue
		}
		leave, err := u.awaitTurn(ctx, open[i].Workspace.ID, session)
		if err != nil {
			return err
		}
		err = u.finishOpen(ctx, open[i].Workspace.ID)
		leave()
		if err != nil {
			return err
		}
	}
	return nil
}

// Recover finishes the undos of dead processes: at the start of an engine before anything else
// runs, and, if several engines share a database, at each check for abandoned work. It skips undos
// that another engine still carries out, and those in workspaces unreachable from here.
func (u *Undoer) Recover(ctx context.Context) error {
	if err := u.enterUndo(); err != nil {
		return err
	}
	defer u.wg.Done()
	open, err := u.Store.OpenUndos(ctx)
	for i := 0; err == nil && i < len(open); i++ {
		if err = u.recoverOne(ctx, &open[i]); errors.Is(err, store.ErrUndoing) {
			err = nil
		}
	}
	return err
}

func (u *Undoer) recoverOne(ctx context.Context, open *store.OpenUndo) error {
	leave, err := u.awaitTurn(ctx, open.Workspace.ID, open.SessionID)
	if err != nil {
		return err
	}
	defer leave()
	if u.Holds != nil && !u.canOpen(open) {
		return nil
	}
	_, err = u.takeOver(ctx, open.ID, 0)
	return err
}

// canOpen reports whether the workspace of an undo can be opened here.
func (u *Undoer) canOpen(open *store.OpenUndo) bool {
	root, err := workspace.Open(open.Workspace.Root)
	if err != nil {
		u.Log.Warn("an undo that another engine left is left as it is", "undo", open.ID.String(), "error", err)
		return false
	}
	_ = root.Close() // it was only looked at
	return true
}

// finishOpen finishes the interrupted undos of a workspace.
func (u *Undoer) finishOpen(ctx context.Context, place regie.ID) error {
	open, err := u.Store.OpenUndos(ctx)
	for i := 0; err == nil && i < len(open); i++ {
		if open[i].Workspace.ID == place {
			_, err = u.takeOver(ctx, open[i].ID, patience)
		}
	}
	return err
}

// patience is how long a person's request waits for an undo that another process carries out: a
// little longer than it would take to notice that the process is dead.
const patience = 10 * time.Second

// takeOver finishes an interrupted undo. If another process carries it out, it waits;
// store.ErrUndoing says that the time was not enough.
func (u *Undoer) takeOver(ctx context.Context, id regie.ID, patience time.Duration) (regie.Undo, error) {
	end := time.NewTimer(patience)
	defer end.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		held, err := u.Store.ClaimUndo(ctx, id, u.Holder)
		if !errors.Is(err, store.ErrElsewhere) {
			if err != nil || held.State == regie.UndoDone {
				return held.Undo, err
			}
			return u.resumeUndo(context.WithoutCancel(ctx), held)
		}
		select {
		case <-look.C:
		case <-end.C:
			return regie.Undo{}, store.ErrUndoing
		case <-u.closing:
			return regie.Undo{}, errGone
		case <-ctx.Done():
			return regie.Undo{}, context.Cause(ctx)
		}
	}
}

func (u *Undoer) resumeUndo(ctx context.Context, held store.HeldUndo) (regie.Undo, error) {
	u.Log.Warn("an undo that was interrupted is carried out to its end", "undo", held.ID.String(), "files",
		strconv.Itoa(len(held.Files)))
	_, place, err := u.Store.Session(ctx, held.SessionID)
	if err != nil {
		return regie.Undo{}, err
	}
	root, err := workspace.Open(place.Root)
	if err == nil {
		defer root.Close()
	}
	return u.carryOut(ctx, root, err, held, true)
}
