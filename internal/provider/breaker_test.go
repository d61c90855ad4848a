package provider

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie"
)

// TestBreaker is the state machine as a table: what is done, when, and what the state is then.
func TestBreaker(t *testing.T) {
	type step struct {
		at      time.Duration
		outcome Outcome
		wish    time.Duration
		due     bool
		refused bool
		after   BreakerState
	}
	fails := func(n int) (out []step) {
		for range n {
			out = append(out, step{outcome: Failed, after: BreakerClosed})
		}
		out[n-1].after = map[bool]BreakerState{true: BreakerOpen, false: BreakerClosed}[n >= breakAfter]
		return out
	}
	const s = time.Second
	for name, c := range map[string][]step{
		"four failures":              fails(4),
		"five failures":              append(fails(5), step{at: 9 * s, refused: true, after: BreakerOpen}),
		"a success between":          append(append(fails(4), step{outcome: Worked, after: BreakerClosed}), fails(4)...),
		"nothing between":            append(fails(4), step{outcome: NoWord, after: BreakerClosed}, step{outcome: Failed, after: BreakerOpen}),
		"a trial works":              append(fails(5), step{at: 10 * s, outcome: Worked, after: BreakerClosed}, step{at: 10 * s, outcome: Failed, after: BreakerClosed}),
		"a trial fails":              append(fails(5), step{at: 10 * s, outcome: Failed, after: BreakerOpen}, step{at: 29 * s, refused: true, after: BreakerOpen}, step{at: 30 * s, outcome: Worked, after: BreakerClosed}),
		"a trial says nothing":       append(fails(5), step{at: 10 * s, outcome: NoWord, after: BreakerHalfOpen}, step{at: 10 * s, outcome: Worked, after: BreakerClosed}),
		"who is due tries at once":   append(fails(5), step{at: s, due: true, outcome: Worked, after: BreakerClosed}),
		"who is due fails":           append(fails(5), step{at: s, due: true, outcome: Failed, after: BreakerOpen}, step{at: 20 * s, refused: true, after: BreakerOpen}, step{at: 21 * s, outcome: Worked, after: BreakerClosed}),
		"the vendor's wish":          append(fails(4), step{outcome: Failed, wish: 90 * s, after: BreakerOpen}, step{at: 89 * s, refused: true, after: BreakerOpen}, step{at: 90 * s, outcome: Worked, after: BreakerClosed}),
		"a short wish":               append(fails(4), step{outcome: Failed, wish: s, after: BreakerOpen}, step{at: 9 * s, refused: true, after: BreakerOpen}),
		"a wish beyond all patience": append(fails(4), step{outcome: Failed, wish: 24 * time.Hour, after: BreakerOpen}, step{at: openWished, outcome: Worked, after: BreakerClosed}),
	} {
		t.Run(name, func(t *testing.T) {
			var b Breaker
			start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for i, step := range c {
				now := start.Add(step.at)
				allowed, trial := b.Enter(now, regie.ID{}, step.due)
				if allowed == step.refused {
					t.Fatalf("step %d: allowed %v", i, allowed)
				}
				if allowed {
					b.Leave(now, regie.ID{}, trial, step.outcome, step.wish)
				}
				if got := b.State(now); got != step.after {
					t.Fatalf("step %d: %s, want %s", i, got, step.after)
				}
			}
		})
	}
}

// TestBreakerTriesOne: while one is being tried nobody else is, due or not, and what was under way
// before changes nothing but by success.
func TestBreakerTriesOne(t *testing.T) {
	var b Breaker
	now := time.Now()
	for range breakAfter + 3 { // they were all under way
		b.Enter(now, regie.ID{}, false)
	}
	for range breakAfter {
		b.Leave(now, regie.ID{}, false, Failed, 0)
	}
	until := b.until
	if b.Leave(now.Add(time.Second), regie.ID{}, false, Failed, 0); b.until != until {
		t.Error("what was under way keeps it open for longer")
	}
	later := now.Add(openFirst)
	allowed, trial := b.Enter(later, regie.ID{}, false)
	if !allowed || !trial {
		t.Fatal("nobody is tried")
	}
	for _, due := range []bool{false, true} {
		if allowed, _ := b.Enter(later, regie.ID{}, due); allowed {
			t.Error("a second one is tried")
		}
	}
	if b.Leave(later, regie.ID{}, false, Worked, 0); b.State(later) != BreakerClosed {
		t.Error("an answer does not close it")
	}
	b.Leave(later, regie.ID{}, trial, Failed, 0)
	if allowed, _ := b.Enter(later, regie.ID{}, false); !allowed {
		t.Error("one failure keeps a closed breaker from calls")
	}
}

// TestBreakerBacksOff: each failed trial doubles the wait up to its bound.
func TestBreakerBacksOff(t *testing.T) {
	var b Breaker
	now := time.Now()
	for range breakAfter {
		b.Leave(now, regie.ID{}, false, Failed, 0)
	}
	for _, want := range []int{10, 20, 40, 80, 120, 120} {
		if got := b.until.Sub(now); got != time.Duration(want)*time.Second {
			t.Fatalf("open for %v, want %d s", got, want)
		}
		now = b.until
		_, trial := b.Enter(now, regie.ID{}, false)
		b.Leave(now, regie.ID{}, trial, Failed, 0)
	}
}

func TestOutcomeOf(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want Outcome
	}{
		"an answer": {nil, Worked}, "a refusal": {&Error{Code: regie.CodeProviderAuth}, Worked}, "overload": {&Error{Code: regie.CodeProviderBusy, Retryable: true}, Failed},
		"offline": {&Error{Code: regie.CodeProviderOffline, Retryable: true}, NoWord}, "not sent": {&Error{Retryable: true, Offline: true}, NoWord}, "a signal": {context.Canceled, NoWord},
		"an empty reply": {&Error{Code: regie.CodeEmptyReply, Retryable: true}, Worked}, "a malformed reply": {&Error{Code: regie.CodeBadReply, Retryable: true}, Worked},
		"a broken connection": {&Error{Code: regie.CodeProviderBroken, Retryable: true}, Failed}, "half a reply": {&Error{Code: regie.CodeTruncatedStream, Retryable: true}, NoWord},
		"silence": {&Error{Code: regie.CodeTimeout, Retryable: true}, Failed}, "silence in a reply": {&Error{Code: regie.CodeTimeout, Retryable: true, Received: 7}, NoWord},
	} {
		if got := OutcomeOf(c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestBreakers: five failures in a row keep the next call from being made, and another provider's
// is made. A round that has waited for its moment is tried at it; all that come meanwhile wait for
// what comes of that, and none is kept from its own next moment.
func TestBreakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Breakers
		busy := &Error{Code: regie.CodeProviderBusy, Retryable: true, Message: "busy"}
		sent, works := 0, false
		var mu sync.Mutex
		call := func(name string, due bool) error {
			_, err := s.Call(t.Context(), name, regie.ID{}, due, func() (*Reply, error) {
				mu.Lock()
				sent++
				up := works
				mu.Unlock()
				time.Sleep(time.Second)
				if up {
					return &Reply{}, nil
				}
				return nil, busy
			})
			return err
		}
		for range breakAfter {
			if err := call("a", false); !errors.Is(err, busy) {
				t.Fatal(err)
			}
		}
		var failed *Error
		if err := call("a", false); !errors.Is(err, ErrOpen) || !errors.As(err, &failed) || failed.RetryAfter != openFirst || !failed.Retryable || sent != breakAfter {
			t.Fatalf("%v after %d calls", err, sent)
		}
		if err := call("b", false); !errors.Is(err, busy) {
			t.Error(err)
		}
		together := func() (refused, tried, worked int) {
			var group sync.WaitGroup
			for range 20 {
				group.Go(func() {
					err := call("a", true)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case errors.Is(err, ErrOpen):
						refused++
					case err != nil:
						tried++
					default:
						worked++
					}
				})
			}
			group.Wait()
			return refused, tried, worked
		}
		if refused, tried, worked := together(); refused != 19 || tried != 1 || worked != 0 {
			t.Errorf("while it is down: %d refused, %d tried, %d worked", refused, tried, worked)
		}
		works = true
		if refused, tried, worked := together(); refused != 0 || tried != 0 || worked != 20 {
			t.Errorf("once it is up: %d refused, %d tried, %d worked", refused, tried, worked)
		}
		if s.State("a") != BreakerClosed {
			t.Error(s.State("a"))
		}
	})
}

// TestTrialIsCancelled: a trial that is cut says nothing, and the next one that waits is tried.
func TestTrialIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Breakers
		for range breakAfter {
			_, _ = s.Call(t.Context(), "a", regie.ID{}, false, func() (*Reply, error) { return nil, &Error{Code: regie.CodeProviderBusy, Retryable: true} })
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, _ = s.Call(ctx, "a", regie.ID{}, true, func() (*Reply, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			})
		}()
		synctest.Wait()
		done := make(chan error)
		go func() {
			_, err := s.Call(t.Context(), "a", regie.ID{}, true, func() (*Reply, error) { return &Reply{}, nil })
			done <- err
		}()
		waiter, leave := context.WithCancel(t.Context())
		leave()
		if _, err := s.Call(waiter, "a", regie.ID{}, true, func() (*Reply, error) { return &Reply{}, nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("who is cancelled while it waits: %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestBreakerKeepsOutWhoFailed: one whose requests fail again and again is not asked any more,
// another is; its answer closes the breaker, its failure keeps it out too. What fails for many is
// down for everybody.
func TestBreakerKeepsOutWhoFailed(t *testing.T) {
	now, one, other := time.Now(), regie.NewID(), regie.NewID()
	var b Breaker
	enters := func(who regie.ID) bool {
		allowed, trial := b.Enter(now, who, false)
		if trial {
			t.Fatal("it is tried before its time")
		}
		return allowed
	}
	for range breakAfter {
		b.Leave(now, one, false, Failed, 0)
	}
	if enters(one) || !enters(other) {
		t.Fatal("the one may come, or the other may not")
	}
	if b.Leave(now, other, false, Failed, 0); enters(other) || !enters(regie.NewID()) {
		t.Error("the other may come once it has failed too, or a third may not")
	}
	if b.Leave(now, regie.NewID(), false, Worked, 0); !enters(one) {
		t.Error("an answer does not close it")
	}
	for range maxAskers {
		b.Leave(now, regie.NewID(), false, Failed, 0)
	}
	if enters(regie.NewID()) {
		t.Error("it is down, and another is asked")
	}
}
