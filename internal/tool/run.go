package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
)

const (
	defaultTimeout = 10 * time.Second // spec 4.3
	grace          = 5 * time.Second  // decision 6: what a cancelled tool may still take
)

// Outcome is a call's one result, normalised (spec 4.3).
type Outcome struct {
	State  regie.CallState // SUCCEEDED, FAILED or UNKNOWN
	Result string          // what the model reads
	Whole  string          // the whole result where Result is a shortened one
	Error  *regie.CallError
	// Again says that the attempt failed and that the call may be repeated under its id: a read
	// with a transient failure, or a keyed call. A keyed call that is not repeated stays UNKNOWN:
	// the model's own repetition would have another key.
	Again bool
	// Unreached says of an UNKNOWN why the last attempt did nothing, where that may pass: what is
	// not known is what an attempt before it did. The call may be run again under its id, and is
	// not worse for waiting.
	Unreached error
	Duration  time.Duration
	// Changed is what it made of files, of a tool with Track.
	Changed json.RawMessage
	// passing says that the failure is transient: Attempt waits.
	passing bool
}

// Prepare lets a tool record its evidence before it starts (decision 20). A failure means that
// nothing happened and nothing will.
func Prepare(ctx context.Context, t Tool, inv *Invocation) (json.RawMessage, *regie.CallError) {
	prepare := SidesOf(t).Prepare
	if prepare == nil {
		return nil, nil
	}
	masked, flush := inv.Mask.maskInvocation(inv)
	a := runAttempt(ctx, inv.timeout(t), func(ctx context.Context) (json.RawMessage, error) {
		return prepare(ctx, masked)
	})
	flush()
	switch {
	case a.err != nil:
		return nil, inv.Mask.maskCallError(callError(inv.Mask.maskError(a.err)))
	case len(a.value) > 0 && !json.Valid(a.value):
		return nil, callError(regie.Errorf(regie.CodeToolError, "the tool's evidence is not JSON"))
	}
	return a.value, nil
}

// Run performs a call with a stored intent and returns its outcome. A read fails with any error. An
// action is FAILED only where the tool knows that nothing happened; else a probe decides, or its
// outcome is UNKNOWN (decision 5).
func Run(ctx context.Context, t Tool, inv *Invocation) Outcome {
	definition := t.Definition()
	started := time.Now()
	masked, flush := inv.Mask.maskInvocation(inv)
	a := runAttempt(ctx, inv.timeout(t), func(ctx context.Context) (Result, error) { return t.Run(ctx, masked) })
	flush()
	a.err = inv.Mask.maskError(a.err)
	_, notDone := errors.AsType[NotDone](a.err)
	var tracked Tracked
	if !notDone {
		tracked = Track(context.WithoutCancel(ctx), t, inv)
	}
	a.value.Content = inv.Mask.Text(a.value.Content) + tracked.Told
	var out Outcome
	switch {
	case a.err == nil:
		out = successOutcome(inv.bound(definition), inv.CallID, a.value)
	case definition.Class == regie.ClassRead:
		out = Outcome{State: regie.CallFailed, Error: callError(a.err), Again: !a.lost && isTransient(a.err)}
	case notDone && !inv.Repeated:
		out = Outcome{
			State: regie.CallFailed, Error: callError(a.err),
			Again: definition.Class == regie.ClassKeyed && isTransient(a.err),
		}
	case definition.Class == regie.ClassVerifiable:
		out = lookUp(context.WithoutCancel(ctx), t, inv, a.err, a.lost)
	default:
		out = unknownOutcome(a.err)
		out.Error.Message += describeTracked(tracked)
		if notDone && isTransient(a.err) {
			out.Unreached = a.err
		}
		out.Again = !a.lost && (definition.Class == regie.ClassKeyed || definition.Class == regie.ClassResumable)
	}
	inv.Mask.maskCallError(out.Error)
	out.Duration, out.passing, out.Changed = time.Since(started), mayPass(a.err), tracked.Changed
	return out
}

// Track asks a tool what a call has changed. If it cannot tell, the result says so, and no undo
// includes the changes.
func Track(ctx context.Context, t Tool, inv *Invocation) Tracked {
	track := SidesOf(t).Track
	if track == nil {
		return Tracked{}
	}
	masked, flush := inv.Mask.maskInvocation(inv)
	a := runAttempt(ctx, timeoutOf(t), func(ctx context.Context) (Tracked, error) { return track(ctx, masked) })
	flush()
	a.err, a.value.Told = inv.Mask.maskError(a.err), inv.Mask.Text(a.value.Told)
	if a.err == nil && len(a.value.Changed) > 0 && !json.Valid(a.value.Changed) {
		a.err = regie.Errorf(regie.CodeToolError, "the tool's evidence is not JSON")
	}
	if a.err != nil {
		return Tracked{Told: "what it changed in files is not known, so no undo covers it: " +
			cleanText(a.err.Error(), 300) + "\n"}
	}
	return a.value
}

// describeTracked returns what was changed, behind an error.
func describeTracked(t Tracked) string {
	if t.Told == "" {
		return ""
	}
	return "\n" + cleanText(strings.TrimRight(t.Told, "\n"), maxMessage)
}

// TrackLost asks what a call of a dead process has changed, and adds the findings to its error.
func TrackLost(ctx context.Context, t Tool, inv *Invocation, problem *regie.CallError) json.RawMessage {
	tracked := Track(ctx, t, inv)
	problem.Message += describeTracked(tracked)
	return tracked.Changed
}

// lookUp asks what a failed action of class verifiable has done. While a lost attempt may still be
// running, finding nothing proves nothing.
func lookUp(ctx context.Context, t Tool, inv *Invocation, failure error, lost bool) Outcome {
	evidence, probed := Probe(ctx, t, inv)
	switch {
	case evidence == Happened:
		return probed
	case evidence == NotHappened && !lost:
		problem := callError(failure)
		if problem.Hint == "" {
			problem.Hint = "it was checked that nothing happened"
		}
		return Outcome{State: regie.CallFailed, Error: problem}
	default:
		return unknownOutcome(failure)
	}
}

// Probe asks a tool of class verifiable whether a call's effect happened (spec 12.2); the outcome
// is set where it did.
func Probe(ctx context.Context, t Tool, inv *Invocation) (Evidence, Outcome) {
	probe := SidesOf(t).Probe
	if probe == nil {
		return Unsure, Outcome{}
	}
	type finding struct {
		evidence Evidence
		result   Result
	}
	started := time.Now()
	a := runAttempt(ctx, timeoutOf(t), func(ctx context.Context) (finding, error) {
		evidence, result, err := probe(ctx, inv)
		result.Content = inv.Mask.Text(result.Content)
		return finding{evidence, result}, err
	})
	switch {
	case a.err != nil:
		return Unsure, Outcome{}
	case a.value.evidence == NotHappened:
		return NotHappened, Outcome{}
	case a.value.evidence != Happened:
		return Unsure, Outcome{}
	}
	out := successOutcome(inv.bound(t.Definition()), inv.CallID, a.value.result)
	out.Duration = time.Since(started)
	return Happened, out
}

// attempted is what came of running a tool's code once.
type attempted[T any] struct {
	value T
	err   error
	lost  bool // the code is still running; it was given up
}

// timeoutOf returns what one attempt of a tool may take (spec 4.3).
func timeoutOf(t Tool) time.Duration {
	if timeout := t.Definition().Timeout; timeout > 0 {
		return timeout
	}
	return defaultTimeout
}

// timeout returns what one attempt of a call may take.
func (inv *Invocation) timeout(t Tool) time.Duration {
	if timeout := timeoutOf(t); inv.Timeout <= 0 || timeout < inv.Timeout {
		return timeout
	}
	return inv.Timeout
}

// bound returns a tool's definition with the call's own bound of its result.
func (inv *Invocation) bound(d regie.ToolDefinition) regie.ToolDefinition {
	if most := cmp.Or(max(0, d.MaxResult), defaultResult); inv.MaxResult > 0 && inv.MaxResult < most {
		d.MaxResult = inv.MaxResult
	}
	return d
}

// runAttempt runs fn within the timeout and turns a panic into an error. What fn returns is handed
// over whole, so that an abandoned fn shares nothing with its caller. Where the context has ended
// before, fn is not run: nothing happened.
func runAttempt[T any](ctx context.Context, timeout time.Duration, fn func(context.Context) (T, error)) attempted[T] {
	if ctx.Err() != nil {
		return attempted[T]{err: NotDone{explainError(ctx, ctx.Err())}}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, regie.Errorf(regie.CodeTimeout,
		"it took longer than %s", timeout))
	defer cancel()
	done := make(chan attempted[T], 1)
	go func() {
		// An exit by runtime.Goexit leaves this error in place.
		out := attempted[T]{err: regie.Errorf(regie.CodeToolError, "the tool gave up without a result")}
		defer func() {
			if r := recover(); r != nil {
				out.err = regie.Errorf(regie.CodeToolError, "the tool panicked: %s",
					sanitize.Clip(fmt.Sprint(r), 200))
			}
			done <- out
		}()
		out.value, out.err = fn(ctx)
	}()
	select {
	case out := <-done:
		out.err = explainError(ctx, out.err)
		return out
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case out := <-done:
		out.err = explainError(ctx, out.err)
		return out
	case <-timer.C:
		cause := explainError(ctx, ctx.Err())
		return attempted[T]{err: regie.Errorf(regie.CodeOf(cause),
			"%v, and does not end: it may still be at work", cause), lost: true}
	}
}

// explainError names the cause where a tool only says that its context ended.
func explainError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || !errors.Is(err, context.Canceled) &&
		!errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	cause := context.Cause(ctx)
	_, coded := errors.AsType[*regie.Error](cause)
	switch {
	case coded:
	case errors.Is(cause, context.DeadlineExceeded):
		cause = regie.Errorf(regie.CodeTimeout, "its time was over")
	default:
		cause = regie.Errorf(regie.CodeStopRequested, "it was stopped: %v", cause)
	}
	if _, ok := errors.AsType[NotDone](err); ok {
		return NotDone{cause}
	}
	return cause
}
