package plain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Spaces shows look-alikes of a space by name (<U+00A0>): a name, a command or a line of code with
// one differs from what it looks like. A no-break space stays where typography uses it, before
// French punctuation, inside « » and between digits: prose is full of them, and marking each would
// hide the others. So does the wide space of CJK, which looks different.
func Spaces(s string) string {
	if strings.IndexFunc(s, odd) < 0 {
		return s
	}
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	var b strings.Builder
	b.Grow(len(s) + 64)
	last := rune(0)
	for i, r := range s {
		next, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
		switch {
		case !odd(r), (r == 0xa0 || r == 0x202f) && typeset(last, next):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
		last = r
	}
	return b.String()
}

// odd reports whether a character looks like a space and is a different one.
func odd(r rune) bool { return r > 0x7f && r != 0x3000 && r != 0x1680 && unicode.Is(unicode.Zs, r) }

// typeset reports whether typography puts a no-break space between two characters.
func typeset(before, after rune) bool {
	digits := func(r rune) bool { return r >= '0' && r <= '9' }
	return before == '«' || strings.ContainsRune(";:!?»%€", after) || digits(before) && digits(after)
}
