package tool

import (
	"errors"
	"fmt"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
)

const (
	defaultResult = 32 << 10 // what a model sees of a result (spec 3.2)
	maxWhole      = 32 << 20 // what is kept of it (spec 11.3)
	maxMessage    = 2000
)

// ReadResult is the canonical name of the query that reads what a shortened result leaves out (spec
// 3.2). The marker of a shortened result names it, so the name is known here; the tool itself is
// one of the session toolkit.
const ReadResult = "session.read_result"

// isTransient reports whether the same call may succeed a moment later.
func isTransient(err error) bool {
	coded, ok := errors.AsType[*regie.Error](err)
	if !ok {
		return false
	}
	switch coded.Code {
	case regie.CodeTimeout, regie.CodeProviderBusy, regie.CodeProviderOffline,
		regie.CodeProviderBroken, regie.CodeDatabaseLocked,
		regie.CodeDatabaseDown, regie.CodeServerDown, regie.CodeServerLost:
		return true
	default:
		return false
	}
}

// callError gives an error the form that a model repairs its call with (spec 3.3). It is retryable
// where the same arguments may succeed once the world has changed.
func callError(err error) *regie.CallError {
	out := &regie.CallError{
		Code: regie.CodeToolError, Message: cleanText(err.Error(), maxMessage),
		Retryable: isTransient(err),
	}
	if coded, ok := errors.AsType[*regie.Error](err); ok {
		out.Code = coded.Code
	}
	if advice, ok := errors.AsType[Advice](err); ok {
		out.Param, out.Hint = cleanText(advice.Param, 60), cleanText(advice.Hint, maxMessage)
	}
	switch out.Code {
	case regie.CodeFileChanged, regie.CodeTextNotFound, regie.CodeTextAmbiguous, regie.CodeFileNotFound,
		regie.CodeFileExists, regie.CodeNotAFile, regie.CodeNotADirectory,
		regie.CodeDiskFull, regie.CodeConflict, regie.CodeStalePreview:
		out.Retryable = true
	}
	return out
}

// unknownOutcome returns the outcome that only evidence or a person ends (decision 5).
func unknownOutcome(err error) Outcome {
	problem := callError(err)
	code := regie.CodeOutcomeUnknown
	// the same call ends there again
	if problem.Code == regie.CodeProcessLimit || problem.Code == regie.CodeMemoryLimit {
		code = problem.Code
	}
	return Outcome{State: regie.CallUnknown, Error: &regie.CallError{
		Code: code, Message: "outcome unknown: " + problem.Message, Hint: "verify before you try again",
	}}
}

// successOutcome bounds what the model reads of a result (spec 3.2).
func successOutcome(definition regie.ToolDefinition, call regie.ID, result Result) Outcome {
	bound := definition.MaxResult
	if bound <= 0 {
		bound = defaultResult
	}
	whole := cleanText(result.Content, maxWhole)
	if len(whole) <= bound {
		return Outcome{State: regie.CallSucceeded, Result: whole}
	}
	rest := func(shown int) string {
		if result.Rest != "" {
			return cleanText(result.Rest, 200)
		}
		return fmt.Sprintf("read on with %s, call_id %q, offset %d", WireName(ReadResult), call, shown)
	}
	shown := sanitize.Clip(whole, max(0, bound-len(truncationMarker(bound, len(result.Content), rest(bound)))))
	return Outcome{
		State: regie.CallSucceeded, Result: shown + truncationMarker(len(shown), len(result.Content), rest(len(shown))),
		Whole: whole,
	}
}

func truncationMarker(shown, size int, rest string) string {
	return fmt.Sprintf("\n[shortened: %d of %d bytes shown; %s]", shown, size, rest)
}

// Unkept is the shortened result of a call without a stored whole result; why is the store's error.
func (o Outcome) Unkept(why error) string {
	if o.Whole == "" {
		return o.Result
	}
	said := fmt.Sprintf("\n[shortened: the rest is lost, because it could not be stored (%s): ask again for less]",
		cleanText(why.Error(), 150))
	shown := o.Result[:strings.LastIndex(o.Result, "\n[shortened: ")]
	return sanitize.Clip(shown, len(o.Result)-len(said)) + said
}

// cleanText makes text that can be stored and sent anywhere: valid UTF-8 without NUL, at most n
// bytes.
func cleanText(s string, n int) string {
	s = strings.ToValidUTF8(sanitize.Clip(s, n), "\uFFFD")
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return sanitize.Clip(s, n) // a replacement is longer than what it replaces
}
