package dispatch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/store"
)

// Leases are what a store offers that several engines share (spec 11.1).
type Leases interface {
	// Lease says that holder lives, until ttl from now by the database's clock. It returns
	// store.ErrNewerSchema where this program is too old for the database by now.
	Lease(ctx context.Context, holder string, ttl time.Duration) error
	EndLease(ctx context.Context, holder string) error
	// Succeed ends the leases of holders with a name prefix.
	Succeed(ctx context.Context, begins string) error
}

// leaseTTL is how long a process that says nothing is taken to live; it says so three times as
// often, and looks as often for what others have left (adoptEvery). What one leaves is resumed
// elsewhere within leaseTTL and a third.
const leaseTTL = 6 * time.Second

// leaseKeeper holds the lease of this process and renews it.
type leaseKeeper struct {
	d           *Dispatcher
	leases      Leases // nil where the engine lock keeps others away
	place       string
	ends, ended chan struct{}
	released    bool
	renewed     atomic.Pointer[time.Time] // when the lease was last asked for that holds
	holding     sync.Mutex                // Hold is called once at a time
}

// Share makes this dispatcher respect the leases of other processes and take over what they leave;
// queue is the common queue. Call it before Start. Of all holders with a name that begins with
// place only one lives at a time, now this one: it need not wait for the end of their leases.
func (d *Dispatcher) Share(leases Leases, queue Queue, place string) {
	d.lease.leases, d.queue, d.lease.place = leases, queue, place
	d.hub.mu.Lock()
	defer d.hub.mu.Unlock()
	d.hub.foreign = d.stops.checkSession
}

// errLeaseLost ends rounds here after a failed renewal of the lease: another process may have taken
// them over.
var errLeaseLost = errors.Join(engine.ErrShutdown, errors.New("the lease could not be renewed in time"))

// Hold takes the lease for a process that runs nothing, and stores what takes a while: Start does
// so for the others. Close ends it.
func (d *Dispatcher) Hold(ctx context.Context) error {
	d.lease.holding.Lock()
	defer d.lease.holding.Unlock()
	if d.lease.renewed.Load() != nil {
		return nil
	}
	return d.lease.begin(ctx)
}

// begin takes the first lease, and keeps it until end.
func (l *leaseKeeper) begin(ctx context.Context) error {
	if l.leases == nil {
		return nil
	}
	if err := l.leases.Succeed(ctx, l.place); err != nil {
		return err
	}
	began := time.Now()
	if err := l.leases.Lease(ctx, l.d.holder, leaseTTL); err != nil {
		return err
	}
	l.renewed.Store(&began)
	l.ends, l.ended = make(chan struct{}), make(chan struct{})
	go l.keep(began)
	return nil
}

// timeSince returns the time since a moment, including any sleep of the machine: the monotonic
// clock stops then, and the wall clock may be set.
func timeSince(moment time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(moment), now.Round(0).Sub(moment.Round(0)))
}

// Left is for how long from now no other process can take over what this one has claimed; zero or
// less where one may have. It means nothing where no other process can.
func (d *Dispatcher) Left() time.Duration {
	renewed := d.lease.renewed.Load()
	if renewed == nil {
		return 0
	}
	return leaseTTL - leaseTTL/10 - timeSince(*renewed)
}

// keep renews the lease, and does nothing else: what waits for anything must not keep it from
// that. It goes on while what runs here comes to its end.
func (l *leaseKeeper) keep(renewed time.Time) {
	defer close(l.ended)
	tick := time.NewTicker(leaseTTL / 3)
	defer tick.Stop()
	for outdated := false; ; {
		select {
		case <-l.ends:
			return
		case <-tick.C:
		}
		// A process that was stopped, or that the database did not hear, for so long has nothing
		// left to rely on: its next write would be refused if another one has taken over, and what
		// it would do before that write is not to be done.
		if timeSince(renewed) > leaseTTL {
			l.d.loseAll()
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.d.base), leaseTTL/2)
		err := l.leases.Lease(ctx, l.d.holder, leaseTTL)
		cancel()
		switch {
		case errors.Is(err, store.ErrNewerSchema) && !outdated:
			outdated = true
			l.d.log.Error("this engine ends", "code", string(regie.CodeOf(err)), "error", err)
			go l.d.Close(err) // which waits for the end of this goroutine
			continue
		case err != nil:
			l.d.log.Warn("the database did not renew this engine's lease", "error", err)
			continue
		}
		renewed = began
		l.renewed.Store(&began)
	}
}

// loseAll ends everything that runs here at its next step. The next holder of a lease resumes it,
// possibly this process.
func (d *Dispatcher) loseAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.running {
		h.cancel(errLeaseLost)
	}
}

// end lets go of the lease, after all rounds have ended here.
func (l *leaseKeeper) end() {
	if l.ends == nil {
		return
	}
	close(l.ends)
	<-l.ended
	ctx, cancel := context.WithTimeout(context.Background(), leaseTTL)
	defer cancel()
	if err := l.leases.EndLease(ctx, l.d.holder); err != nil {
		l.d.log.Warn("this engine's lease ends by itself", "error", err)
	}
}
