package shell

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/sandbox"
)

const (
	excerpt   = 12 << 10  // bytes of the beginning of an output that a model reads, and as many of its end
	maxBrief  = 1200      // bytes of the end of an output, in a sentence
	maxShown  = 256 << 10 // bytes of an output that are shown while it comes
	maxStrays = 10        // of a hundred bytes: more that are no text, and it is no text
	maxZeros  = 40        // of a hundred bytes: more that are NUL
)

// output renders what a command put out: text without what acts on a terminal, and of a long one
// what was left out.
func output(said *sandbox.Excerpt) string {
	head, tail := said.Head(), said.Tail()
	switch {
	case said.Total() == 0:
		return "no output\n"
	case binary(head) || binary(tail):
		return fmt.Sprintf("output: %d bytes that are not text, not shown\n", said.Total())
	case said.Omitted() == 0:
		return "output:\n" + ended(text(append(bytes.Clone(head), tail...)))
	}
	return fmt.Sprintf("output, %d bytes:\n%s\n[… %d bytes left out …]\n%s", said.Total(), text(head),
		said.Omitted(), ended(text(tail)))
}

// brief is the end of an output for a sentence.
func brief(said *sandbox.Excerpt) string {
	end := append(bytes.Clone(said.Head()), said.Tail()...)
	switch {
	case len(end) == 0:
		return "It had put nothing out."
	case binary(end):
		return "It had put out what is not text."
	}
	if len(end) > maxBrief {
		end = end[len(end)-maxBrief:]
	}
	return regie.CommandPutOut + text(end)
}

func ended(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// text is what of some bytes can be read: whole characters, without those that act.
func text(data []byte) string {
	for cut := 0; cut < utf8.UTFMax-1 && len(data) > 0 && !utf8.RuneStart(data[0]); cut++ {
		data = data[1:]
	}
	for back := 1; back < utf8.UTFMax && back <= len(data); back++ { // a character that was cut through
		if last := data[len(data)-back:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				data = data[:len(data)-back]
			}
			break
		}
	}
	return plain.Strip(visibleNUL(apart(string(data))))
}

// returns are where a line is written over, and ends are where it ends.
var (
	returns = regexp.MustCompile(`\r+`)
	ends    = regexp.MustCompile(`\r+\n`)
	begins  = regexp.MustCompile(`(?m)^\r+`)
)

// apart has what was written over, as progress bars are, stand on lines of its own: without its
// returns it would be one word with what follows.
func apart(put string) string {
	if !strings.ContainsRune(put, '\r') {
		return put
	}
	return returns.ReplaceAllString(begins.ReplaceAllString(ends.ReplaceAllString(put, "\n"), ""), "\n")
}

// visibleNUL shows what separates the names that git -z and find -print0 put out.
func visibleNUL(s string) string { return strings.ReplaceAll(s, "\x00", "\u2400") }

// binary reports whether bytes are no text: many are no characters, or such as no text holds. One
// NUL after a piece of text is a separator, and no stray; where nearly every other byte is one, it
// is text of another kind (UTF-16), or numbers.
func binary(data []byte) bool {
	strays, zeros, before := 0, 0, byte('\n')
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == 0:
			if zeros++; before == 0 {
				strays++
			}
		case r == utf8.RuneError && size == 1, r < 0x20 && !strings.ContainsRune("\a\b\t\n\v\f\r\x0e\x0f\x1b", r):
			strays++
		}
		before = rest[0]
		rest = rest[size:]
	}
	return (strays > 3 || strays > 0 && zeros > 0) && strays*100 > len(data)*maxStrays || zeros > 3 &&
		zeros*100 > len(data)*maxZeros
}

// shown tells an output to whoever watches, as it comes.
type shown struct {
	tell func(string)
	held []byte // of a character that has not come whole
	sent int
}

func (s *shown) write(p []byte) {
	if s.tell == nil || s.sent > maxShown {
		return
	}
	data := slices.Concat(s.held, p)
	whole := len(data)
	for back := 1; back < utf8.UTFMax && back <= len(data); back++ {
		if last := data[len(data)-back:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				whole -= back
			}
			break
		}
	}
	s.held = bytes.Clone(data[whole:])
	s.send(data[:whole])
}

func (s *shown) send(data []byte) {
	if len(data) == 0 {
		return
	}
	if s.sent += len(data); s.sent > maxShown {
		s.tell("\n[…]\n")
		return
	}
	if bytes.IndexByte(data, 0) >= 0 && binary(data) {
		s.sent = maxShown + 1
		s.tell("[…]\n")
		return
	}
	s.tell(visibleNUL(strings.ToValidUTF8(string(data), "\uFFFD")))
}

// end tells what was held back.
func (s *shown) end() {
	if s.tell != nil && s.sent <= maxShown {
		s.send(s.held)
	}
}
