package shell

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sandbox"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/workspace"
)

const (
	excerpt  = 12 << 10  // bytes of the beginning of an output that a model reads, and as many of its end
	maxBrief = 1200      // bytes of the end of an output, in a sentence
	maxShown = 256 << 10 // bytes of an output that are shown while it comes
)

// output renders what a command put out: text without what acts on a terminal, and of a long one
// what was left out.
func output(said *sandbox.Excerpt) string {
	head, tail := said.Head(), said.Tail()
	switch {
	case said.Total() == 0:
		return "no output\n"
	case workspace.NotText(head) || workspace.NotText(tail):
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
	case workspace.NotText(end):
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

// text returns the readable part of some bytes, without control sequences. Overwritten text, as of
// progress bars, gets lines of its own.
func text(data []byte) string {
	put := strings.TrimLeft(strings.ToValidUTF8(string(data), "\uFFFD"), "\r")
	return sanitize.Strip(returns.ReplaceAllString(put, "\n"))
}

// returns are where a line is written over, or ends.
var returns = regexp.MustCompile(`\r+\n?`)

// shown passes output to viewers as it comes.
type shown struct {
	tell func(string)
	sent int
}

func (s *shown) write(p []byte) {
	if s.tell == nil || s.sent > maxShown {
		return
	}
	if s.sent += len(p); s.sent > maxShown || bytes.IndexByte(p, 0) >= 0 {
		s.sent = maxShown + 1
		s.tell("\n[…]\n")
		return
	}
	s.tell(strings.ToValidUTF8(string(p), "\uFFFD"))
}
