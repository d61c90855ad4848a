package index

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"
)

// Sizes of chunks, in bytes of text. A chunk is what a person would show as an answer, and what
// fits into every embedder's window.
const (
	maxChunk  = 2048
	fullChunk = 1024 // what is smaller takes in its neighbour, if both together stay below
)

// chunk is a part of a file.
type chunk struct {
	First, Last int // lines, from 1
	Symbol      string
	Text        string
}

// mark is a line at which something begins that has a name.
type mark struct {
	line   int // from 0
	symbol string
	// whole says that the part starting here never shares a chunk with the text before it, however
	// small both are.
	whole bool
}

// marker finds the marks of a text, in the order of its lines.
type marker func(src *source) []mark

// source is a text and its lines.
type source struct {
	path  string
	text  []byte
	lines []int // where each begins, and the end of the text
}

func newSource(name string, text []byte) *source {
	s := &source{path: name, text: text, lines: []int{0}}
	for at := 0; ; {
		n := bytes.IndexByte(text[at:], '\n')
		if n < 0 {
			break
		}
		at += n + 1
		if at < len(text) {
			s.lines = append(s.lines, at)
		}
	}
	s.lines = append(s.lines, len(text))
	return s
}

// lineCount returns how many lines there are.
func (s *source) lineCount() int { return len(s.lines) - 1 }

// lineAt returns one without its end.
func (s *source) lineAt(n int) []byte {
	return bytes.TrimRight(s.text[s.lines[n]:s.lines[n+1]], "\r\n")
}

// isBlank reports whether a line is empty or white space.
func (s *source) isBlank(n int) bool { return len(bytes.TrimSpace(s.lineAt(n))) == 0 }

// sizeOf returns that of some lines, in bytes.
func (s *source) sizeOf(from, to int) int { return s.lines[to] - s.lines[from] }

// markers are the ways to read a file, by the end of its name.
var markers = func() map[string]marker {
	out := map[string]marker{}
	for _, kind := range []struct {
		read marker
		ends string
	}{
		{goMarks, "go"},
		{markdownMarks, "md markdown mdx mdown qmd rmd"},
		{
			braceMarks,
			"c h cc cpp cxx hpp hh hxx m mm cs java kt kts scala groovy gradle js jsx mjs cjs ts tsx mts cts vue svelte rs swift php dart zig proto v sv d " +
				"css scss less glsl wgsl hcl tf sol thrift graphql gql pl pm r jl awk nix",
		},
		{
			indentMarks,
			"py pyi pyx rb rake lua ex exs cr nim sh bash zsh fish ps1 gd coffee jl elm hs ml fs fsx erl clj cljs el lisp scm vb sql",
		},
	} {
		for end := range strings.FieldsSeq(kind.ends) {
			out[end] = kind.read
		}
	}
	return out
}()

// cutChunks cuts a text into chunks (spec 8.3): at declarations or headings in known kinds of
// files, else at paragraphs. Each line that is not blank is in exactly one chunk; a line longer
// than a chunk is split.
func cutChunks(name string, text []byte) []chunk {
	src := newSource(name, text)
	var marks []mark
	if read := markers[strings.TrimPrefix(path.Ext(strings.ToLower(name)), ".")]; read != nil {
		marks = read(src)
	}
	return packChunks(src, marks)
}

// part is some lines of a text on their way into a chunk.
type part struct {
	from, to int // lines, from 0; to is not among them
	symbols  []string
	whole    bool
}

// packChunks makes chunks of the text between marks: it joins small neighbours and splits large
// parts.
func packChunks(src *source, marks []mark) []chunk {
	var out []chunk
	var held *part
	flush := func() {
		if held != nil {
			out = append(out, src.splitPart(held)...)
		}
		held = nil
	}
	take := func(p part) {
		if p.from == p.to {
			return
		}
		if held != nil && !p.whole && src.sizeOf(held.from, p.to) <= fullChunk {
			held.to, held.symbols = p.to, append(held.symbols, p.symbols...)
			return
		}
		flush()
		held = &p
	}
	last := part{}
	for _, m := range marks {
		if m.line < last.from || m.line >= src.lineCount() {
			continue
		}
		if m.line == last.from && len(last.symbols) == 0 {
			last.symbols, last.whole = []string{m.symbol}, m.whole
			continue
		}
		last.to = m.line
		take(last)
		last = part{from: m.line, symbols: []string{m.symbol}, whole: m.whole}
	}
	last.to = src.lineCount()
	take(last)
	flush()
	return out
}

const maxSymbol = 200 // bytes

// symbolName names a chunk after its symbols.
func (p *part) symbolName() string {
	var out strings.Builder
	for i, s := range p.symbols {
		if s == "" || i > 0 && s == p.symbols[i-1] {
			continue
		}
		if out.Len()+len(s)+2 > maxSymbol {
			break
		}
		if out.Len() > 0 {
			out.WriteString(", ")
		}
		out.WriteString(s)
	}
	if out.Len() == 0 && len(p.symbols) > 0 {
		return clipText(p.symbols[0], maxSymbol)
	}
	return out.String()
}

// splitPart makes chunks of a part. It splits a part that is too large at the least indented blank
// line of its later half, else at the least indented line there.
func (s *source) splitPart(p *part) []chunk {
	var out []chunk
	from, to := s.trimBlank(p.from, p.to)
	for from < to {
		end := to
		if s.sizeOf(from, to) > maxChunk {
			end = s.breakAt(from, to)
		}
		first, last := s.trimBlank(from, end)
		if first < last {
			out = append(out, s.chunksOf(first, last, p.symbolName())...)
		}
		from, to = s.trimBlank(end, to)
	}
	return out
}

// trimBlank leaves out blank lines at both ends.
func (s *source) trimBlank(from, to int) (int, int) {
	for from < to && s.isBlank(from) {
		from++
	}
	for from < to && s.isBlank(to-1) {
		to--
	}
	return from, to
}

// breakAt returns the line at which lines that are too many are split.
func (s *source) breakAt(from, to int) int {
	most := from + 1
	for most < to && s.sizeOf(from, most+1) <= maxChunk {
		most++
	}
	best, cost := most, 1<<30
	for n := most; n > from && s.sizeOf(from, n) >= maxChunk/3; n-- {
		if n >= to || s.isBlank(n) {
			continue
		}
		depth := 4 * indentOf(s.lineAt(n))
		if n > from && s.isBlank(n-1) {
			depth -= 6
		}
		if closesBlock(s.lineAt(n)) {
			depth += 16 // it belongs to the text before
		}
		if depth < cost {
			best, cost = n, depth
		}
	}
	return best
}

func closesBlock(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) > 0 && strings.IndexByte("})]", line[0]) >= 0
}

const tabWidth = 4

// indentOf returns the indent of a line, in columns.
func indentOf(line []byte) int {
	n := 0
	for _, b := range line {
		switch b {
		case ' ':
			n++
		case '\t':
			n += tabWidth
		default:
			return n
		}
	}
	return n
}

// chunksOf makes one chunk of some lines, or several of one line that is too long.
func (s *source) chunksOf(from, to int, symbol string) []chunk {
	text := bytes.TrimRight(s.text[s.lines[from]:s.lines[to]], "\r\n")
	var out []chunk
	for len(text) > maxChunk {
		n := maxChunk
		for n > maxChunk-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		out = append(out, chunk{First: from + 1, Last: to, Symbol: symbol, Text: string(text[:n])})
		text = text[n:]
	}
	return append(out, chunk{First: from + 1, Last: to, Symbol: symbol, Text: string(text)})
}

func clipText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
