package plain

import (
	"strings"
	"unicode/utf8"
)

// maxSequence bounds a control sequence, in bytes: what opens one and has no end by then, or by the
// end of its line, swallows nothing of what follows.
const maxSequence = 4 << 10

// The control sequences of ECMA-48 by what follows the escape character.
const (
	escape = 0x1b
	csi    = '['
	osc    = ']'
	told   = "]PX^_k"           // those with a string behind them; k is how screen and tmux are told a title
	breaks = "\x18\x1a\x1b\n\t" // what ends the parameters of a sequence too early
)

// bare takes the control sequences out of a text whole. What is left of their characters still
// acts: what ended too early, or not at all.
func bare(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for s != "" {
		n, _ := sequence(s)
		if n == 0 {
			n = width(s)
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// width is how long the character is that a text begins with.
func width(s string) int {
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, size := utf8.DecodeRuneInString(s)
	return size
}

// sequence is how long the control sequence is that a text begins with, 0 where none does. open
// says that it might go on with what follows the text.
func sequence(s string) (n int, open bool) {
	switch c := s[0]; {
	case c == escape:
		return escaped(s)
	case c == 0xc2 && len(s) > 1 && s[1] >= 0x80 && s[1] < 0xa0: // a C1 character is ESC and a letter
		return body(s, s[1]-0x40, 2)
	case c >= 0x80 && c < 0xa0: // it as a byte of its own, unless that is of a text that is no UTF-8
		if n, open = body(s, c-0x40, 1); open || n < 3 || s[1] < 0x30 {
			return 0, false
		}
		return n, false
	default:
		return 0, false
	}
}

// escaped is sequence for what begins with ESC.
func escaped(s string) (n int, open bool) {
	for n = 1; n < min(len(s), maxSequence) && s[n] >= 0x20 && s[n] < 0x30; n++ { // as in the choice of a character set
	}
	switch {
	case n == len(s), n == maxSequence:
		return n, n < maxSequence
	case s[n] < 0x30 || s[n] >= 0x7f:
		return n, false
	case n > 1:
		return n + 1, false
	default:
		return body(s, s[1], 2)
	}
}

// body is sequence for what stands behind what opens one.
func body(s string, kind byte, from int) (n int, open bool) {
	switch {
	case kind == csi:
		for n = from; n < min(len(s), maxSequence); n++ {
			switch c := s[n]; {
			case c >= 0x40 && c < 0x7f:
				return n + 1, false
			case c >= utf8.RuneSelf, strings.IndexByte(breaks, c) >= 0:
				return n, false
			}
		}
		return n, n == len(s) && n < maxSequence
	case strings.IndexByte(told, kind) >= 0:
		return text(s, kind, from)
	default:
		return from, false
	}
}

// text is sequence for what has a string in it.
func text(s string, kind byte, from int) (n int, open bool) {
	within := s[:min(len(s), maxSequence)]
	for n = from; n < len(within); n++ {
		switch c := within[n]; {
		case c == '\n':
			return from, false
		case c == '\a' && kind == osc:
			return n + 1, false
		case c == 0xc2 && strings.HasPrefix(within[n:], "\u009c"):
			return n + 2, false
		case c != escape, n+1 == len(within):
		case within[n+1] == '\\':
			return n + 2, false
		case within[n+1] == escape: // so what tmux is to hand on has it
			n++
		default: // another sequence begins
			return from, false
		}
	}
	return from, len(s) < maxSequence
}

// Whole is how many bytes of a text can be stripped before what follows them is known: the rest of
// it may be the beginning of a control sequence.
func Whole(s string) int {
	for i := 0; i < len(s); {
		n, open := sequence(s[i:])
		if open {
			return i
		}
		i += max(n, width(s[i:]))
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

// Rest returns what is left at the end of the text.
func (p *Stream) Rest() string {
	held := p.held
	p.held = ""
	return Strip(held)
}
