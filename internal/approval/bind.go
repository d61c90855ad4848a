package approval

import (
	"bytes"

	"github.com/regie-run/regie"
)

// Covers reports whether a person's answer lets a call run (decision 20, invariant 3): they have
// decided, not to deny, and what they decided on is a call of exactly this definition, whose hash
// holds the tool's name, with exactly these arguments in canonical form: the proposed ones that
// they were shown, or those that they wrote in their place. The preconditions of what they were
// shown bind too, and are compared with the world by the tool.
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
