package tui

import (
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/regie-run/regie/internal/sanitize"
)

const (
	// pasteLines is from how many lines on a paste is shown as one mark; a line counts as
	// pasteChars/pasteLines characters at most.
	pasteLines = 8
	pasteChars = 1000
	// recalledLines is pasteLines for an earlier text, which a person may have typed and wants to
	// edit.
	recalledLines = 64
	// firstMark and the following private characters represent the pastes of an editor, in their
	// order.
	firstMark, lastMark = '\U000f0000', '\U000ffffd'
)

// editor is the text that a person is writing. The zero value is empty. A paste cannot act on the
// terminal: internal/sanitize shows it, and it is sent unchanged.
type editor struct {
	text   []rune
	at     int
	pastes []string
}

// pasteAt returns the paste that a character represents, or -1.
func (e *editor) pasteAt(r rune) int {
	if i := int(r - firstMark); i >= 0 && i < len(e.pastes) {
		return i
	}
	return -1
}

// fullText returns what was written, with what was pasted.
func (e *editor) fullText() string {
	var b strings.Builder
	for _, r := range e.text {
		if i := e.pasteAt(r); i >= 0 {
			b.WriteString(e.pastes[i])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (e *editor) isEmpty() bool { return len(e.text) == 0 }

// replaceText replaces the written text with an earlier one of any size and puts the cursor at its
// end.
func (e *editor) replaceText(s string) {
	*e = editor{}
	e.insertPaste(s, recalledLines)
}

// insertText inserts typed or pasted text at the cursor; a long text becomes one mark.
func (e *editor) insertText(s string) { e.insertPaste(s, pasteLines) }

func (e *editor) insertPaste(s string, lines int) {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	s = strings.Map(func(r rune) rune {
		if r >= firstMark && r <= lastMark {
			return -1
		}
		return r
	}, s) // what is no UTF-8 becomes U+FFFD
	if strings.Count(s, "\n") < lines && len(s) < lines*pasteChars/pasteLines {
		e.insertRunes([]rune(s)...)
		return
	}
	e.pastes = append(slices.Clip(e.pastes), s)
	e.insertRunes(firstMark + rune(len(e.pastes)-1))
}

func (e *editor) insertRunes(runes ...rune) {
	e.text = slices.Insert(e.text, e.at, runes...)
	e.at += len(runes)
}

// removeRunes takes characters away.
func (e *editor) removeRunes(from, to int) {
	e.text = slices.Delete(e.text, from, to)
	if e.at >= to {
		e.at -= to - from
	} else {
		e.at = min(e.at, from)
	}
}

// clusterLength returns how many characters from one on a reader takes for one.
func (e *editor) clusterLength(i int) int {
	if i >= len(e.text) || e.pasteAt(e.text[i]) >= 0 {
		return min(1, len(e.text)-i)
	}
	cluster, _ := ansi.FirstGraphemeCluster(string(e.text[i:min(len(e.text), i+32)]), ansi.GraphemeWidth)
	return max(1, len([]rune(cluster)))
}

// clusterStart returns where the characters before the cursor begin that a reader takes for one.
func (e *editor) clusterStart() int {
	i := max(0, e.at-32)
	for i < e.at && i+e.clusterLength(i) < e.at {
		i += e.clusterLength(i)
	}
	return i
}

// wordAtCursor returns the word at the cursor, with where it begins.
func (e *editor) wordAtCursor() (string, int) {
	from := e.seekBoundary(-1, unicode.IsSpace)
	return string(e.text[from:e.at]), from
}

// seekBoundary returns how far the text goes on from the cursor, in one direction, without
// something like that.
func (e *editor) seekBoundary(by int, ends func(rune) bool) int {
	i := e.at
	for by < 0 && i > 0 && !ends(e.text[i-1]) || by > 0 && i < len(e.text) && !ends(e.text[i]) {
		i += by
	}
	return i
}

// wordEnd returns where the next word ends in a direction.
func (e *editor) wordEnd(by int) int {
	from := *e
	from.at = e.seekBoundary(by, func(r rune) bool { return !unicode.IsSpace(r) })
	return from.seekBoundary(by, unicode.IsSpace)
}

func isLineEnd(r rune) bool { return r == '\n' }

// handleKey obeys a key of editing, and reports whether it was one.
func (e *editor) handleKey(name string) bool {
	switch name {
	case "left", "ctrl+b":
		e.at = e.clusterStart()
	case "right", "ctrl+f":
		e.at += e.clusterLength(e.at)
	case "alt+left", "ctrl+left", "alt+b":
		e.at = e.wordEnd(-1)
	case "alt+right", "ctrl+right", "alt+f":
		e.at = e.wordEnd(1)
	case "home", "ctrl+a":
		e.at = e.seekBoundary(-1, isLineEnd)
	case "end", "ctrl+e":
		e.at = e.seekBoundary(1, isLineEnd)
	case "backspace", "ctrl+h":
		e.removeRunes(e.clusterStart(), e.at)
	case "delete", "ctrl+d":
		e.removeRunes(e.at, e.at+e.clusterLength(e.at))
	case "ctrl+w", "alt+backspace", "ctrl+backspace":
		e.removeRunes(e.wordEnd(-1), e.at)
	case "ctrl+u":
		e.removeRunes(e.seekBoundary(-1, isLineEnd), e.at)
	case "ctrl+k":
		e.removeRunes(e.at, max(e.seekBoundary(1, isLineEnd), e.at+e.clusterLength(e.at)))
	case "alt+enter", "shift+enter", "ctrl+j":
		e.insertText("\n")
	default:
		return false
	}
	return true
}

// row is one line of the editor on the screen.
type row struct {
	text string
	// cells map each cursor position to its place in the text and its column.
	cells []cell
}

type cell struct{ at, x int }

// wrapRows breaks the text into rows of a width and returns the cursor's row and column. name
// returns the label of a paste.
func (e *editor) wrapRows(width int, name func(paste string) string) (rows []row, y, x int) {
	width = max(width, 4)
	rows = []row{{}}
	used := 0
	for i := 0; i <= len(e.text); i += max(1, e.clusterLength(i)) {
		now := &rows[len(rows)-1]
		n := e.clusterLength(i)
		shown := ""
		if i < len(e.text) && e.text[i] != '\n' {
			shown = sanitize.Line(expandTabs(string(e.text[i : i+n])))
			if paste := e.pasteAt(e.text[i]); paste >= 0 {
				shown = truncateText(name(e.pastes[paste]), width)
			}
		}
		columns := ansi.StringWidth(shown)
		if used+columns > width || i == len(e.text) && used == width { // the cursor needs a place
			rows, used = append(rows, row{}), 0
			now = &rows[len(rows)-1]
		}
		now.cells = append(now.cells, cell{i, used})
		if i <= e.at && e.at < i+max(1, n) {
			y, x = len(rows)-1, used
		}
		now.text += shown
		used += columns
		if i < len(e.text) && e.text[i] == '\n' {
			rows, used = append(rows, row{}), 0
		}
	}
	return rows, y, x
}

// moveVertically moves the cursor a line up or down as it is shown; it reports false where there is
// none.
func (e *editor) moveVertically(by, width int, name func(string) string) bool {
	rows, y, x := e.wrapRows(width, name)
	if y += by; y < 0 || y >= len(rows) {
		return false
	}
	for _, c := range rows[y].cells {
		if c.x <= x {
			e.at = c.at
		}
	}
	return true
}
