package tui

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/regie-run/regie/internal/sanitize"
)

// newParser reads Markdown with tables, lists of tasks and strikethrough.
func newParser() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Table, extension.TaskList, extension.Strikethrough)).Parser()
}

const (
	// codeIndent is the indent of each line of code.
	codeIndent = 2
	// maxOpen bounds a block, or a line, that does not end, in bytes: it is broken there.
	maxOpen = 8 << 10
)

// markdown makes lines of a reply in Markdown that streams in. It hands over the blocks that are
// complete: all but the last one, each item of a list for itself.
type markdown struct {
	parser parser.Parser
	width  int                // columns
	refs   []parser.Reference // where the links lead that the finished blocks define
	// open are the complete lines of the block that may go on, partial is the line behind them.
	open, partial string
	// goesOn says that the open block continues a longer code block, gap that an empty line
	// precedes it, began that an earlier block exists.
	goesOn, gap, began bool
}

// addPiece adds a piece and returns the lines that it completes; nil is an empty line.
func (r *markdown) addPiece(piece string) (out [][]span) {
	r.partial += piece
	for {
		end := strings.IndexByte(r.partial, '\n')
		rest := end + 1
		if end < 0 && len(r.partial) <= maxOpen {
			return out
		}
		if end < 0 || end > maxOpen { // at a space, or between characters
			for end = maxOpen; !utf8.RuneStart(r.partial[end]); end-- {
			}
			if space := strings.LastIndexByte(r.partial[:end], ' '); space > 0 {
				end = space
			}
			rest = end
		}
		line := r.partial[:end]
		r.partial = r.partial[rest:]
		out = append(out, r.takeLine(sanitize.Strip(line)+"\n")...)
	}
}

// finishReply returns the remaining lines, and begins another reply.
func (r *markdown) finishReply() (out [][]span) {
	if r.partial != "" {
		out = r.addPiece("\n")
	}
	out = append(out, r.renderFinished(r.open)...)
	*r = markdown{parser: r.parser, width: r.width}
	return out
}

// takeLine takes a line, and returns the block before it if it begins another one.
func (r *markdown) takeLine(line string) (out [][]span) {
	before := r.open
	r.open += line
	if strings.TrimSpace(r.open) == "" {
		r.open, r.gap = "", true
		return nil
	}
	doc, _ := r.parseSource(r.open)
	last := doc.LastChild()
	if _, table := last.(*east.Table); table { // the line before may be its head
		before = before[:strings.LastIndexByte(strings.TrimSuffix(before, "\n"), '\n')+1]
	}
	_, list := last.(*ast.List)
	if before != "" && (doc.FirstChild() != last || list && last.FirstChild() != last.LastChild()) {
		out, r.open = r.renderFinished(before), r.open[len(before):]
	}
	if len(r.open) <= maxOpen {
		return out
	}
	rest := ""
	if _, code := last.(*ast.FencedCodeBlock); code { // its end has not come
		rest = r.open[:strings.IndexByte(r.open, '\n')+1]
	}
	out = append(out, r.renderFinished(r.open)...)
	r.open, r.goesOn = rest, rest != ""
	return out
}

// parseSource reads a source, with the links that are known.
func (r *markdown) parseSource(source string) (ast.Node, parser.Context) {
	known := parser.NewContext()
	for _, ref := range r.refs {
		known.AddReference(ref)
	}
	return r.parser.Parse(text.NewReader([]byte(source)), parser.WithContext(known)), known
}

// renderFinished returns the lines of a block that is complete. The links that it defines are known
// to the blocks after it; those before stand there already, so that a definition is shown too.
func (r *markdown) renderFinished(source string) [][]span {
	out, known := r.renderDraft(source)
	r.refs = known.References()
	trimmed := strings.TrimRight(source, " \t\n")
	r.began, r.goesOn = r.began || trimmed != "", false
	r.gap = strings.Count(source[len(trimmed):], "\n") > 1
	return out
}

// renderDraft returns the lines of an open block, none wider than the reply. Its text cannot act on
// the terminal: see internal/sanitize.
func (r *markdown) renderDraft(source string) ([][]span, parser.Context) {
	doc, known := r.parseSource(source)
	out := (&page{source: []byte(source)}).renderBlocks(doc, r.width)
	_, code := doc.FirstChild().(*ast.FencedCodeBlock)
	if len(out) > 0 && r.began && !r.goesOn && (r.gap || code) {
		out = append([][]span{nil}, out...)
	}
	return out, known
}

// renderLeft returns the lines of the incomplete text.
func (r *markdown) renderLeft() [][]span {
	out, _ := r.renderDraft(r.open + sanitize.Strip(r.partial) + "\n")
	return out
}

// page walks through one parsed source.
type page struct{ source []byte }

// renderBlocks returns the blocks below a node, with an empty line between those that are not items
// of a tight list.
func (p *page) renderBlocks(parent ast.Node, width int) [][]span {
	var out [][]span
	for node := parent.FirstChild(); node != nil; node = node.NextSibling() {
		lines := p.renderBlock(node, width)
		if len(lines) == 0 {
			continue
		}
		list, isList := parent.(*ast.List)
		_, inItem := parent.(*ast.ListItem)
		_, below := node.(*ast.List)
		tight := isList && list.IsTight || inItem && below ||
			node.Kind() == ast.KindLinkReferenceDefinition && !node.HasBlankPreviousLines()
		if len(out) > 0 && !tight {
			out = append(out, nil)
		}
		out = append(out, lines...)
	}
	return out
}

func (p *page) renderBlock(node ast.Node, width int) [][]span {
	switch n := node.(type) {
	case *ast.Heading:
		s := style{bold: true, fg: cyan}
		if n.Level == 1 {
			s.underline = true
		}
		return wrapSpans(p.renderInline(n, s), width)
	case *ast.ThematicBreak:
		return [][]span{{{strings.Repeat("─", min(width, 40)), style{faint: true}}}}
	case *ast.Blockquote:
		return prefixLines(p.renderBlocks(n, width-2), span{"│ ", style{faint: true}}, span{"│ ", style{faint: true}})
	case *ast.List:
		return p.renderList(n, width)
	case *ast.FencedCodeBlock:
		return p.renderCode(n.Lines(), string(n.Language(p.source)), width)
	case *ast.CodeBlock:
		return p.renderCode(n.Lines(), "", width)
	case *ast.HTMLBlock:
		return wrapSpans([]span{{text: strings.TrimRight(p.joinLines(n.Lines()), "\n")}}, width)
	case *east.Table:
		return p.renderTable(n, width)
	case *ast.LinkReferenceDefinition:
		defined := "[" + string(n.Label) + "]: " + string(n.Destination)
		if len(n.Title) > 0 {
			defined += ` "` + string(n.Title) + `"`
		}
		return wrapSpans([]span{{sanitize.Strip(defined), style{faint: true}}}, width)
	default:
		return wrapSpans(p.renderInline(n, style{}), width)
	}
}

func (p *page) renderCode(lines *text.Segments, lang string, width int) (out [][]span) {
	for _, line := range highlightCode(strings.TrimRight(p.joinLines(lines), "\n"), lang) {
		for _, piece := range chopLine(line, width-codeIndent) {
			out = append(out, append([]span{{text: strings.Repeat(" ", codeIndent)}}, piece...))
		}
	}
	return out
}

func (p *page) joinLines(lines *text.Segments) string {
	var b strings.Builder
	for i := range lines.Len() {
		segment := lines.At(i)
		b.Write(segment.Value(p.source))
	}
	return b.String()
}

// renderList writes a list, each item behind its mark.
func (p *page) renderList(list *ast.List, width int) [][]span {
	var out [][]span
	number := list.Start
	for node := list.FirstChild(); node != nil; node = node.NextSibling() {
		mark := "• "
		if list.IsOrdered() {
			mark = strconv.Itoa(number) + string(list.Marker) + " "
			number++
		}
		lines := p.renderBlocks(node, width-len([]rune(mark)))
		if len(lines) == 0 {
			lines = [][]span{nil}
		}
		if len(out) > 0 && !list.IsTight {
			out = append(out, nil)
		}
		out = append(out, prefixLines(lines, span{mark, style{fg: cyan}},
			span{text: strings.Repeat(" ", len([]rune(mark)))})...)
	}
	return out
}

// prefixLines puts something before the first line and before the others.
func prefixLines(lines [][]span, first, others span) [][]span {
	out := make([][]span, len(lines))
	for i, line := range lines {
		before := others
		if i == 0 {
			before = first
		}
		if len(line) == 0 && strings.TrimSpace(before.text) == "" {
			continue
		}
		out[i] = append([]span{before}, line...)
	}
	return out
}

// renderInline returns the text below a node.
func (p *page) renderInline(parent ast.Node, s style) []span {
	var out []span
	for node := parent.FirstChild(); node != nil; node = node.NextSibling() {
		switch n := node.(type) {
		case *ast.Text:
			out = append(out, span{p.unescapeText(n), s})
			if n.HardLineBreak() || n.SoftLineBreak() {
				out = append(out, span{"\n", s})
			}
		case *ast.CodeSpan:
			code := s
			code.fg = magenta
			out = append(out, p.renderInline(n, code)...)
		case *ast.Emphasis:
			strong := s
			strong.italic, strong.bold = s.italic || n.Level == 1, s.bold || n.Level > 1
			out = append(out, p.renderInline(n, strong)...)
		case *east.Strikethrough:
			struck := s
			struck.strike = true
			out = append(out, p.renderInline(n, struck)...)
		case *ast.Link:
			out = append(out, p.renderLink(n, n.Destination, s)...)
		case *ast.Image:
			out = append(out, p.renderLink(n, n.Destination, s)...)
		case *ast.AutoLink:
			s.underline = true
			out = append(out, span{string(n.URL(p.source)), s})
		case *east.TaskCheckBox:
			box := "☐ "
			if n.IsChecked {
				box = "☑ "
			}
			out = append(out, span{box, style{fg: cyan}})
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				segment := n.Segments.At(i)
				out = append(out, span{string(segment.Value(p.source)), s})
			}
		default:
			out = append(out, p.renderInline(n, s)...)
		}
	}
	return out
}

// unescapeText resolves escapes and entities of a text, and removes characters that they would let
// act.
func (p *page) unescapeText(n *ast.Text) string {
	value := n.Segment.Value(p.source)
	if !n.IsRaw() {
		value = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(value)))
	}
	return sanitize.Strip(string(value))
}

// renderLink renders a link with its address, so that a person sees more than the model's label.
func (p *page) renderLink(n ast.Node, destination []byte, s style) []span {
	address := s
	s.underline, address.faint = true, true
	label := p.renderInline(n, s)
	var said strings.Builder
	for _, piece := range label {
		said.WriteString(piece.text)
	}
	to := sanitize.Strip(string(destination))
	if to == "" || said.String() == to || "mailto:"+said.String() == to {
		return label
	}
	return append(label, span{" (" + to + ")", address})
}
