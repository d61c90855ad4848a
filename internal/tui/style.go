package tui

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// style is how a piece of text looks. Colours are the sixteen of the terminal's own theme, so that
// they are legible on light and on dark backgrounds and where there is no truecolour.
type style struct {
	bold, faint, italic, underline, strike, reverse bool
	fg                                              colour
}

// colour is one of the terminal's colours; zero is its default.
type colour uint8

// The colours, as SGR parameters.
const (
	red     colour = 31
	green   colour = 32
	yellow  colour = 33
	blue    colour = 34
	magenta colour = 35
	cyan    colour = 36
)

// code is the style's SGR sequence, "" where it is plain.
func (s style) code(colours bool) string {
	var b []byte
	add := func(is bool, n int) {
		if is {
			if len(b) > 0 {
				b = append(b, ';')
			}
			b = strconv.AppendInt(b, int64(n), 10)
		}
	}
	add(s.bold, 1)
	add(s.faint, 2)
	add(s.italic, 3)
	add(s.underline, 4)
	add(s.reverse, 7)
	add(s.strike, 9)
	add(colours && s.fg != 0, int(s.fg))
	if len(b) == 0 {
		return ""
	}
	return "\x1b[" + string(b) + "m"
}

// span is text of one style. Its text holds nothing that acts on a terminal; line feeds end lines.
type span struct {
	text  string
	style style
}

// paint writes spans that stand on one line. Each piece ends what it begins, so that no line
// depends on another.
func paint(line []span, colours bool) string {
	var b strings.Builder
	for _, s := range line {
		code := s.style.code(colours)
		if code == "" {
			b.WriteString(s.text)
			continue
		}
		b.WriteString(code)
		b.WriteString(s.text)
		b.WriteString("\x1b[m")
	}
	return b.String()
}

// wide is how many columns spans take.
func wide(line []span) int {
	n := 0
	for _, s := range line {
		n += ansi.StringWidth(s.text)
	}
	return n
}

// most is how many columns a cluster may take: terminals do not agree on what is joined of several
// characters (families, flags, tones of skin), and a finished line that a terminal finds too long
// moves all that is drawn below it.
func most(cluster string, columns int) int {
	sum, last := 0, rune(0)
	for _, r := range cluster {
		if r == 0xfe0f && ansi.StringWidth(string(last)) == 1 { // shown as a picture
			sum++
		}
		sum += ansi.StringWidth(string(r))
		last = r
	}
	return max(columns, sum)
}

// mostWide is how many columns spans may take.
func mostWide(line []span) int {
	n := 0
	for _, s := range line {
		for rest := s.text; rest != ""; {
			cluster, columns := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
			if cluster == "" {
				break
			}
			rest = rest[len(cluster):]
			n += most(cluster, columns)
		}
	}
	return n
}

// wrap breaks spans into lines of at most a width, at spaces where it can, and inside what is too
// long for a line. Line feeds break too.
func wrap(spans []span, width int) [][]span {
	w := wrapper{width: max(width, 2)}
	for _, s := range spans {
		for rest := s.text; rest != ""; {
			cluster, columns := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
			if cluster == "" {
				break
			}
			rest = rest[len(cluster):]
			w.put(cluster, min(most(cluster, columns), w.width), s.style)
		}
	}
	w.word()
	w.end()
	return w.lines
}

// wrapper is a text on its way into lines.
type wrapper struct {
	width int
	lines [][]span
	line  []span
	used  int
	// held is the word that is being read, with its width; gap is the spaces before it.
	held  []span
	holds int
	gap   []span
	gaps  int
}

func (w *wrapper) put(cluster string, columns int, s style) {
	switch cluster {
	case "\n":
		w.word()
		w.end()
	case " ", "\t":
		if w.holds > 0 {
			w.word()
		}
		w.gap = push(w.gap, " ", s)
		w.gaps++
	default:
		if w.holds+columns > w.width { // longer than a line
			w.word()
			w.end()
		}
		w.held = push(w.held, cluster, s)
		w.holds += columns
	}
}

// word moves the held word to the line, or to the next one.
func (w *wrapper) word() {
	if w.holds == 0 {
		return
	}
	if w.used > 0 && w.used+w.gaps+w.holds > w.width {
		w.gap, w.gaps = nil, 0
		w.end()
	}
	if w.gaps+w.holds > w.width { // an indent that leaves no room
		w.gap, w.gaps = nil, 0
	}
	for _, s := range append(w.gap, w.held...) {
		w.line = push(w.line, s.text, s.style)
	}
	w.used += w.gaps + w.holds
	w.gap, w.gaps, w.held, w.holds = nil, 0, nil, 0
}

func (w *wrapper) end() {
	w.lines = append(w.lines, w.line)
	w.line, w.used, w.gap, w.gaps = nil, 0, nil, 0
}

func push(line []span, text string, s style) []span {
	if n := len(line); n > 0 && line[n-1].style == s {
		line[n-1].text += text
		return line
	}
	return append(line, span{text, s})
}

// chop breaks a line at exact columns, as a terminal does: for code, where every space counts.
func chop(line []span, width int) [][]span {
	width = max(width, 2)
	var out [][]span
	var now []span
	used := 0
	for _, s := range line {
		for rest := s.text; rest != ""; {
			cluster, columns := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
			if cluster == "" {
				break
			}
			rest = rest[len(cluster):]
			if columns = min(most(cluster, columns), width); used+columns > width && used > 0 {
				out, now, used = append(out, now), nil, 0
			}
			now = push(now, cluster, s.style)
			used += columns
		}
	}
	return append(out, now)
}

// cut shortens a text that must stay on one line.
func cut(s string, width int) string { return ansi.Truncate(s, max(width, 0), "…") }
