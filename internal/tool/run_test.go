package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

var errPlain = errors.New("the connection broke")

// failures are the ways in which a tool can end without a result.
var failures = map[string]func(ctx context.Context) error{
	"plain":    func(context.Context) error { return errPlain },
	"coded":    func(context.Context) error { return regie.Errorf(regie.CodeDiskFull, "the disk is full") },
	"not done": func(context.Context) error { return tool.NotDone{Err: errPlain} },
	"wrapped not done": func(context.Context) error {
		return fmt.Errorf("sending: %w", tool.NotDone{Err: regie.Errorf(regie.CodeProviderOffline, "refused")})
	},
	"panic":   func(context.Context) error { panic("index out of range") },
	"goexit":  func(context.Context) error { runtime.Goexit(); return nil },
	"timeout": func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("reading: %w", ctx.Err()) },
	"timeout, not done": func(ctx context.Context) error {
		<-ctx.Done()
		return tool.NotDone{Err: ctx.Err()}
	},
}

func TestRunOutcomes(t *testing.T) {
	type want struct {
		state regie.CallState
		code  regie.Code
		again bool
	}
	unknown := want{regie.CallUnknown, regie.CodeOutcomeUnknown, false}
	repeat := want{regie.CallUnknown, regie.CodeOutcomeUnknown, true}
	failed := func(code regie.Code, again bool) want { return want{regie.CallFailed, code, again} }
	plain, full, offline, late := regie.CodeToolError, regie.CodeDiskFull, regie.CodeProviderOffline, regie.CodeTimeout
	for class, rows := range map[regie.EffectClass]map[string]want{
		regie.ClassRead: {
			"plain": failed(plain, false), "coded": failed(full, false), "not done": failed(plain, false), "wrapped not done": failed(offline, true),
			"panic": failed(plain, false), "goexit": failed(plain, false), "timeout": failed(late, true), "timeout, not done": failed(late, true),
		},
		regie.ClassKeyed: {
			"plain": repeat, "coded": repeat, "not done": failed(plain, false), "wrapped not done": failed(offline, true),
			"panic": repeat, "goexit": repeat, "timeout": repeat, "timeout, not done": failed(late, true),
		},
		regie.ClassResumable: {
			"plain": repeat, "coded": repeat, "not done": failed(plain, false), "wrapped not done": failed(offline, false),
			"panic": repeat, "goexit": repeat, "timeout": repeat, "timeout, not done": failed(late, false),
		},
		regie.ClassOnce: {
			"plain": unknown, "coded": unknown, "not done": failed(plain, false), "wrapped not done": failed(offline, false),
			"panic": unknown, "goexit": unknown, "timeout": unknown, "timeout, not done": failed(late, false),
		},
	} {
		for failure, fail := range failures {
			t.Run(fmt.Sprintf("%s/%s", class, failure), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &scripted{definition: definition("a.b", class), run: func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
						return tool.Result{Content: "never seen"}, fail(ctx)
					}}
					out := tool.Run(t.Context(), s, &tool.Invocation{})
					if got := (want{out.State, out.Error.Code, out.Again}); got != rows[failure] || out.Result != "" || out.Error.Message == "" {
						t.Errorf("got %+v %+v, want %+v", got, out.Error, rows[failure])
					}
				})
			})
		}
	}
}

// An action with a probe has the outcome that the probe finds.
func TestRunLooksUp(t *testing.T) {
	type finding struct {
		evidence tool.Evidence
		err      error
	}
	for _, row := range []struct {
		failure string
		found   finding
		state   regie.CallState
		code    regie.Code
	}{
		{"plain", finding{tool.Happened, nil}, regie.CallSucceeded, ""},
		{"plain", finding{tool.NotHappened, nil}, regie.CallFailed, regie.CodeToolError},
		{"coded", finding{tool.NotHappened, nil}, regie.CallFailed, regie.CodeDiskFull},
		{"plain", finding{tool.Unsure, nil}, regie.CallUnknown, regie.CodeOutcomeUnknown},
		{"plain", finding{"MAYBE", nil}, regie.CallUnknown, regie.CodeOutcomeUnknown},
		{"plain", finding{tool.Happened, errPlain}, regie.CallUnknown, regie.CodeOutcomeUnknown},
		{"panic", finding{tool.Happened, nil}, regie.CallSucceeded, ""},
		{"timeout", finding{tool.NotHappened, nil}, regie.CallFailed, regie.CodeTimeout},
		{"timeout", finding{tool.Happened, nil}, regie.CallSucceeded, ""},
		// the tool's own word; the probe is not asked
		{"not done", finding{tool.Happened, nil}, regie.CallFailed, regie.CodeToolError},
	} {
		t.Run(fmt.Sprintf("%s/%s", row.failure, row.found.evidence), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &probed{
					scripted: scripted{
						definition: definition("a.b", regie.ClassVerifiable),
						run: func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
							return tool.Result{}, failures[row.failure](ctx)
						},
					},
					probe: func(context.Context, *tool.Invocation) (tool.Evidence, tool.Result, error) {
						return row.found.evidence, tool.Result{Content: "done"}, row.found.err
					},
				}
				out := tool.Run(t.Context(), p, &tool.Invocation{})
				code := regie.Code("")
				if out.Error != nil {
					code = out.Error.Code
				}
				if out.State != row.state || code != row.code || (row.state == regie.CallSucceeded) != (out.Result == "done") {
					t.Errorf("got %+v %+v", out, out.Error)
				}
			})
		})
	}
}

// NotDone speaks of one attempt: it proves nothing about an earlier one under the same key.
func TestRunRepeated(t *testing.T) {
	for class, want := range map[regie.EffectClass]regie.CallState{
		regie.ClassRead: regie.CallFailed, regie.ClassKeyed: regie.CallUnknown, regie.ClassOnce: regie.CallUnknown, regie.ClassResumable: regie.CallUnknown,
	} {
		s := &scripted{definition: definition("a.b", class), run: func(context.Context, *tool.Invocation) (tool.Result, error) {
			return tool.Result{}, tool.NotDone{Err: errPlain}
		}}
		if out := tool.Run(t.Context(), s, &tool.Invocation{Repeated: true}); out.State != want || out.Unreached != nil {
			t.Errorf("%s: %+v", class, out)
		}
	}
}

// A repeated call that was not even sent, because its server is down for now, can be repeated
// later.
func TestRunUnreached(t *testing.T) {
	for _, row := range []struct {
		class     regie.EffectClass
		repeated  bool
		err       error
		unreached bool
	}{
		{regie.ClassKeyed, true, tool.NotDone{Err: regie.Errorf(regie.CodeServerDown, "down")}, true},
		{regie.ClassKeyed, true, tool.NotDone{Err: regie.Errorf(regie.CodeToolChanged, "changed")}, false},
		{regie.ClassKeyed, true, regie.Errorf(regie.CodeServerLost, "lost"), false},
		// it is FAILED: nothing happened
		{regie.ClassKeyed, false, tool.NotDone{Err: regie.Errorf(regie.CodeServerDown, "down")}, false},
		{regie.ClassRead, true, tool.NotDone{Err: regie.Errorf(regie.CodeServerDown, "down")}, false},
	} {
		s := &scripted{definition: definition("a.b", row.class), run: func(context.Context, *tool.Invocation) (tool.Result, error) {
			return tool.Result{}, row.err
		}}
		out := tool.Run(t.Context(), s, &tool.Invocation{Repeated: row.repeated})
		if (out.Unreached != nil) != row.unreached || row.unreached && out.State != regie.CallUnknown {
			t.Errorf("%s, %v: %+v", row.class, row.err, out)
		}
	}
}

// A tool that ignores its context does not hold the round. While it may still be at work, a probe
// that finds nothing proves nothing.
func TestRunAbandons(t *testing.T) {
	for _, row := range []struct {
		class regie.EffectClass
		found tool.Evidence
		want  regie.CallState
	}{
		{regie.ClassRead, "", regie.CallFailed},
		{regie.ClassKeyed, "", regie.CallUnknown},
		{regie.ClassOnce, "", regie.CallUnknown},
		{regie.ClassVerifiable, tool.Happened, regie.CallSucceeded},
		{regie.ClassVerifiable, tool.NotHappened, regie.CallUnknown},
	} {
		t.Run(fmt.Sprintf("%s%s", row.class, row.found), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				s := scripted{definition: definition("a.b", row.class), run: func(context.Context, *tool.Invocation) (tool.Result, error) {
					<-release
					return tool.Result{Content: "late"}, nil
				}}
				s.definition.Timeout = 3 * time.Second
				var target tool.Tool = &s
				if row.class == regie.ClassVerifiable {
					target = &probed{scripted: s, probe: func(context.Context, *tool.Invocation) (tool.Evidence, tool.Result, error) {
						return row.found, tool.Result{}, nil
					}}
				}
				out := tool.Run(t.Context(), target, &tool.Invocation{})
				if out.State != row.want || out.Again || out.Duration != 8*time.Second {
					t.Errorf("got %+v after %s", out, out.Duration)
				}
				if out.Error != nil && !strings.Contains(out.Error.Message, "may still be at work") {
					t.Errorf("nobody is told that it may still be at work: %q", out.Error.Message)
				}
			})
		})
	}
}

func TestRunWithinGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{definition: definition("a.b", regie.ClassOnce), run: func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
			<-ctx.Done()
			time.Sleep(4 * time.Second) // in the bubble's time
			return tool.Result{Content: "sent"}, nil
		}}
		out := tool.Run(t.Context(), s, &tool.Invocation{})
		if out.State != regie.CallSucceeded || out.Result != "sent" || out.Duration != 14*time.Second {
			t.Errorf("got %+v", out)
		}
	})
}

func TestRunCancelled(t *testing.T) {
	word := regie.Errorf(regie.CodeStopRequested, "stopped by the person")
	for _, cause := range []error{word, nil} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			s := &scripted{definition: definition("a.b", regie.ClassRead), run: func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
				cancel(cause)
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}}
			if out := tool.Run(ctx, s, &tool.Invocation{}); out.State != regie.CallFailed || out.Error.Code != regie.CodeStopRequested {
				t.Errorf("got %+v", out.Error)
			}
			// What is cancelled before it starts did not happen, whatever its class.
			for _, class := range []regie.EffectClass{regie.ClassRead, regie.ClassKeyed, regie.ClassOnce, regie.ClassVerifiable} {
				out := tool.Run(ctx, idle("a.b", class), &tool.Invocation{})
				if out.State != regie.CallFailed || out.Error.Code != regie.CodeStopRequested {
					t.Errorf("%s: %+v", class, out)
				}
			}
			_, problem := tool.Prepare(ctx, idle("a.b", regie.ClassVerifiable), &tool.Invocation{})
			if problem == nil || problem.Code != regie.CodeStopRequested {
				t.Errorf("prepared: %+v", problem)
			}
		})
	}
}

func TestResults(t *testing.T) {
	shortened := regie.NewID()
	for _, row := range []struct {
		name    string
		result  tool.Result
		max     int
		want    string
		shorter bool
	}{
		{"as it is", tool.Result{Content: "äöü"}, 0, "äöü", false},
		{"NUL and bad bytes", tool.Result{Content: "a\x00b\xff\xfec"}, 0, "a\uFFFDb\uFFFDc", false},
		{"exactly", tool.Result{Content: strings.Repeat("x", 100)}, 100, strings.Repeat("x", 100), false},
		{
			"cut between characters",
			tool.Result{Content: strings.Repeat("é", 100), Rest: "go on with part 2"},
			100,
			strings.Repeat("é", 22) + "\n[shortened: 44 of 200 bytes shown; go on with part 2]", true,
		},
		{
			"the rest by the call's id",
			tool.Result{Content: strings.Repeat("é", 100)},
			163,
			strings.Repeat("é", 16) + "\n[shortened: 32 of 200 bytes shown; read on with session__read_result, call_id \"" + shortened.String() + "\", offset 32]", true,
		},
		{"default bound", tool.Result{Content: strings.Repeat("x", 40<<10)}, 0, "", true},
		{
			"less room than the marker",
			tool.Result{Content: strings.Repeat("x", 100)},
			10, "\n[shortened: 0 of 100 bytes shown; read on with session__read_result, call_id \"" + shortened.String() + "\", offset 0]",
			true,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &scripted{
				definition: definition("a.b", regie.ClassRead),
				run:        func(context.Context, *tool.Invocation) (tool.Result, error) { return row.result, nil },
			}
			s.definition.MaxResult = row.max
			out := tool.Run(t.Context(), s, &tool.Invocation{CallID: shortened})
			if row.want != "" && out.Result != row.want || !storable(out.Result) || row.max > 60 && len(out.Result) > row.max || len(out.Result) > 32<<10 {
				t.Errorf("%d bytes: %.200q", len(out.Result), out.Result)
			}
			lost := out.Unkept(regie.Errorf(regie.CodeDiskFull, "the disk is full"))
			if row.max > 160 && len(lost) > row.max || row.shorter && (strings.Contains(lost, "read_result") || !strings.Contains(lost, "the rest is lost, because it could not be stored (the disk is full)")) {
				t.Errorf("not stored it is %d bytes: %.300q", len(lost), lost)
			}
			if !row.shorter && lost != out.Result {
				t.Errorf("not stored it is %q", lost)
			}
			if row.shorter != (out.Whole != "") || row.shorter && out.Whole != row.result.Content {
				t.Errorf("the whole has %d bytes", len(out.Whole))
			}
		})
	}
}

func TestErrorsAreNormalised(t *testing.T) {
	run := func(err error) *regie.CallError {
		s := &scripted{
			definition: definition("a.b", regie.ClassRead),
			run:        func(context.Context, *tool.Invocation) (tool.Result, error) { return tool.Result{}, err },
		}
		return tool.Run(t.Context(), s, &tool.Invocation{}).Error
	}
	advised := tool.NotDone{Err: tool.Advice{
		Err:   fmt.Errorf("opening: %w", regie.Errorf(regie.CodeFileNotFound, "%s does not exist", "a")),
		Param: "path", Hint: "list it",
	}}
	if got, want := *run(advised), (regie.CallError{
		Code: regie.CodeFileNotFound, Message: "opening: a does not exist", Param: "path", Hint: "list it",
		Retryable: true,
	}); got != want {
		t.Errorf("got %+v", got)
	}
	got := run(errors.New("\x00" + strings.Repeat("é", 4000) + "\xff"))
	if got.Code != regie.CodeToolError || !storable(got.Message) || len(got.Message) > 2000 || got.Retryable {
		t.Errorf("got %d bytes, %+v", len(got.Message), got)
	}
	if got := run(regie.Errorf(regie.CodePathOutside, "no")); got.Retryable {
		t.Errorf("a path that leads out is retryable")
	}
}

func TestPrepare(t *testing.T) {
	p := &probed{scripted: scripted{definition: definition("a.b", regie.ClassVerifiable)}}
	var nothing any
	for name, row := range map[string]struct {
		prepare func(context.Context, *tool.Invocation) (json.RawMessage, error)
		code    regie.Code
	}{
		"evidence": {func(context.Context, *tool.Invocation) (json.RawMessage, error) {
			return json.RawMessage(`{"a":1}`), nil
		}, ""},
		"none":     {func(context.Context, *tool.Invocation) (json.RawMessage, error) { return nil, nil }, ""},
		"not JSON": {func(context.Context, *tool.Invocation) (json.RawMessage, error) { return json.RawMessage(`{`), nil }, regie.CodeToolError},
		"failed": {func(context.Context, *tool.Invocation) (json.RawMessage, error) {
			return nil, regie.Errorf(regie.CodeFileExists, "it is there")
		}, regie.CodeFileExists},
		"panic":        {func(context.Context, *tool.Invocation) (json.RawMessage, error) { panic(errPlain) }, regie.CodeToolError},
		"panic of nil": {func(context.Context, *tool.Invocation) (json.RawMessage, error) { panic(nothing) }, regie.CodeToolError},
	} {
		p.prepare = row.prepare
		_, problem := tool.Prepare(t.Context(), p, &tool.Invocation{})
		if (problem == nil) != (row.code == "") || problem != nil && problem.Code != row.code {
			t.Errorf("%s: %+v", name, problem)
		}
	}
	if intent, problem := tool.Prepare(t.Context(), idle("a.b", regie.ClassOnce), &tool.Invocation{}); intent != nil || problem != nil {
		t.Errorf("a tool without evidence gives %s %+v", intent, problem)
	}
	if evidence, _ := tool.Probe(t.Context(), idle("a.b", regie.ClassOnce), &tool.Invocation{}); evidence != tool.Unsure {
		t.Errorf("a tool without a probe is %s", evidence)
	}
}

func BenchmarkRun(b *testing.B) {
	target := idle("a.b", regie.ClassRead)
	b.ReportAllocs()
	for b.Loop() {
		tool.Run(b.Context(), target, &tool.Invocation{})
	}
}
