package web

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/regie-run/regie/internal/sanitize"
)

// fileDiff is the diff of one file.
type fileDiff struct {
	ID, Path       string
	Diff           []diffLine
	Added, Removed int
}

// diffLine is a line of a diff. From and To are the part of Text that differs from the line that it
// replaces.
type diffLine struct {
	Class, Old, New, Mark, Text string
	From, To                    int
}

// diffHead is how many lines of a diff show at once.
const diffHead = 12

// Head are the lines that show at once, and Rest those that unfold.
func (d fileDiff) Head() []diffLine { return d.Diff[:len(d.Diff)-len(d.Rest())] }

// Rest are the lines that unfold; there are several of them or none.
func (d fileDiff) Rest() []diffLine {
	if len(d.Diff) < diffHead+3 {
		return nil
	}
	return d.Diff[diffHead:]
}

func parseFileDiff(id, path, diff string) fileDiff {
	out := fileDiff{ID: id, Path: sanitize.Line(path)}
	out.Diff, out.Added, out.Removed = parseDiff(diff)
	return out
}

// parseDiff reads a unified diff.
func parseDiff(diff string) (lines []diffLine, added, removed int) {
	before, after := 0, 0
	for text := range strings.SplitSeq(strings.TrimRight(sanitize.Strip(diff), "\n"), "\n") {
		switch {
		case diff == "", strings.HasPrefix(text, "--- "), strings.HasPrefix(text, "+++ "), strings.HasPrefix(text, `\`):
		case strings.HasPrefix(text, "@@"):
			before, after = hunkStart(text)
			if len(lines) > 0 {
				lines = append(lines, diffLine{Class: "hunk", Text: "…"})
			}
		case strings.HasPrefix(text, "+"):
			lines = append(lines, diffLine{Class: "add", New: strconv.Itoa(after), Mark: "+", Text: text[1:]})
			after, added = after+1, added+1
		case strings.HasPrefix(text, "-"):
			lines = append(lines, diffLine{Class: "del", Old: strconv.Itoa(before), Mark: "−", Text: text[1:]})
			before, removed = before+1, removed+1
		default:
			same := strings.TrimPrefix(text, " ")
			lines = append(lines, diffLine{Old: strconv.Itoa(before), New: strconv.Itoa(after), Text: same})
			before, after = before+1, after+1
		}
	}
	markChanges(lines)
	return lines, added, removed
}

// markChanges marks the words that differ between the lines that a hunk removes and those that it
// puts in their places.
func markChanges(lines []diffLine) {
	for i := 0; i < len(lines); i++ {
		from := i
		for i < len(lines) && lines[i].Class == "del" {
			i++
		}
		for k := from; k < i && k-from+i < len(lines) && lines[k-from+i].Class == "add"; k++ {
			markPair(&lines[k], &lines[k-from+i])
		}
	}
}

// markPair marks all between the words that two lines begin with and end with.
func markPair(before, after *diffLine) {
	a, b := words.FindAllString(before.Text, -1), words.FindAllString(after.Text, -1)
	head, tail := 0, 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	if head+tail == 0 {
		return
	}
	for line, all := range map[*diffLine][]string{before: a, after: b} {
		line.From = len(strings.Join(all[:head], ""))
		line.To = len(line.Text) - len(strings.Join(all[len(all)-tail:], ""))
	}
}

// words cuts a line into words and the characters between them.
var words = regexp.MustCompile(`[\pL\pN_]+|[^\pL\pN_]`)

// hunkStart reads the line numbers of a hunk's head.
func hunkStart(head string) (before, after int) {
	for field := range strings.FieldsSeq(head) {
		number, _, _ := strings.Cut(field[1:], ",")
		n, _ := strconv.Atoi(number) // 0 for what is no number
		switch field[0] {
		case '-':
			before = n
		case '+':
			after = n
		}
	}
	return before, after
}
