package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// Store is what dispatch needs of a store beside what the engine needs.
type Store interface {
	Submit(ctx context.Context, in store.Submission) (store.Accepted, error)
	Claim(ctx context.Context, round regie.ID, holder string) (store.Claimed, error)
	RequestStop(ctx context.Context, round regie.ID, word regie.StopRequest) (regie.ID, error)
	Resume(ctx context.Context, round regie.ID) error
	Orphans(ctx context.Context) ([]store.Orphan, error)
	Session(ctx context.Context, id regie.ID) (regie.Session, regie.Workspace, error)
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
	closed  bool
	running map[regie.ID]*holding // by round
	failed  map[regie.ID]error    // by session: why its round stopped without an end
	wg      sync.WaitGroup
}

// holding is a round that runs here.
type holding struct {
	ctx    context.Context //nolint:containedctx // the round's own, from its reservation to its end
	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error
}

// New returns a dispatcher that runs rounds with the engine. The hub is told of deltas and commits by whoever wires them; serves
// says why a stored round cannot go on here, or nil.
func New(s Store, e *engine.Engine, hub *Hub, serves func(regie.Round) error, holder string, log *slog.Logger) *Dispatcher {
	d := &Dispatcher{store: s, engine: e, hub: hub, serves: serves, holder: holder, log: log, running: map[regie.ID]*holding{}, failed: map[regie.ID]error{}}
	d.base, d.cancel = context.WithCancelCause(context.Background())
	return d
}

// Start resumes every orphan (decision 25) and returns their rounds. It is called once, under the engine lock.
func (d *Dispatcher) Start(ctx context.Context) ([]regie.ID, error) {
	orphans, err := d.store.Orphans(ctx)
	if err != nil {
		return nil, err
	}
	var rounds []regie.ID
	for _, orphan := range orphans {
		if err := d.resume(ctx, orphan.RoundID); err != nil {
			d.log.Warn("an interrupted run is left as it is", "round", orphan.RoundID.String(), "error", err)
			continue
		}
		rounds = append(rounds, orphan.RoundID)
	}
	return rounds, nil
}

// Submit stores a message and runs the round that it starts.
func (d *Dispatcher) Submit(ctx context.Context, in store.Submission) (store.Accepted, error) {
	in.Holder = d.holder
	fault.Point(fault.SubmitBefore)
	accepted, err := d.store.Submit(ctx, in)
	if err != nil || accepted.Duplicate {
		return accepted, err
	}
	fault.Point(fault.SubmitAfter)
	claimed := store.Claimed{
		Fence: accepted.Fence,
		Exchange: regie.Exchange{
			RoundID: accepted.RoundID, Number: 1, Reason: regie.ExchangeStart, State: regie.ExchangeOpen, Attempt: 1, Money: regie.Money{Reserved: in.Reserved},
		},
	}
	if accepted.Created { // all of it is known: nothing need be read
		claimed.Session, claimed.Workspace, claimed.Round = *in.New, in.Workspace, in.Round
		claimed.Round.State, claimed.Round.Phase, claimed.Round.Exchange = regie.RoundRunning, regie.PhaseModel, 1
		claimed.Thread = &store.Thread{Messages: []regie.Message{accepted.Message}}
		return accepted, d.run(claimed)
	}
	if claimed.Session, claimed.Workspace, err = d.store.Session(ctx, in.SessionID); err != nil {
		return accepted, err
	}
	if claimed.Round, err = d.store.Round(ctx, accepted.RoundID); err != nil {
		return accepted, err
	}
	return accepted, d.run(claimed)
}

// resume claims a round that nobody holds and runs it, if this engine's settings are those it was started with.
func (d *Dispatcher) resume(ctx context.Context, id regie.ID) error {
	round, err := d.store.Round(ctx, id)
	if err != nil {
		return err
	}
	if err := d.serves(round); err != nil {
		return err
	}
	return d.take(ctx, id)
}

// take claims a round that nobody holds and runs it.
func (d *Dispatcher) take(ctx context.Context, round regie.ID) error {
	h, free := d.reserve(round)
	if !free {
		return nil
	}
	claimed, err := d.store.Claim(ctx, round, d.holder)
	if err != nil {
		d.drop(round, h)
		return err
	}
	fault.Point(fault.ClaimAfter)
	return d.start(claimed, h)
}

// reserve makes the round this caller's to run, unless it is somebody's here already: two that claim it at once would run its calls
// twice.
func (d *Dispatcher) reserve(round regie.ID) (*holding, bool) {
	ctx, cancel := context.WithCancelCause(d.base)
	h := &holding{ctx: ctx, cancel: cancel, done: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running[round] != nil {
		cancel(nil)
		return nil, false
	}
	d.running[round] = h
	return h, true
}

// drop ends a holding: whoever waits for it goes on.
func (d *Dispatcher) drop(round regie.ID, h *holding) {
	d.mu.Lock()
	if d.running[round] == h {
		delete(d.running, round)
	}
	d.mu.Unlock()
	h.cancel(nil)
	close(h.done)
}

// run starts the goroutine of a round that was just submitted.
func (d *Dispatcher) run(claimed store.Claimed) error {
	h, free := d.reserve(claimed.Round.ID)
	if !free {
		return nil
	}
	return d.start(claimed, h)
}

// start starts the round's goroutine.
func (d *Dispatcher) start(claimed store.Claimed, h *holding) error {
	id := claimed.Round.ID
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		d.drop(id, h)
		return regie.Errorf(regie.CodeConflict, "the engine is shutting down: the run is stored and goes on with the next engine")
	}
	delete(d.failed, claimed.Session.ID)
	d.wg.Add(1)
	d.mu.Unlock()
	go func() {
		defer d.wg.Done()
		err := d.engine.Run(h.ctx, claimed)
		if err != nil && !errors.Is(err, engine.ErrShutdown) {
			d.log.Error("a run stopped without an end; it can be resumed", "round", id.String(), "code", string(regie.CodeOf(err)), "error", err)
			d.mu.Lock()
			d.failed[claimed.Session.ID] = err
			d.mu.Unlock()
		}
		h.err = err
		d.drop(id, h)
		d.hub.Commit(claimed.Session.ID, 0) // wakes the streams that wait for the end of this round
	}()
	return nil
}

// Wait returns when the round no longer runs here: nil where it ended or was paused, or the error that stopped it. It returns at
// once for a round that does not run here.
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

// Interrupt ends a round at its current exchange (decision 6). When it returns the word is durable; the round ends soon after.
func (d *Dispatcher) Interrupt(ctx context.Context, round regie.ID) error {
	return d.stop(ctx, round, regie.StopInterrupt)
}

// Pause keeps anything new of a round from starting, until Resume (decision 6).
func (d *Dispatcher) Pause(ctx context.Context, round regie.ID) error {
	return d.stop(ctx, round, regie.StopPause)
}

func (d *Dispatcher) stop(ctx context.Context, round regie.ID, word regie.StopRequest) error {
	if _, err := d.store.RequestStop(ctx, round, word); err != nil {
		return err
	}
	d.mu.Lock()
	h := d.running[round]
	d.mu.Unlock()
	if h != nil {
		h.cancel(engine.Stopped{Word: word})
		return nil
	}
	if word == regie.StopPause {
		return nil
	}
	// Nobody holds the round, so nobody would obey: it is taken up to be ended.
	now, err := d.store.Round(ctx, round)
	if err != nil || now.State != regie.RoundRunning {
		return err
	}
	return d.take(ctx, round)
}

// Resume goes on with a paused round, or with one that nobody holds. A round that ended stays ended.
func (d *Dispatcher) Resume(ctx context.Context, round regie.ID) error {
	now, err := d.store.Round(ctx, round)
	if err != nil || now.State != regie.RoundRunning {
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
	return d.take(ctx, round)
}

// failure returns why a session's round stopped here without an end, or nil.
func (d *Dispatcher) failure(session regie.ID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed[session]
}

// Close ends what runs here without losing anything: each round stops at its next stored step and can be resumed. It waits.
func (d *Dispatcher) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel(engine.ErrShutdown)
	d.wg.Wait()
}
