package chat

import (
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
)

const (
	// shownLines is how many lines of a diff a question shows; "v" and regie approvals show have
	// the rest.
	shownLines = 200
	// maxSame is how many lines that are the same are shown below each other in a shortened diff.
	maxSame = 3
)

// Diff writes the diff of a call, and reports whether there was more. With a limit other than 0 it
// shows repeated lines once, and only the first and last of more than limit lines. It warns about
// omitted lines, so that padding cannot hide a change from the person who answers.
func (p *Page) Diff(review *regie.Review, limit int) (more bool) {
	diff := strings.TrimRight(sanitize.Visible(review.Preview.Diff), "\n")
	if diff == "" {
		return false
	}
	lines := strings.Split(diff, "\n")
	whole := len(lines)
	for i := range lines {
		lines[i] = "     │ " + lines[i]
	}
	if limit > 0 {
		lines = p.foldLines(lines)
	}
	more = len(lines) != whole
	left := 0
	if limit > 0 && len(lines) > limit {
		left = len(lines) - limit
		lines = slices.Concat(lines[:limit-limit/2], []string{"     " + p.Text.T("… %d more lines", left)},
			lines[len(lines)-limit/2:])
	}
	for _, line := range lines {
		p.writeLine(line)
	}
	if left > 0 {
		p.writeLine("     ! " +
			p.Text.T("%d lines are not shown above: look at them before you answer", left))
	}
	return more || left > 0
}

// foldLines has each run of lines that are the same, or blank, as its first line and how often it
// follows.
func (p *Page) foldLines(lines []string) []string {
	var out []string
	for i := 0; i < len(lines); {
		same := 1
		for i+same < len(lines) && strings.TrimRight(lines[i+same], " \t\r") == strings.TrimRight(lines[i], " \t\r") {
			same++
		}
		if same <= maxSame {
			out = append(out, lines[i:i+same]...)
		} else {
			out = append(out, lines[i], "     "+p.Text.T("… the same line, %d more times", same-1))
		}
		i += same
	}
	return out
}
