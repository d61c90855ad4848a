package approval

import (
	"bytes"

	"github.com/regie-run/regie"
)

// Covers reports whether a person's answer lets a call run (decision 20, invariant 3): the person
// decided, did not deny, and decided on exactly this definition, whose hash includes the tool's
// name, with exactly these arguments in canonical form: the proposed ones that they saw, or the
// ones that they wrote. The preconditions of the preview bind too; the tool compares them with the
// world.
func Covers(review regie.Review, definition regie.Hash, arguments []byte) bool {
	decided := review.Decision
	if decided == nil {
		return false
	}
	switch decided.Answer {
	case regie.AnswerAllow, regie.AnswerSession, regie.AnswerAlways:
	default:
		return false
	}
	shown := []byte(review.Arguments)
	if len(decided.Arguments) > 0 {
		shown = decided.Arguments
	}
	return !definition.IsZero() && definition == review.Definition && bytes.Equal(arguments, shown)
}
