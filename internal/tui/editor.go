package tui

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/regie-run/regie/internal/plain"
)

const (
	// pasteLines and pasteChars are from where on a paste is shown as one mark: so many lines, or
	// so many characters.
	pasteLines = 8
	pasteChars = 1000
	// pasteMark is the character that stands for a paste in the text; the editor's pastes say what
	// it holds, in order.
	pasteMark = '\ufffc'
	// recalledLines is the same for a text that was written before: what a person may have written
	// by hand stands there to be edited.
	recalledLines = 64
	// maxTyped bounds what may be typed and pasted into one message, in bytes.
	maxTyped = 1 << 20
)

// editor is the line, or the lines, that a person is writing. The zero value is empty. What is
// pasted cannot act on the terminal: it is shown by internal/plain, and sent as it was.
type editor struct {
	text   []rune
	at     int
	pastes []string
	killed []rune // by the last Ctrl-K, Ctrl-U or Ctrl-W
}

// value is what was written, with what was pasted.
func (e *editor) value() string {
	var b strings.Builder
	n := 0
	for _, r := range e.text {
		if r == pasteMark && n < len(e.pastes) {
			b.WriteString(e.pastes[n])
			n++
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (e *editor) empty() bool { return len(e.text) == 0 }

// set replaces what was written with something that was written before, whatever its size; the
// cursor stands at its end.
func (e *editor) set(s string) {
	e.text, e.pastes = nil, nil
	e.at = 0
	e.place(s, recalledLines)
}

// size is what was written, with what was pasted, in bytes.
func (e *editor) size() int {
	n := 0
	for _, r := range e.text {
		if r != pasteMark {
			n += utf8.RuneLen(r)
		}
	}
	for _, paste := range e.pastes {
		n += len(paste)
	}
	return n
}

// insert puts typed text at the cursor. It reports false, and leaves all as it was, where the
// message has no room for it.
func (e *editor) insert(s string) bool {
	if e.size()+len(s) > maxTyped {
		return false
	}
	e.put(s)
	return true
}

// put is insert for what came with something that has its place already.
func (e *editor) put(s string) {
	runes := []rune(strings.ReplaceAll(s, string(pasteMark), ""))
	e.text = slices.Insert(e.text, e.at, runes...)
	e.at += len(runes)
}

// paste puts a pasted text at the cursor: as one mark where it has so many lines, or many
// characters. It reports false, and leaves all as it was, where the message has no room for it.
func (e *editor) paste(s string) bool {
	if e.size()+len(s) > maxTyped {
		return false
	}
	e.place(s, pasteLines)
	return true
}

// place is paste for what has its place already.
func (e *editor) place(s string, lines int) {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), string(pasteMark), "")
	if strings.Count(s, "\n") < lines && len(s) < max(pasteChars, lines*pasteChars/pasteLines) {
		e.put(s)
		return
	}
	n := 0
	for _, r := range e.text[:e.at] {
		if r == pasteMark {
			n++
		}
	}
	e.pastes = slices.Insert(e.pastes, n, s)
	e.text = slices.Insert(e.text, e.at, pasteMark)
	e.at++
}

// remove takes characters away; the pastes among them go too.
func (e *editor) remove(from, to int) []rune {
	from, to = max(0, from), min(to, len(e.text))
	if from >= to {
		return nil
	}
	n := 0
	for i, r := range e.text[:to] {
		if r != pasteMark {
			continue
		}
		if i >= from {
			e.pastes = slices.Delete(e.pastes, n, n+1)
			continue
		}
		n++
	}
	gone := slices.Clone(e.text[from:to])
	e.text = slices.Delete(e.text, from, to)
	switch {
	case e.at >= to:
		e.at -= to - from
	case e.at > from:
		e.at = from
	}
	return gone
}

// before and after are where the characters at the cursor begin and end, as a reader counts them.
func (e *editor) before() int {
	if e.at == 0 {
		return 0
	}
	from := max(0, e.at-32)
	last := from
	for rest := string(e.text[from:e.at]); rest != ""; {
		cluster, _ := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
		if cluster == "" {
			break
		}
		rest = rest[len(cluster):]
		if rest != "" {
			last += len([]rune(cluster))
		}
	}
	return last
}

func (e *editor) after() int {
	if e.at >= len(e.text) {
		return len(e.text)
	}
	cluster, _ := ansi.FirstGraphemeCluster(string(e.text[e.at:min(len(e.text), e.at+32)]), ansi.GraphemeWidth)
	return min(len(e.text), e.at+max(1, len([]rune(cluster))))
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || unicode.IsMark(r)
}

// word is the word at the cursor, with where it begins.
func (e *editor) word() (string, int) {
	from := e.at
	for from > 0 && !strings.ContainsRune(" \n\t", e.text[from-1]) {
		from--
	}
	return string(e.text[from:e.at]), from
}

func (e *editor) wordBack() int {
	i := e.at
	for i > 0 && !inWord(e.text[i-1]) {
		i--
	}
	for i > 0 && inWord(e.text[i-1]) {
		i--
	}
	return i
}

func (e *editor) wordOn() int {
	i := e.at
	for i < len(e.text) && !inWord(e.text[i]) {
		i++
	}
	for i < len(e.text) && inWord(e.text[i]) {
		i++
	}
	return i
}

func (e *editor) lineStart() int {
	i := e.at
	for i > 0 && e.text[i-1] != '\n' {
		i--
	}
	return i
}

func (e *editor) lineEnd() int {
	i := e.at
	for i < len(e.text) && e.text[i] != '\n' {
		i++
	}
	return i
}

// key obeys a key of editing, and reports whether it was one.
func (e *editor) key(name string) bool {
	kill := func(from, to int) {
		if gone := e.remove(from, to); len(gone) > 0 {
			e.killed = slices.DeleteFunc(gone, func(r rune) bool { return r == pasteMark })
		}
	}
	switch name {
	case "left", "ctrl+b":
		e.at = e.before()
	case "right", "ctrl+f":
		e.at = e.after()
	case "alt+left", "ctrl+left", "alt+b":
		e.at = e.wordBack()
	case "alt+right", "ctrl+right", "alt+f":
		e.at = e.wordOn()
	case "home", "ctrl+a":
		e.at = e.lineStart()
	case "end", "ctrl+e":
		e.at = e.lineEnd()
	case "ctrl+home":
		e.at = 0
	case "ctrl+end":
		e.at = len(e.text)
	case "backspace", "ctrl+h":
		e.remove(e.before(), e.at)
	case "delete":
		e.remove(e.at, e.after())
	case "ctrl+w":
		i := e.at
		for i > 0 && unicode.IsSpace(e.text[i-1]) {
			i--
		}
		for i > 0 && !unicode.IsSpace(e.text[i-1]) {
			i--
		}
		kill(i, e.at)
	case "alt+backspace", "ctrl+backspace":
		kill(e.wordBack(), e.at)
	case "alt+d", "alt+delete", "ctrl+delete":
		kill(e.at, e.wordOn())
	case "ctrl+u":
		kill(e.lineStart(), e.at)
	case "ctrl+k":
		if end := e.lineEnd(); end > e.at {
			kill(e.at, end)
		} else {
			kill(e.at, e.at+1)
		}
	case "ctrl+y":
		e.insert(string(e.killed))
	case "alt+enter", "shift+enter", "ctrl+j":
		e.insert("\n")
	default:
		return false
	}
	return true
}

// row is one line of the editor on the screen.
type row struct {
	text     string
	from, to int // characters of the text
}

// shown is the character at a place as it is shown, and how many of the text it is. Before it stand
// so many pastes.
func (e *editor) shown(i, pasted, width int, name func(paste string) string) (n int, shown string) {
	if e.text[i] == pasteMark && pasted < len(e.pastes) {
		return 1, cut(name(e.pastes[pasted]), width)
	}
	cluster, _ := ansi.FirstGraphemeCluster(string(e.text[i:min(len(e.text), i+32)]), ansi.GraphemeWidth)
	return max(1, len([]rune(cluster))), plain.Line(tabs(cluster))
}

// rows break the text into lines of a width, and say where the cursor stands. name says what a
// paste is shown as.
func (e *editor) rows(width int, name func(paste string) string) (rows []row, y, x int) {
	width = max(width, 4)
	now, used, pasted := row{}, 0, 0
	end := func(i int) {
		now.to = i
		rows = append(rows, now)
		now, used = row{from: i}, 0
	}
	for i := 0; i < len(e.text); {
		if e.text[i] == '\n' {
			if i == e.at {
				y, x = len(rows), used
			}
			end(i)
			i++
			now.from = i
			continue
		}
		n, shown := e.shown(i, pasted, width, name)
		if e.text[i] == pasteMark {
			pasted++
		}
		columns := ansi.StringWidth(shown)
		if used+columns > width {
			end(i)
		}
		if i <= e.at && e.at < i+n {
			y, x = len(rows), used
		}
		now.text += shown
		used += columns
		i += n
	}
	if e.at >= len(e.text) {
		if used >= width { // the cursor needs a place
			end(len(e.text))
		}
		y, x = len(rows), used
	}
	end(len(e.text))
	return rows, y, x
}

// vertical moves the cursor a line up or down as it is shown; it reports false where there is none.
func (e *editor) vertical(by, width int, name func(string) string) bool {
	rows, y, x := e.rows(width, name)
	y += by
	if y < 0 || y >= len(rows) {
		return false
	}
	row := rows[y]
	pasted := 0
	for _, r := range e.text[:row.from] {
		if r == pasteMark {
			pasted++
		}
	}
	e.at = row.from
	for used := 0; e.at < row.to && used < x; {
		n, shown := e.shown(e.at, pasted, max(width, 4), name)
		if e.at+n >= row.to && row.to < len(e.text) && e.text[row.to] != '\n' { // behind it the next line begins
			break
		}
		if e.text[e.at] == pasteMark {
			pasted++
		}
		used += ansi.StringWidth(shown)
		e.at += n
	}
	return true
}
