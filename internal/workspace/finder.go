package workspace

import (
	"bytes"
	"strings"
)

// frequent are the bytes of program texts from the most frequent one on. What is not among them is
// rare.
const frequent = " etrnaiosl\tcdupmfgh.(),\"b_vyx/w=:k*-10;T[]{}2SERNCAIPLFDMOBG'3z4qj8655q7VU&<>"

// finder looks for a needle in one text after the other. One that folds it finds by its rarest
// byte: looking for one byte is what processors are fastest at.
type finder struct {
	needle
	anchor int    // where the rarest byte stands in the needle
	forms  []byte // of that byte: small and capital, or one
	next   [2]int // where each form stands next; -1 where that is not known
	at     int    // where the needle stands next; -1 where that is not known
}

func newFinder(n needle) finder {
	f, rarest := finder{needle: n}, -1
	for i, c := range n.text {
		rank := strings.IndexByte(frequent, c)
		if rank < 0 {
			rank = len(frequent)
		}
		if rank > rarest {
			f.anchor, rarest, f.forms = i, rank, []byte{c}
			if 'a' <= c && c <= 'z' {
				f.forms = []byte{c, c - ('a' - 'A')}
			}
		}
	}
	return f
}

// find returns where the needle stands first at or after from, which is the beginning of a line, or
// the length of the text.
func (f *finder) find(text []byte, from int) int {
	if !f.fold {
		return indexFrom(text, f.text, from)
	}
	for {
		at := len(text)
		for i := range f.forms {
			if f.next[i] < from {
				f.next[i] = indexFrom(text, f.forms[i:i+1], from)
			}
			at = min(at, f.next[i])
		}
		if at == len(text) {
			return at
		}
		start := at - f.anchor
		if start >= 0 && start+len(f.text) <= len(text) && f.equals(text[start:start+len(f.text)]) {
			return start
		}
		from = at + 1
	}
}

func (f *finder) equals(text []byte) bool {
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != f.text[i] {
			return false
		}
	}
	return true
}

// indexFrom returns where a part stands at or after from, or the length of the text.
func indexFrom(text, part []byte, from int) int {
	if i := bytes.Index(text[from:], part); i >= 0 {
		return from + i
	}
	return len(text)
}
