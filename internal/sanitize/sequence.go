package sanitize

import (
	"regexp"
	"strings"
)

// The control sequences of ECMA-48, each after ESC or as a C1 character. A string without an end on
// its line does not match, so it swallows no later text. A sequence with parameters extends as far
// as its parameters.
const (
	stringSequence    = `(?:\x1b[\]PX^_k]|[\x{90}\x{98}\x{9d}-\x{9f}])[^\x07\x1b\n\x{80}-\x{9f}]*`
	parameterSequence = `(?:\x1b\[|\x{9b})[\x00-\x08\x0b-\x17\x19\x1c-?\x7f]*`
	shortSequence     = `\x1b[\x20-\x2f]*`
	wholeSequence     = stringSequence + `(?:\x07|\x1b\\|\x{9c})|` + parameterSequence + `[\x40-\x7e]?|` +
		shortSequence + `[\x30-\x7e]?`
)

var (
	sequences = regexp.MustCompile(wholeSequence)
	// openSequence finds sequences too; its group is one that may go on behind the text.
	openSequence = regexp.MustCompile(`((?:` + stringSequence + `\x1b?|` + parameterSequence + `|` +
		shortSequence + `)$)|` + wholeSequence)
)

// maxSequence bounds how much of a text is held back for the end of a sequence, in bytes.
const maxSequence = 4 << 10

func opensSequence(r rune) bool { return r == 0x1b || r >= 0x80 && r < 0xa0 }

// removeSequences removes the control sequences of a text. Single control characters may remain.
func removeSequences(s string) string {
	if !strings.ContainsFunc(s, opensSequence) {
		return s
	}
	return sequences.ReplaceAllLiteralString(s, "")
}

// Whole is how many bytes of a text can be stripped before what follows them is known: the rest of
// it may be the beginning of a control sequence.
func Whole(s string) int {
	if !strings.ContainsFunc(s, opensSequence) {
		return len(s)
	}
	for _, found := range openSequence.FindAllStringSubmatchIndex(s, -1) {
		if found[2] >= 0 && len(s)-found[2] < maxSequence {
			return found[2]
		}
	}
	return len(s)
}

// Stream strips a text that comes in pieces, among which its control sequences may be spread. The
// zero value is ready.
type Stream struct{ held string }

// Add takes a piece, and returns what can be shown by now.
func (p *Stream) Add(piece string) string {
	text := p.held + piece
	n := Whole(text)
	p.held = text[n:]
	return Strip(text[:n])
}

// Rest returns the held text at the end of the stream.
func (p *Stream) Rest() string {
	held := p.held
	p.held = ""
	return Strip(held)
}
