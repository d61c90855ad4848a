// Package sanitize makes text of models, tools, files and servers harmless before a person sees it
// (spec 10.1, 12.1): no character moves the cursor, reverses the writing direction or hides. Strip
// is for running text. Visible and Line are for text that a person decides on, which must not lose
// anything unnoticed.
package sanitize

import (
	"fmt"
	"iter"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Strip removes control sequences whole, other control characters, and marks that turn the writing
// around. Line feeds and tabs stay; bytes that are not UTF-8 become U+FFFD.
func Strip(s string) string {
	return strings.Map(func(r rune) rune {
		if acts(r) {
			return -1
		}
		return r
	}, removeSequences(s))
}

// acts reports whether a character does something to a terminal or to the text around it.
func acts(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Hidden reports whether a reader would not see a character or its effect, in any context: the
// characters that Strip removes, other direction marks, and characters without width. It also
// covers line separators other than line feed, tags, fillers and the empty Braille pattern. It
// returns false for joiners and variation selectors, which scripts and emoji use: Runes decides
// those by their context.
func Hidden(r rune) bool {
	switch {
	case acts(r):
		return true
	case r < 0x80, joiner(r), selector(r), unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	default:
		return r == 0x2800 || r == 0x1d159 || r >= 0xe0000 && r < 0xe1000 ||
			unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
	}
}

// Runes yields each character of a text and whether it is hidden in its context: a joiner between
// joinable characters and a variation selector after its base are visible. In a name such as
// no<U+200D>te.txt they are hidden.
func Runes(s string) iter.Seq2[rune, bool] {
	return func(yield func(rune, bool) bool) {
		before := rune(0) // what is seen before it
		for i, r := range s {
			hides := Hidden(r)
			switch {
			case joiner(r):
				hides = !joins(before)
			case selector(r):
				hides = !varies(before, s[i+utf8.RuneLen(r):])
			}
			if !yield(r, hides) {
				return
			}
			if before = r; hides {
				before = 0
			}
		}
	}
}

func joiner(r rune) bool { return r == 0x200c || r == 0x200d }

func selector(r rune) bool { return r >= 0xfe00 && r <= 0xfe0f }

// joins reports whether a joiner after a character has a visible effect: after letters of joined
// scripts, and emoji.
func joins(r rune) bool {
	switch {
	case r == 0xfe0f, r >= 0x1f3fb && r <= 0x1f3ff, unicode.Is(unicode.So, r):
		return true
	default:
		return r >= 0x600 && (unicode.IsLetter(r) || unicode.IsMark(r)) &&
			!unicode.In(r, unicode.Inherited, unicode.Latin, unicode.Greek, unicode.Cyrillic,
				unicode.Georgian, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Cherokee) &&
			!selector(r)
	}
}

// varies reports whether a variation selector between a character and a rest has a visible effect:
// at emoji and signs, Asian letters, and keycaps.
func varies(r rune, rest string) bool {
	if r < 0x80 {
		return strings.ContainsRune("0123456789#*", r) && strings.HasPrefix(rest, "\u20e3")
	}
	return unicode.IsSymbol(r) || unicode.IsPunct(r) || r == 0x2139 || joins(r) &&
		!selector(r) || unicode.Is(unicode.Han, r)
}

// Count returns how many characters of a text are hidden.
func Count(s string) int {
	n := 0
	for _, hides := range Runes(s) {
		if hides {
			n++
		}
	}
	return n
}

// JSON escapes the hidden characters in a JSON text.
func JSON(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for r, hides := range Runes(s) {
		switch {
		case r < 0x80 || !hides: // JSON itself escapes those below
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Visible shows hidden characters: control characters as pictures (␛), others as names (<U+202E>).
// Line feeds and tabs stay; bytes that are not UTF-8 become U+FFFD. The result may be up to four
// times as long.
func Visible(s string) string { return visible(s, false) }

// Line is Visible for text that must stay on its line: line feeds and tabs are shown by their
// pictures too.
func Line(s string) string { return visible(s, true) }

func visible(s string, line bool) string {
	var b strings.Builder
	b.Grow(len(s) + 64)
	for r, hides := range Runes(s) {
		switch {
		case !hides && (!line || r >= 0x20):
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

// Clip returns at most n bytes of s and does not cut through a character.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := max(0, n)
	for back := 0; back < 3 && cut > 0 && !utf8.RuneStart(s[cut]); back++ { // bytes that are not UTF-8 have no start
		cut--
	}
	return s[:cut]
}
