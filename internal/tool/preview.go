package tool

import (
	"bytes"
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
	previewTimeout = 10 * time.Second // a person waits for it, so it is not the tool's own timeout
	maxSaid        = 8 << 10          // bytes of one argument of a sentence: a path shown whole has room
	maxIndented    = 64 << 10         // bytes of arguments that are spread over lines
	maxBrief       = 160              // bytes of arguments that stand in the sentence itself
)

// DescribeCall makes the preview of a call for its approval (spec 4.2, 4.4). It never fails: it
// describes a tool without a preview, one that panics and one that takes too long by name and
// arguments. A refusal by the tool itself is returned with that description: then no approval is
// requested, and the call is settled as FAILED with it.
//
// For any tool, the sentences and the diff are valid UTF-8 in which nothing acts or hides, the diff
// has at most regie.MaxDiff bytes, and the first scope is "exactly these arguments" (decision 20).
//
// An invocation may assume the effects of the calls before it; the preview then is of that. A call
// that would be refused only because of those calls is shown without them: the person may want the
// one or the other.
func DescribeCall(ctx context.Context, t Tool, inv *Invocation) (regie.Preview, *regie.CallError) {
	p, problem := previewOf(ctx, t, inv)
	if problem == nil || len(inv.Assumed) == 0 {
		return p, problem
	}
	alone := *inv
	alone.Assumed = nil
	if without, refused := previewOf(ctx, t, &alone); refused == nil {
		without.Warnings = append(without.Warnings,
			sanitizeSentence(regie.Say("it can only run if the calls before it do not: after them, %s",
				problem.Message)))
		return without, nil
	}
	return p, problem
}

func previewOf(ctx context.Context, t Tool, inv *Invocation) (regie.Preview, *regie.CallError) {
	preview := SidesOf(t).Preview
	if preview == nil {
		return finishPreview(t, inv, genericPreview(t, inv)), nil
	}
	a := runAttempt(ctx, min(previewTimeout, timeoutOf(t)), func(ctx context.Context) (regie.Preview, error) {
		return preview(ctx, inv)
	})
	a.value, a.err = inv.Mask.maskPreview(a.value), inv.Mask.maskError(a.err)
	switch {
	case a.err == nil && !a.value.Sentence.IsZero():
		return finishPreview(t, inv, a.value), nil
	case isRefusal(a.err):
		return finishPreview(t, inv, genericPreview(t, inv)), inv.Mask.maskCallError(callError(a.err))
	}
	p := genericPreview(t, inv)
	if a.err != nil {
		p.Warnings = append(p.Warnings, regie.Say("the tool could not show what the call would do: %s",
			callError(a.err).Message))
	}
	return finishPreview(t, inv, p), nil
}

// isRefusal tells a tool's own refusal, which its Run would repeat, from a preview that did not
// succeed for a reason of its own.
func isRefusal(err error) bool {
	coded, ok := errors.AsType[*regie.Error](err)
	if !ok || isTransient(err) {
		return false
	}
	switch coded.Code {
	case regie.CodeToolError, regie.CodeStopRequested, regie.CodeInternal:
		return false
	default:
		return true
	}
}

// CheckPreconditions compares the world with what a preview showed (decision 20). It returns nil
// where all is as it was, CodeStalePreview where it is not, and the tool's error where that cannot
// be told; with any error the call must not run.
func CheckPreconditions(ctx context.Context, t Tool, inv *Invocation, preconditions []regie.Precondition) error {
	if len(preconditions) == 0 {
		return nil
	}
	check := SidesOf(t).CheckPreconditions
	if check == nil {
		return regie.Errorf(regie.CodeStalePreview,
			"the tool can no longer check what the preview showed: look at the call again")
	}
	a := runAttempt(ctx, min(previewTimeout, timeoutOf(t)), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, check(ctx, inv, preconditions)
	})
	return a.err
}

// MustAsk returns why a call needs a person's approval regardless of the rules (decision 19);
// nothing where its tool has no such calls. A tool that cannot decide needs one.
func MustAsk(ctx context.Context, t Tool, inv *Invocation) []regie.Sentence {
	mustAsk := SidesOf(t).MustAsk
	if mustAsk == nil {
		return nil
	}
	a := runAttempt(ctx, min(previewTimeout, timeoutOf(t)), func(ctx context.Context) ([]regie.Sentence, error) {
		return mustAsk(ctx, inv), nil
	})
	if a.err != nil {
		return []regie.Sentence{sanitizeSentence(regie.Say("the tool could not determine whether this call needs an approval: %s",
			callError(inv.Mask.maskError(a.err)).Message))}
	}
	for i := range a.value {
		a.value[i] = sanitizeSentence(inv.Mask.maskSentence(a.value[i]))
	}
	return a.value
}

// FlowOf returns what a call carries (decision 34). A tool that cannot tell carries everything.
func FlowOf(ctx context.Context, t Tool, inv *Invocation) Flow {
	flow := SidesOf(t).Flow
	if flow == nil {
		return Flow{}
	}
	a := runAttempt(ctx, min(previewTimeout, timeoutOf(t)),
		func(ctx context.Context) (Flow, error) { return flow(ctx, inv) })
	if a.err != nil {
		return Flow{Outside: true, Private: true, Egress: true}
	}
	return a.value
}

// Command returns what rules and modes compare of a call that runs commands; runs is false for a
// tool that runs none.
func Command(ctx context.Context, t Tool, inv *Invocation) (line CommandLine, runs bool) {
	commandOf := SidesOf(t).Command
	if commandOf == nil {
		return CommandLine{}, false
	}
	a := runAttempt(ctx, min(previewTimeout, timeoutOf(t)), func(ctx context.Context) (CommandLine, error) {
		return commandOf(ctx, inv), nil
	})
	if a.err != nil { // it may be any command, so no rule allows it
		return CommandLine{Network: true}, true
	}
	return a.value, true
}

// genericPreview describes a call by its name and arguments: the inbox shows only sentences, which
// must tell two calls of one tool apart.
func genericPreview(t Tool, inv *Invocation) regie.Preview {
	p := regie.Preview{Diff: indentArguments(inv.Arguments)}
	name, brief := t.Definition().Name, inv.Arguments
	var compact bytes.Buffer
	switch {
	case len(bytes.TrimSpace(brief)) == 0:
		brief = []byte("{}")
	case len(brief) <= maxIndented && json.Compact(&compact, brief) == nil:
		brief = compact.Bytes()
	}
	p.Sentence = regie.Say("call %s with %s", name, string(brief))
	if len(brief) > maxBrief {
		p.Sentence = regie.Say("call %s with %s… (%s bytes in all)", name,
			sanitize.Clip(string(brief), maxBrief), fmt.Sprint(len(brief)))
	}
	return p
}

// indentArguments writes arguments for a reader. What is hidden stays JSON: it is written as an
// escape.
func indentArguments(arguments []byte) string {
	if len(bytes.TrimSpace(arguments)) == 0 {
		return "{}\n"
	}
	var out bytes.Buffer
	// Deeply nested ones grow by more than a hundred bytes a line, so only what is shown anyway is
	// spread over lines.
	if len(arguments) > maxIndented || json.Indent(&out, arguments, "", "  ") != nil {
		out.Reset()
		out.Write(arguments)
	}
	out.WriteByte('\n')
	return sanitize.JSON(out.String())
}

// finishPreview makes any preview safe to store and to show.
func finishPreview(t Tool, inv *Invocation, p regie.Preview) regie.Preview {
	name := t.Definition().Name
	p.Sentence = sanitizeSentence(p.Sentence)
	p.Warnings = append([]regie.Sentence(nil), p.Warnings...)
	warnChained(inv, &p)
	for i, warning := range p.Warnings {
		p.Warnings[i] = sanitizeSentence(warning)
	}
	var whole int
	if p.Diff, whole = truncateDiff(p.Diff); whole > 0 {
		p.Warnings = append(p.Warnings, regie.Say("only a part is shown: the whole has %s bytes", fmt.Sprint(whole)))
	}
	// as they came, where they are not strict JSON: so is their signature
	canonical, _ := canonicalJSON(string(inv.Arguments))
	scopes := []regie.Scope{{
		Tool: name, Kind: regie.ScopeExact, Value: signCall(name, canonical).String(),
		Sentence: regie.Say("%s with exactly these arguments", name),
	}}
	for _, scope := range p.Scopes {
		scope.Tool = name // an answer about one tool never covers another
		scope.Sentence = sanitizeSentence(scope.Sentence)
		scopes = append(scopes, scope)
	}
	if p.Scopes = scopes; p.Once {
		p.Scopes = nil
	}
	return p
}

// sanitizeSentence makes a sentence's arguments visible and bounds them. The format is the
// program's own.
func sanitizeSentence(s regie.Sentence) regie.Sentence {
	args := make([]string, len(s.Args))
	for i, arg := range s.Args {
		args[i] = sanitize.Line(sanitize.Spaces(sanitize.Clip(arg, maxSaid)))
		if len(arg) > maxSaid {
			args[i] += "…"
		}
	}
	s.Args = args
	return s
}

// truncateDiff makes a diff visible and bounds it. The second result is the size of what was cut,
// zero where all is shown. Cut lines end at a line feed where there is one, so that no line looks
// whole and is not.
func truncateDiff(diff string) (text string, whole int) {
	text = sanitize.Visible(sanitize.Spaces(sanitize.Clip(diff, regie.MaxDiff))) // it only grows
	if len(text) <= regie.MaxDiff && len(diff) <= regie.MaxDiff {
		return text, 0
	}
	marker := fmt.Sprintf("[… shortened: the whole has %d bytes]\n", len(diff))
	text = sanitize.Clip(text, regie.MaxDiff-len(marker)-1)
	if end := strings.LastIndexByte(text, '\n'); end > len(text)/2 {
		text = text[:end]
	}
	return text + "\n" + marker, len(diff)
}
