package tool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

var (
	errBusy = regie.Errorf(regie.CodeProviderBusy, "busy")
	errFull = regie.Errorf(regie.CodeDiskFull, "the disk is full")
)

// trial is a tool that fails with the errors in turn, each after a second, and then succeeds. It
// keeps what its code was told.
type trial struct {
	scripted
	fail     []error
	repeated []bool
	at       []time.Duration // when each attempt started
	started  time.Time
}

func newTrial(class regie.EffectClass, fail ...error) *trial {
	t := &trial{scripted: scripted{definition: definition("a.b", class)}, fail: fail, started: time.Now()}
	t.run = func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
		try := len(t.at)
		t.at, t.repeated = append(t.at, time.Since(t.started)), append(t.repeated, inv.Repeated)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
		if try < len(t.fail) && t.fail[try] != nil {
			return tool.Result{}, t.fail[try]
		}
		return tool.Result{Content: fmt.Sprint("try ", try+1)}, nil
	}
	return t
}

// seconds waits a second more from try to try.
func seconds(try int) time.Duration { return time.Duration(try) * time.Second }

// TestAttempt is the retry row of spec 4.3 as a table: what is repeated, how often, and what comes
// of it.
func TestAttempt(t *testing.T) {
	done := func(err error) error { return tool.NotDone{Err: err} }
	repeat := func(n int, err error) []error { return slices.Repeat([]error{err}, n) }
	for _, row := range []struct {
		name     string
		class    regie.EffectClass
		fail     []error
		tries    int
		state    regie.CallState
		code     regie.Code
		repeated []bool
	}{
		{"a query at once", regie.ClassRead, nil, 1, regie.CallSucceeded, "", []bool{false}},
		{"a query in the end", regie.ClassRead, repeat(2, errBusy), 3, regie.CallSucceeded, "", []bool{false, false, false}},
		{"a query never", regie.ClassRead, repeat(9, errBusy), 3, regie.CallFailed, regie.CodeProviderBusy, []bool{false, false, false}},
		{"a query for good", regie.ClassRead, repeat(9, errFull), 1, regie.CallFailed, regie.CodeDiskFull, []bool{false}},
		{"a query without a code", regie.ClassRead, repeat(9, errPlain), 1, regie.CallFailed, regie.CodeToolError, []bool{false}},
		{"a query that then fails for good", regie.ClassRead, []error{errBusy, errFull}, 2, regie.CallFailed, regie.CodeDiskFull, []bool{false, false}},

		{"keyed, nothing happened, in the end", regie.ClassKeyed, repeat(2, done(errBusy)), 3, regie.CallSucceeded, "", []bool{false, false, false}},
		{"keyed, nothing ever happened", regie.ClassKeyed, repeat(9, done(errBusy)), 3, regie.CallFailed, regie.CodeProviderBusy, []bool{false, false, false}},
		{"keyed, unknown, in the end", regie.ClassKeyed, repeat(2, errPlain), 3, regie.CallSucceeded, "", []bool{false, true, true}},
		{"keyed, unknown for ever", regie.ClassKeyed, repeat(9, errBusy), 3, regie.CallUnknown, regie.CodeOutcomeUnknown, []bool{false, true, true}},
		{"keyed, unknown, then nothing happened", regie.ClassKeyed, []error{errPlain, done(errFull)}, 2, regie.CallUnknown, regie.CodeOutcomeUnknown, []bool{false, true}},
		{"keyed, nothing happened, then unknown", regie.ClassKeyed, []error{done(errBusy), errBusy, nil}, 3, regie.CallSucceeded, "", []bool{false, false, true}},
		{"keyed, what will not pass", regie.ClassKeyed, repeat(9, errFull), 1, regie.CallUnknown, regie.CodeOutcomeUnknown, []bool{false}},
		{"keyed, refused", regie.ClassKeyed, repeat(9, done(errFull)), 1, regie.CallFailed, regie.CodeDiskFull, []bool{false}},

		{"once, unknown", regie.ClassOnce, repeat(9, errBusy), 1, regie.CallUnknown, regie.CodeOutcomeUnknown, []bool{false}},
		{"once, nothing happened", regie.ClassOnce, repeat(9, done(errBusy)), 1, regie.CallFailed, regie.CodeProviderBusy, []bool{false}},
		{"resumable, unknown", regie.ClassResumable, repeat(9, errBusy), 1, regie.CallUnknown, regie.CodeOutcomeUnknown, []bool{false}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := newTrial(row.class, row.fail...)
				inv := &tool.Invocation{CallID: regie.NewID()}
				out, tries := tool.Attempt(t.Context(), target, inv, tool.Retry{Backoff: seconds})
				code := regie.Code("")
				if out.Error != nil {
					code = out.Error.Code
				}
				if tries != row.tries || out.State != row.state || code != row.code || !slices.Equal(target.repeated, row.repeated) {
					t.Errorf("%d tries, %s %s, repeated %v; want %d, %s %s, %v", tries, out.State, code, target.repeated, row.tries, row.state, row.code, row.repeated)
				}
				if out.State == regie.CallSucceeded && out.Result != fmt.Sprint("try ", row.tries) {
					t.Errorf("the result is %q, not that of the last attempt", out.Result)
				}
				if want := time.Duration(row.tries) * time.Second; out.Duration != want {
					t.Errorf("took %s, want %s: the attempts without the waiting", out.Duration, want)
				}
				if want := []time.Duration{0, 3 * time.Second, 7 * time.Second}[:row.tries]; !slices.Equal(target.at, want) {
					t.Errorf("attempts at %v, want %v", target.at, want)
				}
				if inv.Repeated {
					t.Error("the caller's invocation was changed")
				}
			})
		})
	}
}

// A panic will not pass; a tool that is still at work is not started beside itself.
func TestAttemptLeavesAlone(t *testing.T) {
	for name, run := range map[string]func(context.Context, *tool.Invocation) (tool.Result, error){
		"panic": func(context.Context, *tool.Invocation) (tool.Result, error) { panic("index out of range") },
		"lost": func(context.Context, *tool.Invocation) (tool.Result, error) {
			time.Sleep(time.Hour)
			return tool.Result{}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{definition: definition("a.b", regie.ClassKeyed), run: run}
				out, tries := tool.Attempt(t.Context(), s, &tool.Invocation{}, tool.Retry{})
				if tries != 1 || out.State != regie.CallUnknown {
					t.Errorf("%d tries, %s", tries, out.State)
				}
				time.Sleep(2 * time.Hour) // the lost one ends, in the bubble's own time
			})
		})
	}
}

// A call that was Repeated before, by a process that died, stays so in its first attempt here.
func TestAttemptOfARepeatedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := newTrial(regie.ClassKeyed, tool.NotDone{Err: errFull})
		out, tries := tool.Attempt(t.Context(), target, &tool.Invocation{Repeated: true}, tool.Retry{Backoff: seconds})
		if tries != 1 || out.State != regie.CallUnknown || !slices.Equal(target.repeated, []bool{true}) {
			t.Errorf("%d tries, %s, repeated %v", tries, out.State, target.repeated)
		}
	})
}

// The end of the context ends the waiting and what runs, and leaves the outcome that is known.
func TestAttemptEndsWithItsContext(t *testing.T) {
	errStop := errors.New("stop")
	for _, row := range []struct {
		name  string
		class regie.EffectClass
		fail  error
		after time.Duration
		tries int
		state regie.CallState
		again bool
	}{
		{"before a query", regie.ClassRead, errBusy, 0, 1, regie.CallFailed, false},
		{"before a keyed call: nothing happened", regie.ClassKeyed, errBusy, 0, 1, regie.CallFailed, false},
		{"while a query waits", regie.ClassRead, errBusy, 1500 * time.Millisecond, 1, regie.CallFailed, true},
		{"while a keyed call waits that may have run", regie.ClassKeyed, errBusy, 1500 * time.Millisecond, 1, regie.CallUnknown, true},
		{"while a keyed call waits that did not run", regie.ClassKeyed, tool.NotDone{Err: errBusy}, 1500 * time.Millisecond, 1, regie.CallFailed, true},
		{"while a keyed call runs again", regie.ClassKeyed, errBusy, 3500 * time.Millisecond, 2, regie.CallUnknown, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				if row.after == 0 {
					cancel(errStop)
				}
				time.AfterFunc(row.after, func() { cancel(errStop) })
				started := time.Now()
				out, tries := tool.Attempt(ctx, newTrial(row.class, row.fail, row.fail, row.fail), &tool.Invocation{}, tool.Retry{Backoff: seconds})
				if took := time.Since(started); took != row.after {
					t.Errorf("ended after %s, the context after %s", took, row.after)
				}
				if tries != row.tries || out.State != row.state || out.Again != row.again {
					t.Errorf("%d tries, %s, again %v: %+v", tries, out.State, out.Again, out.Error)
				}
				if row.class == regie.ClassRead && row.again && !out.Error.Retryable {
					t.Error("a query that was not tried to the end must stay retryable")
				}
			})
		})
	}
}

// A tool that does not notice the end of its context is not run again either, however short the
// wait.
func TestAttemptDoesNotOutliveItsContext(t *testing.T) {
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		s := &scripted{definition: definition("a.b", regie.ClassRead), run: func(context.Context, *tool.Invocation) (tool.Result, error) {
			cancel()
			return tool.Result{}, errBusy
		}}
		out, tries := tool.Attempt(ctx, s, &tool.Invocation{}, tool.Retry{Backoff: func(int) time.Duration { return 0 }})
		if tries != 1 || out.State != regie.CallFailed || !out.Again {
			t.Fatalf("%d tries, %+v", tries, out)
		}
	}
}

func TestAttemptIsBounded(t *testing.T) {
	for _, row := range []struct {
		name  string
		retry tool.Retry
		tries int
		took  time.Duration
	}{
		{"by the number", tool.Retry{Max: 5, Backoff: seconds}, 5, (5 + 2 + 3 + 4 + 5) * time.Second},
		{"once is once", tool.Retry{Max: 1, Backoff: seconds}, 1, time.Second},
		// 1, 2, 1, 3, 1; the next would start at 12
		{"by the time", tool.Retry{Max: 100, Backoff: seconds, Total: 8 * time.Second}, 3, 8 * time.Second},
		{"by the default of the time", tool.Retry{Max: 1000, Backoff: func(int) time.Duration { return time.Second }}, 31, 61 * time.Second},
		{"no wait is not waited for", tool.Retry{Backoff: func(int) time.Duration { return time.Hour }}, 1, time.Second},
		{"a negative wait makes no time", tool.Retry{Max: 9, Backoff: func(int) time.Duration { return -time.Hour }, Total: 2500 * time.Millisecond}, 3, 3 * time.Second},
		{"a negative wait is none", tool.Retry{Backoff: func(int) time.Duration { return -time.Hour }}, 3, 3 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fail := slices.Repeat([]error{errBusy}, 1000)
				started := time.Now()
				_, tries := tool.Attempt(t.Context(), newTrial(regie.ClassRead, fail...), &tool.Invocation{}, row.retry)
				if took := time.Since(started); tries != row.tries || took != row.took {
					t.Errorf("%d tries in %s, want %d in %s", tries, took, row.tries, row.took)
				}
			})
		})
	}
}

// The default backoff grows, and never two calls have to wait the same.
func TestAttemptBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := map[time.Duration]bool{}
		for range 20 {
			target := newTrial(regie.ClassRead, slices.Repeat([]error{errBusy}, 9)...)
			if _, tries := tool.Attempt(t.Context(), target, &tool.Invocation{}, tool.Retry{Max: 9}); tries != 9 {
				t.Fatalf("%d tries", tries)
			}
			for i, milliseconds := range []int{100, 200, 400, 800, 1600, 2500, 2500, 2500} {
				least := time.Duration(milliseconds) * time.Millisecond
				wait := target.at[i+1] - target.at[i] - time.Second
				if wait < least || wait > 2*least {
					t.Errorf("the wait before try %d was %s, not between %s and %s", i+2, wait, least, 2*least)
				}
				waits[wait] = true
			}
		}
		if len(waits) < 100 {
			t.Errorf("only %d different waits of 160: there is no jitter", len(waits))
		}
	})
}
