package index

import (
	"bytes"
	"strings"
)

const headingJoin = " > "

// headings keeps the headings above a line.
type headings struct {
	levels []int
	titles []string
	marks  []mark
}

func (h *headings) addHeading(line, level int, title string) {
	for len(h.levels) > 0 && h.levels[len(h.levels)-1] >= level {
		h.levels, h.titles = h.levels[:len(h.levels)-1], h.titles[:len(h.titles)-1]
	}
	h.levels, h.titles = append(h.levels, level), append(h.titles, clipText(title, maxSymbol/2))
	h.marks = append(h.marks, mark{line: line, symbol: strings.Join(h.titles, headingJoin), whole: level <= 2})
}

// markdownMarks finds the headings of CommonMark: with # and underlined, not in code.
func markdownMarks(src *source) []mark {
	var h headings
	fence := ""
	for n := range src.lineCount() {
		line := src.lineAt(n)
		indent := indentOf(line)
		line = bytes.TrimSpace(line)
		if fence != "" {
			if indent < tabWidth && strings.HasPrefix(string(line), fence) && len(bytes.Trim(line, fence[:1])) == 0 {
				fence = ""
			}
			continue
		}
		switch {
		case len(line) == 0 || indent >= tabWidth:
		case bytes.HasPrefix(line, []byte("```")), bytes.HasPrefix(line, []byte("~~~")):
			fence = string(line[:len(line)-len(bytes.TrimLeft(line, string(line[:1])))])
		case line[0] == '#':
			level := len(line) - len(bytes.TrimLeft(line, "#"))
			title := line[level:]
			if level <= 6 && (len(title) == 0 || title[0] == ' ' || title[0] == '\t') {
				h.addHeading(n, level, string(bytes.TrimSpace(bytes.TrimRight(bytes.TrimSpace(title), "#"))))
			}
		case n > 0 && isUnderline(line, "=-") && plainText(src, n-1):
			level := 1
			if line[0] == '-' {
				level = 2
			}
			h.addHeading(n-1, level, string(bytes.TrimSpace(src.lineAt(n-1))))
		}
	}
	return h.marks
}

// plainText reports whether a line can be a title that the next line underlines.
func plainText(src *source, n int) bool {
	line := bytes.TrimSpace(src.lineAt(n))
	return len(line) > 0 && strings.IndexByte("#>|-*+=`~", line[0]) < 0 && (n == 0 || src.isBlank(n-1))
}

// isUnderline reports whether a line is nothing but one of some characters, twice or more.
func isUnderline(line []byte, of string) bool {
	return len(line) > 1 && strings.IndexByte(of, line[0]) >= 0 && len(bytes.Trim(line, string(line[:1]))) == 0
}
