package workspace

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// literal is a text that is looked for. It is found by its rarest character, in each of the forms
// that folding gives it, and compared from there: looking for one byte is what processors are
// fastest at.
type literal struct {
	needle   []byte
	fold     bool
	at       int      // where the sought character begins in the needle
	variants [][]byte // its forms
	wide     bool     // some character has a form of another length, so a comparison byte by byte may miss it
}

// frequent are the bytes of program texts from the most frequent one on. What is not among them is
// rare.
const frequent = " etrnaiosl\tcdupmfgh.(),\"b_vyx/w=:k*-10;T[]{}2SERNCAIPLFDMOBG'3z4qj8655q7VU&<>"

func rarity(b byte) int {
	if i := strings.IndexByte(frequent, b); i >= 0 {
		return i
	}
	return len(frequent)
}

func newLiteral(text string, fold bool) *literal {
	l := &literal{needle: []byte(text), fold: fold}
	if !fold {
		for i := range l.needle {
			if rarity(l.needle[i]) > rarity(l.needle[l.at]) {
				l.at = i
			}
		}
		l.variants = [][]byte{l.needle[l.at : l.at+1]}
		return l
	}
	best := 0
	for i, r := range text {
		forms := orbit(r)
		score, cost := 4*len(frequent), 0
		for _, form := range forms {
			score = min(score, 4*rarity(form[0]))
			l.wide = l.wide || len(form) != len(forms[0])
			cost += len(form) // each form is looked for by itself, and several bytes more slowly than one
		}
		if score -= cost * len(frequent) / 4; l.variants == nil || score > best {
			best, l.at, l.variants = score, i, forms
		}
	}
	return l
}

// orbit are the forms of a character that case folding takes for the same.
func orbit(r rune) [][]byte {
	out := [][]byte{[]byte(string(r))}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		out = append(out, []byte(string(f)))
	}
	return out
}

// finder looks for a literal in one text after the other. It is used by one goroutine.
type finder struct {
	*literal
	text []byte
	next []int // where each variant stands next; -1 where that is not known
}

func (f *finder) reset(text []byte) {
	f.text = text
	f.next = f.next[:0]
	for range f.variants {
		f.next = append(f.next, -1)
	}
}

// find returns where the literal stands first at or after from, or -1.
func (f *finder) find(from int) (start, end int) {
	for from < len(f.text) {
		at := len(f.text)
		for i, variant := range f.variants {
			if f.next[i] < from {
				f.next[i] = indexFrom(f.text, variant, from)
			}
			at = min(at, f.next[i])
		}
		if at == len(f.text) {
			break
		}
		if start, end := f.compare(at); start >= 0 {
			return start, end
		}
		from = at + 1
	}
	return -1, -1
}

// indexFrom returns where a form stands at or after from, and the length of the text where it does
// not.
func indexFrom(text, form []byte, from int) int {
	var i int
	if len(form) == 1 {
		i = bytes.IndexByte(text[from:], form[0])
	} else {
		i = bytes.Index(text[from:], form)
	}
	if i < 0 {
		return len(text)
	}
	return from + i
}

// compare tells whether the literal stands around its sought character, which stands at a place.
func (f *finder) compare(at int) (start, end int) {
	start, end = at-f.at, at-f.at+len(f.needle)
	if start >= 0 && end <= len(f.text) {
		if !f.fold && bytes.Equal(f.text[start:end], f.needle) {
			return start, end
		}
		if f.fold && equalFold(f.text[start:end], f.needle) {
			return start, end
		}
	}
	if f.wide {
		return f.compareWide(at)
	}
	return -1, -1
}

// equalFold compares texts of the same length. Most are ASCII.
func equalFold(a, b []byte) bool {
	for i := range a {
		x, y := a[i], b[i]
		if x >= utf8.RuneSelf || y >= utf8.RuneSelf {
			return bytes.EqualFold(a[i:], b[i:])
		}
		if x == y {
			continue
		}
		if x|0x20 != y|0x20 || x|0x20 < 'a' || x|0x20 > 'z' {
			return false
		}
	}
	return true
}

// compareWide compares character by character, to both sides.
func (f *finder) compareWide(at int) (start, end int) {
	start = at
	for left := f.needle[:f.at]; len(left) > 0; {
		want, size := utf8.DecodeLastRune(left)
		left = left[:len(left)-size]
		got, length := utf8.DecodeLastRune(f.text[:start])
		if length == 0 || !sameFold(want, got) {
			return -1, -1
		}
		start -= length
	}
	end = at
	for right := f.needle[f.at:]; len(right) > 0; {
		want, size := utf8.DecodeRune(right)
		right = right[size:]
		got, length := utf8.DecodeRune(f.text[end:])
		if length == 0 || !sameFold(want, got) {
			return -1, -1
		}
		end += length
	}
	return start, end
}

func sameFold(a, b rune) bool {
	if a == b {
		return true
	}
	for f := unicode.SimpleFold(a); f != a; f = unicode.SimpleFold(f) {
		if f == b {
			return true
		}
	}
	return false
}
