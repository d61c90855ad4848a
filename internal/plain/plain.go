// Package plain makes text of models, tools, files and servers harmless before a person sees it (spec 10.1, 12.1): nothing in it moves
// a cursor, turns the writing around or hides from the reader. Strip is for what is read on the way; Visible and Line are for what a
// person decides on, where nothing may be left out unnoticed.
package plain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Strip removes control sequences whole, other control characters, and marks that turn the writing around. Line feeds and tabs stay;
// bytes that are not UTF-8 become U+FFFD.
func Strip(s string) string {
	return strings.Map(func(r rune) rune {
		if acts(r) {
			return -1
		}
		return r
	}, bare(s))
}

// acts reports whether a character does something to a terminal or to the text around it.
func acts(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Hidden reports whether a reader would not see a character, or not see what it does: what Strip removes, other marks of direction,
// what has no width, separators of lines that are no line feed, tags, fillers and the empty pattern of Braille. The two joiners are not among them, because
// writing systems and pictures are spelt with them.
func Hidden(r rune) bool {
	switch {
	case acts(r):
		return true
	case r < 0x80, r == 0x200c, r == 0x200d, unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	default:
		return r == 0x2800 || r >= 0xe0000 && r < 0xe1000 || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
	}
}

// Count returns how many characters of a text are Hidden.
func Count(s string) int {
	n := 0
	for _, r := range s {
		if Hidden(r) {
			n++
		}
	}
	return n
}

// Visible shows what is Hidden: control characters by their pictures (␛), others by their names (<U+202E>). Line feeds and tabs stay;
// bytes that are not UTF-8 become U+FFFD. The result may be up to four times as long.
func Visible(s string) string { return visible(s, Hidden) }

// Line is Visible for text that must stay on its line: line feeds and tabs are shown by their pictures too.
func Line(s string) string {
	return visible(s, func(r rune) bool { return r < 0x20 || Hidden(r) })
}

func visible(s string, hidden func(rune) bool) string {
	first := strings.IndexFunc(s, hidden)
	if first < 0 {
		return strings.ToValidUTF8(s, string(utf8.RuneError))
	}
	var b strings.Builder
	b.Grow(len(s) + 64)
	for _, r := range s {
		switch {
		case !hidden(r):
			b.WriteRune(r) // RuneError for what is no character
		case r < 0x20:
			b.WriteRune(0x2400 + r)
		case r == 0x7f:
			b.WriteRune(0x2421)
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}
