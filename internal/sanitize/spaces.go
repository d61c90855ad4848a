package sanitize

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Spaces replaces characters that look like a space by their names (<U+00A0>): a name, a command or
// a line of code with one is not what it looks like. It keeps a no-break space in its typographic
// places: before French punctuation, inside « » and between digits. Prose has many of those, and
// marks on all would hide the others. It also keeps the wide space of CJK, which looks different.
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

// odd reports whether a character only looks like a space.
func odd(r rune) bool { return r > 0x7f && r != 0x3000 && r != 0x1680 && unicode.Is(unicode.Zs, r) }

// typeset reports whether typography puts a no-break space between two characters.
func typeset(before, after rune) bool {
	digits := func(r rune) bool { return r >= '0' && r <= '9' }
	return before == '«' || strings.ContainsRune(";:!?»%€", after) || digits(before) && digits(after)
}
