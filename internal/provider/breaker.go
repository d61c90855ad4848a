package provider

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/regie-run/regie"
)

// How the circuit breaker of a provider behaves (spec 3.6, decision 30).
const (
	breakAfter = 5                // failures in a row open it
	openFirst  = 10 * time.Second // for so long at first, then twice as long each time a trial fails
	openMost   = 2 * time.Minute
	openWished = 10 * time.Minute // upper bound, even if the vendor asks for more
	// maxAskers bounds the set of askers that failed in a row. Once it is full, the breaker holds
	// for everybody.
	maxAskers = 100
)

// BreakerState is the state of a circuit breaker.
type BreakerState string

// The states.
const (
	BreakerClosed   BreakerState = "closed"    // calls are made
	BreakerOpen     BreakerState = "open"      // none is made
	BreakerHalfOpen BreakerState = "half open" // one is made, to see whether it works again
)

// Outcome classifies a model call for its provider's breaker.
type Outcome int

// The outcomes.
const (
	NoWord Outcome = iota // nothing: it was cut by us, or never sent
	Worked                // the provider answered, be it with a refusal
	Failed                // it may work later
)

// OutcomeOf returns what the error of a model call says about its provider. Only an error of the
// server counts as a failure: an empty or malformed reply is the fault of one request. An
// unreachable server does not count: a call finds that out fast and at no cost, and a person who
// starts the server must not wait.
func OutcomeOf(err error) Outcome {
	var failed *Error
	switch {
	case err == nil:
		return Worked
	case !errors.As(err, &failed) || failed.Offline:
		return NoWord
	}
	switch failed.Code {
	case regie.CodeProviderOffline, regie.CodeTruncatedStream:
		return NoWord
	case regie.CodeProviderBusy, regie.CodeProviderBroken:
		return Failed
	case regie.CodeTimeout:
		if failed.Received == 0 && failed.Partial == "" {
			return Failed
		}
		return NoWord
	default:
		return Worked
	}
}

// Breaker is the circuit breaker of one provider, pure: the time is an argument. The zero Breaker
// is closed. While it is open it refuses only askers with a failure of their own, so that one asker
// cannot shut out the others. Each other asker finds out with one call.
type Breaker struct {
	failures int               // in a row
	opened   int               // how often in a row it was opened
	until    time.Time         // when it is half open; zero while it is closed
	trial    bool              // a call is under way that will tell
	askers   map[regie.ID]bool // who failed in a row
}

// State returns the state at a time.
func (b *Breaker) State(now time.Time) BreakerState {
	switch {
	case b.until.IsZero():
		return BreakerClosed
	case b.trial || !now.Before(b.until):
		return BreakerHalfOpen
	default:
		return BreakerOpen
	}
}

// Enter reports whether a call may be made, and whether it is the trial that others wait on. A due
// asker does not wait for the breaker's time. At most one trial runs at a time.
func (b *Breaker) Enter(now time.Time, who regie.ID, due bool) (allowed, trial bool) {
	switch state := b.State(now); {
	case state == BreakerClosed, !b.askers[who] && len(b.askers) < maxAskers:
		return true, false
	case b.trial || state == BreakerOpen && !due:
		return false, false
	default:
		b.trial = true
		return true, true
	}
}

// Leave records the outcome of a call that Enter allowed; wish is the vendor's Retry-After, 0 for
// none.
func (b *Breaker) Leave(now time.Time, who regie.ID, trial bool, outcome Outcome, wish time.Duration) {
	if trial {
		b.trial = false
	}
	if outcome == Failed && len(b.askers) < maxAskers {
		if b.askers == nil {
			b.askers = map[regie.ID]bool{}
		}
		b.askers[who] = true
	}
	switch {
	case outcome == Worked:
		*b = Breaker{trial: b.trial}
	case outcome == NoWord:
	case b.until.IsZero():
		if b.failures++; b.failures >= breakAfter {
			b.open(now, wish)
		}
	case trial: // what was under way when it opened tells nothing new
		b.failures++
		b.open(now, wish)
	}
}

func (b *Breaker) open(now time.Time, wish time.Duration) {
	wait := min(openFirst<<min(b.opened, 8), openMost)
	b.opened++
	b.until = now.Add(max(wait, min(wish, openWished)))
}

// ErrOpen is in the chain of the Error of a call that was not made because its provider's breaker
// is open.
var ErrOpen = errors.New("the circuit breaker is open")

// Breakers are the circuit breakers of a process, by the provider's name. The zero value is ready.
// It may be used from many goroutines, and starts none.
type Breakers struct {
	mu sync.Mutex
	at map[string]*guarded
}

type guarded struct {
	Breaker
	trial *trial // under way
}

// trial is a call on which others wait. failed is set before done is closed.
type trial struct {
	done   chan struct{}
	failed bool
}

// Call makes a call unless the provider's breaker is open. It returns the results of send, an Error
// with ErrOpen in its chain if nothing was sent, or the cause of ctx. A due call (decision 42: its
// round has waited for its time) goes out even while the breaker is open. If a trial is running, it
// waits for the trial's outcome first.
func (s *Breakers) Call(ctx context.Context, name string, who regie.ID, due bool,
	send func() (*Reply, error),
) (*Reply, error) {
	mine, err := s.enter(ctx, name, who, due)
	if err != nil {
		return nil, err
	}
	outcome, wish := NoWord, time.Duration(0)
	defer func() { s.leave(name, who, mine, outcome, wish) }()
	reply, err := send()
	outcome = OutcomeOf(err)
	if failed, ok := errors.AsType[*Error](err); ok {
		wish = failed.RetryAfter
	}
	return reply, err
}

// enter returns the trial if this call is one, else nil.
func (s *Breakers) enter(ctx context.Context, name string, who regie.ID, due bool) (*trial, error) {
	for {
		s.mu.Lock()
		if s.at == nil {
			s.at = map[string]*guarded{}
		}
		g := s.at[name]
		if g == nil {
			g = &guarded{}
			s.at[name] = g
		}
		allowed, tries := g.Enter(time.Now(), who, due)
		if tries {
			g.trial = &trial{done: make(chan struct{})}
		}
		current, refused := g.trial, g.refused(name, time.Now())
		s.mu.Unlock()
		switch {
		case tries:
			return current, nil
		case allowed:
			return nil, nil
		case !due || current == nil:
			return nil, refused
		}
		select {
		case <-current.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if current.failed {
			s.mu.Lock()
			refused = g.refused(name, time.Now())
			s.mu.Unlock()
			return nil, refused
		}
	}
}

func (s *Breakers) leave(name string, who regie.ID, mine *trial, outcome Outcome, wish time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.at[name]
	g.Leave(time.Now(), who, mine != nil, outcome, wish)
	if mine != nil {
		mine.failed = outcome == Failed
		g.trial = nil
		close(mine.done)
	}
}

// refused is the error of a call that is not made.
func (g *guarded) refused(name string, now time.Time) *Error {
	wait := max(0, g.until.Sub(now)).Round(time.Second)
	said := regie.Errorf(regie.CodeProviderBusy,
		"the provider %s has failed %d times in a row; it is asked again in %s", name, g.failures, wait.String())
	if wait == 0 {
		said = regie.Errorf(regie.CodeProviderBusy,
			"the provider %s has failed %d times in a row; it is being tried again", name, g.failures)
	}
	return &Error{Code: regie.CodeProviderBusy, Retryable: true, RetryAfter: wait, Message: said.Error(), Err: ErrOpen}
}

// State returns the state of a provider's breaker.
func (s *Breakers) State(name string) BreakerState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.at[name]; g != nil {
		return g.State(time.Now())
	}
	return BreakerClosed
}
