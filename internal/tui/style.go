package tui

import (
	"iter"
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

// sgrCode returns the style's SGR sequence, "" where it is plain.
func (s style) sgrCode(colours bool) string {
	var b []string
	for i, is := range []bool{s.bold, s.faint, s.italic, s.underline, s.reverse, s.strike, colours && s.fg != 0} {
		if is {
			b = append(b, strconv.Itoa([]int{1, 2, 3, 4, 7, 9, int(s.fg)}[i]))
		}
	}
	if len(b) == 0 {
		return ""
	}
	return "\x1b[" + strings.Join(b, ";") + "m"
}

// span is text of one style. Its text holds nothing that acts on a terminal; line feeds end lines.
type span struct {
	text  string
	style style
}

// paintLine writes the spans of one line. Each span ends its own styles, so that lines are
// independent.
func paintLine(line []span, colours bool) string {
	var b strings.Builder
	for _, s := range line {
		if code := s.style.sgrCode(colours); code != "" {
			s.text = code + s.text + "\x1b[m"
		}
		b.WriteString(s.text)
	}
	return b.String()
}

// widthOf returns how many columns spans take.
func widthOf(line []span) int {
	n := 0
	for _, s := range line {
		n += ansi.StringWidth(s.text)
	}
	return n
}

// splitClusters returns the characters of spans as a reader counts them, each with its columns.
func splitClusters(line []span) iter.Seq2[span, int] {
	return func(yield func(span, int) bool) {
		for _, s := range line {
			for rest := s.text; rest != ""; {
				cluster, columns := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
				if !yield(span{cluster, s.style}, columns) {
					return
				}
				rest = rest[len(cluster):]
			}
		}
	}
}

// piece is a part of a line.
type piece struct {
	spans   []span
	columns int
}

func (p *piece) putSpan(s span, columns int) {
	p.spans, p.columns = appendSpan(p.spans, s.text, s.style), p.columns+columns
}

// wrapSpans breaks spans into lines of at most a width: at spaces if possible, else inside a long
// word. Line feeds break too.
func wrapSpans(spans []span, width int) (lines [][]span) {
	width = max(width, 2)
	var line, gap, word piece
	end := func() {
		lines = append(lines, line.spans)
		line, gap = piece{}, piece{}
	}
	place := func() { // the word goes to the line, or to the next one
		if line.columns > 0 && line.columns+gap.columns+word.columns > width {
			end()
		}
		if gap.columns+word.columns > width { // an indent that leaves no room
			gap = piece{}
		}
		line.columns += gap.columns + word.columns
		for _, s := range append(gap.spans, word.spans...) {
			line.putSpan(s, 0)
		}
		gap, word = piece{}, piece{}
	}
	for cluster, columns := range splitClusters(spans) {
		columns = min(columns, width)
		space, feed := cluster.text == " " || cluster.text == "\t", cluster.text == "\n"
		long := !space && !feed && word.columns+columns > width
		if word.columns > 0 && (space || feed || long) {
			place()
		}
		switch {
		case space:
			gap.putSpan(span{" ", cluster.style}, 1)
			continue
		case feed || long:
			end()
		}
		if !feed {
			word.putSpan(cluster, columns)
		}
	}
	if word.columns > 0 {
		place()
	}
	end()
	return lines
}

func appendSpan(line []span, text string, s style) []span {
	if n := len(line); n > 0 && line[n-1].style == s {
		line[n-1].text += text
		return line
	}
	return append(line, span{text, s})
}

// chopLine breaks a line at exact columns, as a terminal does: for code, where every space counts.
func chopLine(line []span, width int) (out [][]span) {
	width = max(width, 2)
	var now piece
	for cluster, columns := range splitClusters(line) {
		if columns = min(columns, width); now.columns+columns > width && now.columns > 0 {
			out, now = append(out, now.spans), piece{}
		}
		now.putSpan(cluster, columns)
	}
	return append(out, now.spans)
}

// truncateText shortens a text that must stay on one line.
func truncateText(s string, width int) string { return ansi.Truncate(s, max(width, 0), "…") }
