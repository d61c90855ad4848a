package tui

import (
	"strings"
	"unicode/utf8"
)

// kind is what a block of Markdown is, as far as the cutting needs to know.
type kind int

const (
	prose kind = iota // paragraph, table, quotation: until a line is empty
	item              // one item of a list, with all below it
	fence             // code between fences
	whole             // a line that is a block: a heading, a rule
)

// block is a piece of Markdown that does not change any more, whatever follows.
type block struct {
	kind   kind
	source string
	// gap says that the source has an empty line before it.
	gap bool
	// lang and context are of code: its language, and the lines before it in the same fence, which
	// are shown already. closed says that the fence ended with it.
	lang, context string
	first, closed bool
}

const (
	// codePiece is how many lines of code are shown together while the fence is open.
	codePiece = 16
	// codeContext is how many lines before them the highlighting looks at.
	codeContext = 60
	// maxOpen bounds a block that does not end, in bytes: it is broken at a line then.
	maxOpen = 8 << 10
	// maxLine bounds a line that does not end, in bytes: it is broken there.
	maxLine = maxOpen + 1
)

// cutter takes Markdown as it streams in, and gives back the blocks that are complete. The zero
// value is ready.
type cutter struct {
	rest string // what is not given back yet, from the beginning of a line on
	// gap says that an empty line stands before rest; began that something was given back.
	gap, began bool
	// open is the fence that rest stands in, "" outside; lang and shown are its language and its
	// last lines.
	open, lang string
	indent     int
	shown      []string
	first      bool
	// table is the head of a table that was broken because it is long: its next rows stand under it
	// again.
	table string
}

// add takes a piece and returns what it completes.
func (c *cutter) add(piece string) []block {
	c.rest += piece
	out := c.take(false)
	for {
		begin := strings.LastIndexByte(c.rest, '\n') + 1
		if len(c.rest)-begin <= maxLine {
			return out
		}
		end := begin + maxLine
		if space := strings.LastIndexByte(c.rest[begin:end], ' '); space > maxLine/2 {
			end = begin + space
		}
		for end > begin && !utf8.RuneStart(c.rest[end]) {
			end--
		}
		c.rest = c.rest[:end] + "\n" + c.rest[end:]
		out = append(out, c.take(false)...)
	}
}

// end returns what is left, as it is.
func (c *cutter) end() []block {
	if c.rest != "" && !strings.HasSuffix(c.rest, "\n") {
		c.rest += "\n"
	}
	out := c.take(true)
	*c = cutter{}
	return out
}

// left is what is not complete, as a block to be shown in the meantime; false where there is
// nothing.
func (c *cutter) left() (block, bool) {
	if strings.TrimSpace(c.rest) == "" {
		return block{}, false
	}
	if c.open != "" {
		return block{kind: fence, source: c.rest, lang: c.lang, context: strings.Join(c.shown, "\n"), first: c.first},
			true
	}
	if mark, lang, _ := fenceOf(firstLine(c.rest)); mark != "" {
		_, code, _ := strings.Cut(c.rest, "\n")
		return block{kind: fence, source: code, lang: lang, gap: c.gap, first: true}, true
	}
	return block{kind: prose, source: c.rest, gap: c.gap && c.began}, true
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func (c *cutter) take(all bool) []block {
	var out []block
	for c.rest != "" {
		if !c.goOnWithTable(all) {
			break
		}
		if c.open != "" {
			b, ok := c.code(all)
			if b.source != "" || b.closed {
				out = append(out, b)
			}
			if !ok {
				break
			}
			continue
		}
		if line, rest, ended := strings.Cut(c.rest, "\n"); ended && strings.TrimSpace(line) == "" {
			c.rest, c.gap = rest, true
			continue
		}
		if mark, lang, indent := fenceOf(firstLine(c.rest)); mark != "" && strings.Contains(c.rest, "\n") {
			_, c.rest, _ = strings.Cut(c.rest, "\n")
			c.open, c.lang, c.indent, c.shown, c.first = mark, lang, indent, nil, true
			continue
		}
		k, size := extent(c.rest, all)
		if size == 0 {
			break
		}
		if size > maxOpen {
			c.table = tableHead(c.rest[:size])
		}
		out = append(out, block{kind: k, source: strings.TrimRight(c.rest[:size], "\n"), gap: c.gap && c.began})
		c.rest, c.gap, c.began = c.rest[size:], false, true
	}
	return out
}

// goOnWithTable puts the head of a broken table before its next rows; false where it is not known
// yet whether they are some.
func (c *cutter) goOnWithTable(all bool) bool {
	if c.table == "" {
		return true
	}
	line, _, ended := strings.Cut(c.rest, "\n")
	if !ended && !all {
		return false
	}
	if strings.Contains(line, "|") {
		c.rest = c.table + c.rest
	}
	c.table = ""
	return true
}

// tableHead are the first two lines of a table, "" where a text is none, or its head is most of
// what is shown together.
func tableHead(text string) string {
	head, rest, _ := strings.Cut(text, "\n")
	rule, _, ended := strings.Cut(rest, "\n")
	bare := strings.TrimSpace(rule)
	if !ended || !strings.Contains(head, "|") || !strings.Contains(bare, "-") || strings.Trim(bare, "|-: ") != "" ||
		len(head)+len(rule) > maxOpen/2 {
		return ""
	}
	return head + "\n" + rule + "\n"
}

// code gives back lines of the open fence: all of them where it has ended, else as many as make a
// piece. ok says that the fence has ended.
func (c *cutter) code(all bool) (block, bool) {
	lines := strings.SplitAfter(c.rest, "\n")
	complete := lines[:len(lines)-1] // the last one has no end
	used := 0
	for i, line := range complete {
		if closes(line, c.open) {
			b := c.piece(c.rest[:used], used+len(line))
			b.closed = true
			c.open = ""
			return b, true
		}
		used += len(line)
		if i+1 == codePiece || used > maxOpen {
			return c.piece(c.rest[:used], used), true
		}
	}
	if !all {
		return block{}, false
	}
	b := c.piece(c.rest, len(c.rest))
	b.closed, c.open = true, ""
	return b, true
}

func (c *cutter) piece(source string, used int) block {
	source = strings.TrimSuffix(source, "\n")
	b := block{kind: fence, source: source, gap: c.first && c.gap &&
		c.began, lang: c.lang, context: strings.Join(c.shown, "\n"), first: c.first}
	if c.indent > 0 {
		lines := strings.Split(source, "\n")
		for i := range lines {
			lines[i] = unindent(lines[i], c.indent)
		}
		b.source = strings.Join(lines, "\n")
	}
	c.shown = append(c.shown, strings.Split(b.source, "\n")...)
	c.shown = c.shown[max(0, len(c.shown)-codeContext):]
	c.rest, c.first, c.gap, c.began = c.rest[used:], false, false, true
	return b
}

func unindent(line string, n int) string {
	for n > 0 && strings.HasPrefix(line, " ") {
		line, n = line[1:], n-1
	}
	return line
}

// fenceOf reads a line that opens a fence: its mark, the language, and how far it is indented.
func fenceOf(line string) (mark, lang string, indent int) {
	trimmed := strings.TrimLeft(line, " ")
	if indent = len(line) - len(trimmed); indent > 3 {
		return "", "", 0
	}
	for _, char := range []string{"`", "~"} {
		n := len(trimmed) - len(strings.TrimLeft(trimmed, char))
		if n < 3 {
			continue
		}
		info := strings.TrimSpace(trimmed[n:])
		if char == "`" && strings.Contains(info, "`") { // then it is code in a line
			return "", "", 0
		}
		lang, _, _ = strings.Cut(info, " ")
		return trimmed[:n], lang, indent
	}
	return "", "", 0
}

// closes reports whether a line ends the fence that a mark opened.
func closes(line, mark string) bool {
	trimmed := strings.TrimLeft(strings.TrimRight(line, " \r\n\t"), " ")
	return len(trimmed) >= len(mark) && strings.Trim(trimmed, mark[:1]) == ""
}

// extent is how much of a text is its first block, 0 where that may go on.
func extent(text string, all bool) (kind, int) {
	k, used, empty, inner := prose, 0, 0, ""
	for line := range strings.SplitAfterSeq(text, "\n") {
		if line == "" || !strings.HasSuffix(line, "\n") {
			break
		}
		bare := strings.TrimSpace(line)
		if used == 0 {
			if single(bare) && indented(line) < 4 {
				return whole, len(line)
			}
			if marker(line) {
				k = item
			}
			if used = len(line); used > maxOpen {
				return k, used
			}
			continue
		}
		switch {
		case inner != "":
			if closes(line, inner) {
				inner = ""
			}
		case bare == "":
			if k == prose {
				return k, used
			}
			empty += len(line)
			continue
		case k == item && empty > 0 && indented(line) < 2:
			return k, used
		case marker(line) && indented(line) < 2 && (k == item || !strings.HasPrefix(text, "|") &&
			!strings.HasPrefix(text, ">")):
			return k, used
		case indented(line) < 2 && startsFence(line):
			return k, used
		case indented(line) < 2 && strings.HasPrefix(bare, "#") && single(bare):
			return k, used
		case startsFence(strings.TrimLeft(line, " ")):
			inner, _, _ = fenceOf(bare)
		}
		used += empty + len(line)
		empty = 0
		if used > maxOpen {
			return k, used
		}
	}
	if all {
		return k, len(text)
	}
	return k, 0
}

func startsFence(line string) bool {
	mark, _, _ := fenceOf(strings.TrimRight(line, "\n"))
	return mark != ""
}

// single reports whether a line is a block of its own: a heading or a rule.
func single(bare string) bool {
	if n := len(bare) - len(strings.TrimLeft(bare, "#")); n > 0 && n <= 6 && (len(bare) == n || bare[n] == ' ') {
		return true
	}
	dense := strings.ReplaceAll(bare, " ", "")
	return len(dense) >= 3 && (strings.Trim(dense, "*") == "" || strings.Trim(dense, "_") == "" ||
		strings.Trim(dense, "-") == "")
}

func indented(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// marker reports whether a line begins an item of a list.
func marker(line string) bool {
	bare := strings.TrimLeft(line, " ")
	if bare == "" || indented(line) > 3 || single(strings.TrimSpace(line)) {
		return false
	}
	digits := len(bare) - len(strings.TrimLeft(bare, "0123456789"))
	switch {
	case strings.ContainsRune("-*+", rune(bare[0])):
		digits = 0
	case digits > 0 && digits < 10 && len(bare) > digits && (bare[digits] == '.' || bare[digits] == ')'):
	default:
		return false
	}
	return len(bare) > digits+1 && (bare[digits+1] == ' ' || bare[digits+1] == '\n')
}
