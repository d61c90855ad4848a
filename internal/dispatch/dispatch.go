package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// Store is what dispatch needs of a store in addition to the engine's needs.
type Store interface {
	Submit(ctx context.Context, in store.Submission) (store.Accepted, error)
	Claim(ctx context.Context, round regie.ID, holder string) (store.Claimed, error)
	RequestStop(ctx context.Context, round regie.ID, word regie.StopRequest) (regie.ID, error)
	Resume(ctx context.Context, round regie.ID) error
	// Orphans are the running rounds that no other holder's lease covers.
	Orphans(ctx context.Context, holder string) ([]store.Orphan, error)
	OpenRound(ctx context.Context, session regie.ID) (regie.ID, error)
	Queues(ctx context.Context, session regie.ID) (store.QueueView, error)
	TellPlaces(ctx context.Context, sessions []regie.ID) error
	RequestControl(ctx context.Context, in store.Control) (store.Controlled, error)
	ReleaseControl(ctx context.Context, session regie.ID) error
	SetAside(ctx context.Context, in store.SetAside) error
	ProviderWaits(ctx context.Context) ([]regie.ID, error)
	ExpireWaits(ctx context.Context, at time.Time) (ready []store.Resolved, next time.Time, err error)
	Round(ctx context.Context, id regie.ID) (regie.Round, error)
	Events(ctx context.Context, session regie.ID, after int64, limit int) ([]regie.Event, error)
}

// Dispatcher runs rounds in this process. Its methods may be called from any goroutine.
type Dispatcher struct {
	store  Store
	engine *engine.Engine
	serves func(regie.Round) error
	holder string // names this process in leases
	log    *slog.Logger
	hub    *Hub

	base    context.Context
	cancel  context.CancelCauseFunc
	mu      sync.Mutex
	ended   error                 // set once nothing more is started: why
	running map[regie.ID]*holding // by round
	rounds  map[regie.ID]regie.ID // of the sessions whose round runs here
	failed  map[regie.ID]error    // by session: why its round stopped without an end
	wg      sync.WaitGroup
	queue   Queue
	onFreed func()
	closing chan struct{} // closed with it
	closed  chan struct{} // closed once Close is called

	lease    leaseKeeper
	takeover takeover
	watchdog watchdog
	slots    slotQueue
	stops    stopRelay
}

// holding is a round that runs here, or is about to. Its contexts are those of engine.Run.
type holding struct {
	ctx    context.Context //nolint:containedctx // the round's own, from its reservation to its end
	cancel context.CancelCauseFunc
	steps  context.Context //nolint:containedctx // descends from ctx
	soften context.CancelCauseFunc
	done   chan struct{}
	err    error
	due    atomic.Int64 // when nothing has happened for too long, since the watchdog began; 0 until it runs
	given  atomic.Bool  // the watchdog has stopped it
	lost   bool         // it did not obey, and was taken from its goroutine
	over   bool         // its goroutine is past its end, and cannot be taken from
	again  bool         // somebody answered or wrote meanwhile: look once more after letting go
	yields bool         // another round takes its slot at its next model call
	of     regie.ID     // the session, once it is known
}

// New returns a dispatcher that runs rounds with the engine. The caller connects the hub to deltas
// and commits. serves returns the reason why a stored round cannot continue here, or nil.
func New(s Store, e *engine.Engine, hub *Hub, serves func(regie.Round) error, holder string,
	log *slog.Logger,
) *Dispatcher {
	d := &Dispatcher{
		store: s, engine: e, hub: hub, serves: serves, holder: holder, log: log, running: map[regie.ID]*holding{},
		failed: map[regie.ID]error{},
		queue:  newClock(), closing: make(chan struct{}), closed: make(chan struct{}),
		rounds: map[regie.ID]regie.ID{},
	}
	d.lease.d, d.watchdog.d, d.slots.d = d, d, d
	d.takeover = takeover{d: d, alone: map[regie.ID]leftAlone{}}
	d.stops = stopRelay{d: d, rounds: map[regie.ID]struct{}{}, wake: make(chan struct{}, 1)}
	d.base, d.cancel = context.WithCancelCause(context.Background())
	context.AfterFunc(d.base, d.hub.wakeReaders)
	return d
}

// Start finishes interrupted undos, expires overdue waits, resumes every orphan (decision 25), the
// expired among them, returns their rounds, and begins to watch deadlines. Expiry comes first, so
// that no resumed round finds an overdue question open (decision 11). Call it once, under the
// engine lock.
func (d *Dispatcher) Start(ctx context.Context) ([]regie.ID, error) {
	if err := d.lease.begin(ctx); err != nil {
		return nil, err
	}
	if d.takeover.undos != nil {
		if err := d.takeover.undos(ctx); err != nil {
			return nil, err
		}
	}
	overdue, _, err := d.store.ExpireWaits(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	if len(overdue) > 0 {
		fault.Point(fault.ExpireAfter)
	}
	orphans, err := d.store.Orphans(ctx, d.holder)
	if err != nil {
		return nil, err
	}
	if d.lease.leases != nil {
		d.wg.Add(2)
		go d.stops.deliverStops()
		go d.takeover.keepAdopting()
	}
	left := make([]regie.ID, len(orphans))
	for i, orphan := range orphans {
		left[i] = orphan.RoundID
	}
	rounds := d.takeover.resumeRounds(ctx, left)
	rounds = append(rounds, d.slots.startRounds(ctx, regie.ID{})...)
	d.ResumeProviderWaits(ctx)
	return rounds, d.queue.Start(d.base, d.tryWakeUp, d.endOverdue)
}

// OnFreed has the end of each round here call fn, which must not block. Call it before Start.
func (d *Dispatcher) OnFreed(fn func()) { d.onFreed = fn }

// Submit stores a message and runs the round that it starts. The round is this process's from
// before it is stored, so that a stopping word that comes at once finds it.
func (d *Dispatcher) Submit(ctx context.Context, in store.Submission) (store.Accepted, error) {
	in.Holder = d.holder
	h, err := d.reserveRound(in.Round.ID)
	if err != nil {
		return store.Accepted{}, err
	}
	fault.Point(fault.SubmitBefore)
	accepted, err := d.store.Submit(ctx, in)
	ctx = context.WithoutCancel(ctx) // what is stored is gone on with, whether or not its sender still waits
	if err != nil || accepted.Duplicate || accepted.Pending || accepted.Position > 0 {
		d.letGo(ctx, in.Round.ID, h)
	}
	switch {
	case err != nil || accepted.Duplicate:
		return accepted, err
	case accepted.Pending:
		fault.Point(fault.PendingAfter)
		d.tryWakeUp(ctx, accepted.RoundID)
		return accepted, nil
	case accepted.Position > 0:
		fault.Point(fault.QueueAfter)
		d.slots.startRounds(ctx, in.SessionID) // a slot may be free by now, or somebody is to let go
		return accepted, nil
	}
	fault.Point(fault.SubmitAfter)
	claimed := store.Claimed{
		Fence: accepted.Fence,
		Exchange: regie.Exchange{
			RoundID: accepted.RoundID, Number: 1, Reason: in.Opens(), State: regie.ExchangeOpen, Attempt: 1,
			Money: regie.Money{Reserved: in.Reserved},
		},
	}
	if accepted.Created { // all of it is known: nothing need be read
		claimed.Session, claimed.Workspace, claimed.Round = *in.New, in.Workspace, in.Round
		claimed.Round.State, claimed.Round.Phase, claimed.Round.Exchange = regie.RoundRunning, regie.PhaseModel, 1
		claimed.Round.StartedAt = accepted.Message.Time
		claimed.Round.Deadline = claimed.Round.Limits.Deadline(accepted.Message.Time)
		if len(in.History) == 0 {
			claimed.Thread = &store.Thread{Messages: []regie.Message{accepted.Message}}
		}
	} else {
		claimed = accepted.Claimed
	}
	d.startRound(claimed, h)
	return accepted, nil
}

// resumeRound claims a round without a holder and runs it, if this engine has the settings that the
// round was started with.
func (d *Dispatcher) resumeRound(ctx context.Context, id regie.ID) error {
	round, err := d.store.Round(ctx, id)
	if err != nil {
		return err
	}
	if err := d.serves(round); err != nil {
		return err
	}
	return d.claimRound(ctx, id)
}

// errHeld says that the round runs here already.
var errHeld = regie.Errorf(regie.CodeConflict, "the round runs already")

// claimRound claims a round without a holder and runs it; it returns errHeld where the round runs
// here.
func (d *Dispatcher) claimRound(ctx context.Context, round regie.ID) error {
	h, err := d.reserveRound(round)
	if err != nil {
		return err
	}
	claimed, err := d.store.Claim(ctx, round, d.holder)
	if err != nil {
		d.letGo(ctx, round, h)
		return err
	}
	fault.Point(fault.ClaimAfter)
	d.startRound(claimed, h)
	return nil
}

// reserveRound reserves a round for the caller unless it is reserved here already: two concurrent
// claims would run its calls twice. Close waits for reservations. start or dropHolding ends one.
func (d *Dispatcher) reserveRound(round regie.ID) (*holding, error) {
	h := &holding{done: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancelCause(d.base)
	h.steps, h.soften = context.WithCancelCause(h.ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.ended
	if err == nil && d.running[round] != nil {
		err = errHeld
	}
	if err != nil {
		h.cancel(nil)
		return nil, err
	}
	d.wg.Add(1)
	d.running[round] = h
	return h, nil
}

// dropHolding ends a holding and wakes its waiters.
func (d *Dispatcher) dropHolding(round regie.ID, h *holding) {
	d.mu.Lock()
	if d.running[round] == h {
		delete(d.running, round)
	}
	if d.rounds[h.of] == round {
		delete(d.rounds, h.of)
	}
	d.mu.Unlock()
	h.cancel(nil)
	close(h.done)
	d.wg.Done()
}

// letGo drops an unused reservation and wakes the round for callers that came meanwhile: a waiting
// message is stored with the round that the end of the present one starts.
func (d *Dispatcher) letGo(ctx context.Context, round regie.ID, h *holding) {
	d.dropHolding(round, h)
	d.mu.Lock()
	again := h.again
	d.mu.Unlock()
	if again {
		d.tryWakeUp(context.WithoutCancel(ctx), round)
	}
}

// startRound starts the goroutine of a reserved round.
func (d *Dispatcher) startRound(claimed store.Claimed, h *holding) {
	id, session := claimed.Round.ID, claimed.Session.ID
	d.mu.Lock()
	delete(d.failed, session)
	d.rounds[session], h.of = id, session
	delete(d.takeover.alone, id)
	d.watchdog.arm()
	d.mu.Unlock()
	pulse := d.watchdog.notePulse(h)
	if pulse != nil {
		pulse(0)
	}
	d.wg.Add(1) // beside its holding: it looks at the queue behind its own end
	go func() {
		defer func() { // unless the watchdog has counted it out
			if d.isOver(h) {
				d.wg.Done()
			}
		}()
		var left engine.Left
		left, h.err = d.engine.Run(h.ctx, h.steps, claimed, pulse)
		switch {
		case !d.isOver(h):
			return
		case h.err == nil:
			d.mu.Lock()
			delete(d.watchdog.lost, id)
			d.mu.Unlock()
		case !errors.Is(h.err, engine.ErrShutdown):
			d.log.Error("a run stopped without an end; it can be resumed", "round", id.String(), "code",
				string(regie.CodeOf(h.err)), "error", h.err)
			d.mu.Lock()
			d.failed[session] = h.err
			d.mu.Unlock()
			d.takeover.leaveAlone(id)
			d.watchdog.noteLost(id)
		}
		d.dropHolding(id, h)
		d.hub.Commit(session, nil) // wakes the streams that wait for the end of this round
		if stopped, ok := errors.AsType[engine.Stopped](context.Cause(h.ctx)); ok && h.err == nil {
			d.endStopped(id, stopped.Word)
		}
		d.followUp(session, left.Next, h)
		d.slots.startRounds(context.WithoutCancel(d.base), session) // its slot is free
		if d.onFreed != nil {
			d.onFreed()
		}
		if left.Waits {
			d.queue.Parked()
		}
	}()
}

// isOver reports whether a round's goroutine still has a say in it: the watchdog may have taken the
// round.
func (d *Dispatcher) isOver(h *holding) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	h.over = !h.lost
	return h.over
}

// followUp continues after a round has ended or parked: with the next round, which waiting messages
// started, or with the same one, if an answer came while it was parking.
func (d *Dispatcher) followUp(session, next regie.ID, h *holding) {
	d.mu.Lock()
	again := h.again
	d.mu.Unlock()
	ctx := context.WithoutCancel(d.base)
	if next.IsZero() && again && h.err == nil {
		next, _ = d.store.OpenRound(ctx, session)
	}
	if !next.IsZero() {
		d.tryWakeUp(ctx, next)
	}
}

// tryWakeUp wakes a round after a stored change; if that fails, the next engine does it.
func (d *Dispatcher) tryWakeUp(ctx context.Context, round regie.ID) {
	if err := d.wakeUp(ctx, round); err != nil {
		d.log.Warn("a run waits for the next engine", "round", round.String(), "error", err)
	}
}

// wakeUp resumes a round that waits for nothing any more. If it is still held here, its holder
// looks again after letting go. A round that waits, is paused or has ended stays as it is.
func (d *Dispatcher) wakeUp(ctx context.Context, round regie.ID) error {
	d.mu.Lock()
	if h := d.running[round]; h != nil {
		h.again = true
		d.mu.Unlock()
		return nil
	}
	d.mu.Unlock()
	now, err := d.store.Round(ctx, round)
	if err != nil || now.State != regie.RoundRunning || now.Stop == regie.StopPause {
		return err
	}
	// Another engine that holds it sees the change at its next step, or has already brought the
	// round to an end or a wait.
	err = d.resumeRound(ctx, round)
	if errors.Is(err, ErrNoProvider) {
		d.takeover.leaveAlone(round)
		freeSlot(ctx, d, round, err)
		return nil
	}
	if errors.Is(err, store.ErrQueued) {
		d.slots.startRounds(ctx, now.SessionID)
		return nil
	}
	if err == nil || errors.Is(err, errHeld) || errors.Is(err, store.ErrElsewhere) ||
		regie.CodeOf(err) == regie.CodeConflict && d.isResting(ctx, round) {
		return nil
	}
	return err
}

// Wait returns when the round no longer runs here: nil where it ended or was paused, or the error
// that stopped it. It returns at once for a round that does not run here.
func (d *Dispatcher) Wait(ctx context.Context, round regie.ID) error {
	d.mu.Lock()
	h := d.running[round]
	d.mu.Unlock()
	if h == nil {
		return nil
	}
	select {
	case <-h.done:
		return h.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Runs reports whether a round runs here.
func (d *Dispatcher) Runs(round regie.ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running[round] != nil
}

// Resume resumes a paused round, or one without a holder. An ended round stays ended.
func (d *Dispatcher) Resume(ctx context.Context, round regie.ID) error {
	now, err := d.store.Round(ctx, round)
	if err == nil && now.State == regie.RoundEnded {
		// The pause may have met its end, and then holds the round that comes after it.
		round, err = d.store.OpenRound(ctx, now.SessionID)
		if err != nil || round.IsZero() {
			return err
		}
		now, err = d.store.Round(ctx, round)
	}
	if err != nil {
		return err
	}
	// A pause may still be on its way through the round: it is obeyed first.
	if now.Stop == regie.StopPause {
		if err := d.Wait(ctx, round); err != nil {
			return err
		}
	}
	if err := d.serves(now); err != nil {
		return err
	}
	if err := d.store.Resume(ctx, round); err != nil {
		return err
	}
	fault.Point(fault.ResumeAfter)
	ctx = context.WithoutCancel(ctx)
	defer d.slots.startRounds(ctx, now.SessionID)
	// Read again: an answer to the paused round in between left the resume to this call.
	if now, err = d.store.Round(ctx, round); err != nil || now.State != regie.RoundRunning {
		// another engine ended it meanwhile, and the pause held the round that comes after it
		if err == nil && now.State == regie.RoundEnded {
			var next regie.ID
			if next, err = d.store.OpenRound(ctx, now.SessionID); err == nil && !next.IsZero() {
				d.tryWakeUp(ctx, next)
			}
		}
		return err
	}
	for try := 1; ; try++ {
		err = d.claimRound(ctx, round)
		if errors.Is(err, store.ErrElsewhere) || errors.Is(err, store.ErrQueued) {
			return nil
		}
		if errors.Is(err, errHeld) { // somebody else resumed it, or its holder is about to let go: then it looks again
			return d.wakeUp(ctx, round)
		}
		if err == nil {
			return nil
		}
		// It may have ended or wait by now, or a later pause came first and holds. If that pause
		// was taken back meanwhile, its resume may not have run yet.
		now, again := d.store.Round(ctx, round)
		if again == nil && (now.State != regie.RoundRunning || now.Stop == regie.StopPause) {
			return nil
		}
		if again != nil || try == 3 || regie.CodeOf(err) != regie.CodeConflict {
			return err
		}
	}
}

// Resolve runs settle, which stores a person's decision, and resumes the round once nothing is left
// to decide, even if the caller has gone: otherwise it would run only with the next engine. With
// storeOnly it does not resume it.
func (d *Dispatcher) Resolve(ctx context.Context, storeOnly bool,
	settle func(context.Context) (store.Resolved, error),
) (store.Resolved, error) {
	fault.Point(fault.DecideBefore)
	out, err := settle(ctx)
	if err != nil {
		return out, err
	}
	fault.Point(fault.DecideAfter)
	if out.Ready && !storeOnly {
		d.tryWakeUp(context.WithoutCancel(ctx), out.RoundID)
	}
	return out, nil
}
