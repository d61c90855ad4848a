package app

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/compat"
	"github.com/regie-run/regie/internal/store"
)

const (
	// Calls are logged together: those of logEvery, or logBatch of them. maxUnlogged is how many
	// may wait for that.
	logEvery    = 100 * time.Millisecond
	logBatch    = 512
	maxUnlogged = 2048
	// cutTime is how long an engine that ends waits for calls whose requests have been ended to say
	// what became of them.
	cutTime = 2 * time.Second
)

// passLog is the log of what is passed on. What calls used is logged by one goroutine, together
// with others. A call under a cap stands in the store before it is made. Any other one costs its
// answer nothing but a place in the queue: it stands there while it is with its provider once it is
// so for longer than logEvery, so that whoever comes after a process that died knows of it.
type passLog struct {
	to    logStore
	log   *slog.Logger
	queue chan store.Proxied
	began chan struct{} // a call is with its provider
	done  chan struct{}
	stop  chan struct{}
	once  sync.Once

	mu     sync.Mutex
	under  map[regie.ID]store.Proxied // those that are with their providers
	ended  bool                       // what is under way is logged as it stands, and nothing more
	idle   chan struct{}              // closed when nothing is under way any more, while somebody waits for that
	saying sync.WaitGroup             // who puts something into the queue
}

type logStore interface {
	OpenProxied(ctx context.Context, calls []store.Proxied) error
	LogProxied(ctx context.Context, calls []store.Proxied) error
}

func newPasser(e *Engine, log *slog.Logger) *passer {
	p := &passer{
		Engine: e, ups: map[string]compat.Upstream{}, caps: map[string]capsAt{},
		places: map[regie.ID]regie.Workspace{}, prices: map[string]priced{}, passLog: &passLog{
			to: e.store, log: log, queue: make(chan store.Proxied, maxUnlogged),
			began: make(chan struct{}, 1), done: make(chan struct{}),
			stop: make(chan struct{}), under: map[regie.ID]store.Proxied{},
		},
	}
	go p.write()
	return p
}

// close logs what is left, also calls that are still with their providers: nobody hears what
// becomes of these.
func (l *passLog) close() {
	l.once.Do(func() {
		l.mu.Lock()
		idle := make(chan struct{})
		if l.idle = idle; len(l.under) == 0 {
			close(idle)
			l.idle = nil
		}
		l.mu.Unlock()
		timer := time.NewTimer(cutTime)
		select {
		case <-idle:
		case <-timer.C:
		}
		timer.Stop()
		l.mu.Lock()
		l.ended, l.idle = true, nil
		cut := slices.Collect(maps.Values(l.under))
		l.mu.Unlock()
		for _, call := range cut {
			call.Code, call.Duration = regie.CodeStopRequested, time.Since(call.StartedAt)
			l.queue <- call
		}
		l.saying.Wait()
		close(l.stop)
	})
	<-l.done
}

// begin notes a call that is about to be made.
func (l *passLog) begin(call store.Proxied) {
	l.mu.Lock()
	l.under[call.ID] = call
	l.mu.Unlock()
	select {
	case l.began <- struct{}{}:
	default: // it is known that some have begun
	}
}

// say logs what became of a call, where the log has not ended: then it stands there as one that was
// cut. Where the log cannot keep up, the caller waits for it.
func (l *passLog) say(call store.Proxied) {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return
	}
	delete(l.under, call.ID)
	l.saying.Add(1)
	if l.idle != nil && len(l.under) == 0 {
		close(l.idle)
		l.idle = nil
	}
	l.mu.Unlock()
	l.queue <- call
	l.saying.Done()
}

// write logs calls until stop closes, and what is left then.
func (l *passLog) write() {
	defer close(l.done)
	opened := map[regie.ID]bool{} // what stands in the store without a reservation
	var look <-chan time.Time
	for {
		select {
		case first := <-l.queue:
			timer := time.NewTimer(logEvery)
			select { // others come meanwhile
			case <-timer.C:
			case <-l.stop:
			}
			timer.Stop()
			l.flush(first, opened)
		case <-l.began:
			if look == nil {
				look = time.After(logEvery)
			}
		case <-look:
			look = nil
			if l.open(opened) {
				look = time.After(logEvery)
			}
		case <-l.stop:
			for len(l.queue) > 0 {
				l.flush(<-l.queue, opened)
			}
			return
		}
	}
}

// open stores the calls that have been with their providers for a while, and reports whether there
// are younger ones.
func (l *passLog) open(opened map[regie.ID]bool) (younger bool) {
	var calls []store.Proxied
	l.mu.Lock()
	for id, call := range l.under {
		switch {
		case opened[id] || call.Money.Reserved > 0:
		case time.Since(call.StartedAt) < logEvery:
			younger = true
		default:
			calls = append(calls, call)
		}
	}
	l.mu.Unlock()
	if len(calls) == 0 {
		return younger
	}
	if err := l.to.OpenProxied(context.Background(), calls); err != nil {
		l.log.Warn("model calls that are passed on could not be logged while they are under way", "calls", len(calls),
			"code", string(regie.CodeOf(err)), "error", err)
		return younger // tried again when the next one has begun
	}
	for i := range calls {
		opened[calls[i].ID] = true
	}
	return younger
}

// flush logs a call and those that wait behind it.
func (l *passLog) flush(first store.Proxied, opened map[regie.ID]bool) {
	batch := []store.Proxied{first}
	for more := true; more && len(batch) < logBatch; {
		select {
		case next := <-l.queue:
			batch = append(batch, next)
		default:
			more = false
		}
	}
	for i := range batch {
		batch[i].Stored = opened[batch[i].ID]
		delete(opened, batch[i].ID)
	}
	if err := l.to.LogProxied(context.Background(), batch); err != nil {
		l.log.Error("model calls that were passed on could not be logged", "calls", len(batch), "code",
			string(regie.CodeOf(err)), "error", err)
	}
}

// Begin implements compat.Proxy.
func (p *passer) Begin(call store.Proxied) {
	p.owned(&call)
	p.begin(call)
}

// Done implements compat.Proxy.
func (p *passer) Done(call store.Proxied) {
	if cost, known := p.cost(&call); known {
		call.Money.Cost, call.Money.Known = cost, true
		call.Money.Overrun = max(0, cost-call.Money.Reserved)
	}
	p.owned(&call)
	p.say(call)
}

// owned has a call be the owner's where nobody else's.
func (p *passer) owned(call *store.Proxied) {
	if call.UserID.IsZero() {
		p.Engine.mu.Lock()
		call.UserID = p.owner.ID
		p.Engine.mu.Unlock()
	}
}
