package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/regie-run/regie"
)

const (
	defaultTimeout = 10 * time.Second // spec 4.3
	grace          = 5 * time.Second  // decision 6: what a cancelled tool may still take
	defaultResult  = 32 << 10
)

// abandoned counts tools that did not return within their timeout and grace.
var abandoned atomic.Int64

// Abandoned returns how many tools of this process were given up because they ignored their context.
func Abandoned() int64 { return abandoned.Load() }

// Outcome is a call's one result, normalised (spec 4.3).
type Outcome struct {
	State    regie.CallState // SUCCEEDED, FAILED or UNKNOWN
	Result   string          // what the model reads
	Whole    string          // the whole result where Result is a shortened one
	Error    *regie.CallError
	Duration time.Duration
}

// Prepare lets a tool record its evidence before it starts. A failure means that nothing happened and nothing will.
func Prepare(ctx context.Context, t Tool, inv *Invocation) (json.RawMessage, *regie.CallError) {
	preparer, ok := t.(Preparer)
	if !ok {
		return nil, nil
	}
	intent, err := attempt(ctx, t, func(ctx context.Context) (json.RawMessage, error) { return preparer.Prepare(ctx, inv) })
	if err != nil {
		return nil, callError(err)
	}
	return intent, nil
}

// Run performs a call whose intent is stored and names its outcome. A query fails with any error. An action is FAILED only where
// the tool knows that nothing happened; else a probe tells, or its outcome is UNKNOWN (decision 5).
func Run(ctx context.Context, t Tool, inv *Invocation) Outcome {
	definition := t.Definition()
	started := time.Now()
	result, err := attempt(ctx, t, func(ctx context.Context) (Result, error) { return t.Run(ctx, inv) })
	out := conclude(definition, result, err)
	if err != nil && definition.Class == regie.ClassVerifiable && out.State == regie.CallUnknown {
		out = afterFailure(context.WithoutCancel(ctx), t, inv, out)
	}
	out.Duration = time.Since(started)
	return out
}

// conclude names the outcome of one attempt.
func conclude(definition regie.ToolDefinition, result Result, err error) Outcome {
	var notDone NotDone
	switch {
	case err == nil:
		return succeeded(definition, result)
	case definition.Kind == regie.KindQuery, errors.As(err, &notDone):
		return Outcome{State: regie.CallFailed, Error: callError(err)}
	case definition.Class == regie.ClassKeyed || definition.Class == regie.ClassRead:
		problem := callError(err)
		problem.Retryable = true
		return Outcome{State: regie.CallUnknown, Error: unknown(problem.Message)}
	default:
		return Outcome{State: regie.CallUnknown, Error: unknown(callError(err).Message)}
	}
}

// afterFailure looks up what a failed action of class verifiable has done.
func afterFailure(ctx context.Context, t Tool, inv *Invocation, out Outcome) Outcome {
	evidence, probed := Probe(ctx, t, inv)
	switch evidence {
	case Happened:
		return probed
	case NotHappened:
		problem := *out.Error
		problem.Code, problem.Hint, problem.Retryable = regie.CodeToolError, "it was checked that nothing happened", true
		return Outcome{State: regie.CallFailed, Error: &problem}
	default:
		return out
	}
}

// Probe asks a tool of class verifiable whether a call's effect happened; the outcome is set where it did.
func Probe(ctx context.Context, t Tool, inv *Invocation) (Evidence, Outcome) {
	prober, ok := t.(Prober)
	if !ok {
		return Unsure, Outcome{}
	}
	type finding struct {
		evidence Evidence
		result   Result
	}
	started := time.Now()
	found, err := attempt(ctx, t, func(ctx context.Context) (finding, error) {
		evidence, result, err := prober.Probe(ctx, inv)
		return finding{evidence, result}, err
	})
	if err != nil {
		return Unsure, Outcome{}
	}
	if found.evidence != Happened {
		return found.evidence, Outcome{}
	}
	out := succeeded(t.Definition(), found.result)
	out.Duration = time.Since(started)
	return Happened, out
}

// attempt runs fn within the tool's timeout and turns a panic into an error. What fn returns is handed over whole, so that an
// abandoned fn shares nothing with its caller.
func attempt[T any](ctx context.Context, t Tool, fn func(context.Context) (T, error)) (T, error) {
	type returned struct {
		value T
		err   error
	}
	timeout := t.Definition().Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, regie.Errorf(regie.CodeTimeout, "it took longer than %s", timeout))
	defer cancel()
	done := make(chan returned, 1)
	go func() {
		var out returned
		defer func() {
			if r := recover(); r != nil {
				out.err = regie.Errorf(regie.CodeToolError, "the tool panicked: %s", clip(fmt.Sprint(r), 200)+panicSite())
			}
			done <- out
		}()
		out.value, out.err = fn(ctx)
	}()
	select {
	case out := <-done:
		return out.value, explain(ctx, out.err)
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case out := <-done:
		return out.value, explain(ctx, out.err)
	case <-timer.C:
		abandoned.Add(1)
		var none T
		return none, context.Cause(ctx)
	}
}

// explain names the cause where a tool only says that its context ended.
func explain(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		var notDone NotDone
		if errors.As(err, &notDone) {
			return NotDone{context.Cause(ctx)}
		}
		return context.Cause(ctx)
	}
	return err
}

// panicSite names the function that panicked, without a whole stack in what a model reads.
func panicSite() string {
	lines := strings.Split(string(debug.Stack()), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic(") && i+2 < len(lines) {
			return " in " + clip(lines[i+2], 120)
		}
	}
	return ""
}

func callError(err error) *regie.CallError {
	out := &regie.CallError{Code: regie.CodeToolError, Message: clean(err.Error(), 2000)}
	var coded *regie.Error
	if errors.As(err, &coded) {
		out.Code = coded.Code
	}
	switch out.Code {
	case regie.CodeTimeout, regie.CodeFileChanged, regie.CodeBadArguments, regie.CodeFileNotFound, regie.CodeFileExists:
		out.Retryable = true
	}
	return out
}

func unknown(what string) *regie.CallError {
	return &regie.CallError{Code: regie.CodeOutcomeUnknown, Message: "outcome unknown: " + what, Hint: "verify before you try again"}
}

// succeeded bounds what the model reads of a result (spec 3.2).
func succeeded(definition regie.ToolDefinition, result Result) Outcome {
	bound := definition.MaxResult
	if bound == 0 {
		bound = defaultResult
	}
	whole := clean(result.Content, len(result.Content)*3)
	if len(whole) <= bound {
		return Outcome{State: regie.CallSucceeded, Result: whole}
	}
	cut := bound
	for cut > 0 && !utf8.RuneStart(whole[cut]) {
		cut--
	}
	shown := whole[:cut] + fmt.Sprintf("\n[shortened: %d of %d bytes shown; ask for a part of it]", cut, len(whole))
	return Outcome{State: regie.CallSucceeded, Result: shown, Whole: whole}
}

// clean makes text that can be stored and sent anywhere: valid UTF-8 without NUL, at most n bytes.
func clean(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
