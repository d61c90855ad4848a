package wire

import "strings"

// Text is a text that only grows, in pieces that are never moved or copied: growing costs what is
// added, however long the text is (decision 31), and who still reads what was there is not
// disturbed. The zero Text is empty. It is used by one goroutine.
type Text struct {
	full [][]byte
	last []byte
	size int
}

const (
	pieceBytes = 16 << 10
	minRoom    = 1 << 10 // what a piece must have left for another addition to begin in it
)

// Add adds what add appends to the slice that it is given, which is empty and has room.
func (t *Text) Add(add func(b []byte) []byte) {
	if cap(t.last)-len(t.last) < minRoom {
		t.seal(make([]byte, 0, pieceBytes))
	}
	room := t.last[len(t.last):]
	added := add(room)
	t.size += len(added)
	switch {
	case len(added) == 0:
	case &added[0] == &room[:1][0]: // it fitted
		t.last = t.last[:len(t.last)+len(added)]
	default:
		t.seal(added)
	}
}

// AddString adds s.
func (t *Text) AddString(s string) { t.Add(func(b []byte) []byte { return append(b, s...) }) }

// seal leaves the last piece as it is and goes on behind the next.
func (t *Text) seal(next []byte) {
	if len(t.last) > 0 {
		t.full = append(t.full, t.last)
	}
	t.last = next
}

// Last is the last byte, or 0 where there is none.
func (t *Text) Last() byte {
	if t.size == 0 {
		return 0
	}
	piece := t.last
	if len(piece) == 0 { // it was opened for an addition of nothing
		piece = t.full[len(t.full)-1]
	}
	return piece[len(piece)-1]
}

// Len is the length of the text in bytes.
func (t *Text) Len() int { return t.size }

// Pieces are the bytes from one place up to another, as they lie. They stay what they are while the
// text grows.
func (t *Text) Pieces(from, to int) (out [][]byte) {
	at := 0
	for i := 0; i <= len(t.full) && at < to; i++ {
		piece := t.last
		if i < len(t.full) {
			piece = t.full[i]
		}
		if end := at + len(piece); end > from {
			out = append(out, piece[max(0, from-at):min(len(piece), to-at)])
		}
		at += len(piece)
	}
	return out
}

// All are all pieces.
func (t *Text) All() [][]byte { return t.Pieces(0, t.size) }

// Blank reports whether a text has no character that can be seen.
func Blank(text string) bool { return strings.TrimSpace(text) == "" }
