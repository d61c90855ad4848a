package tui

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/regie-run/regie/internal/plain"
)

// newParser reads Markdown with tables, lists of tasks and strikethrough.
func newParser() parser.Parser {
	p := parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)
	p.AddOptions(
		parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
		parser.WithInlineParsers(util.Prioritized(extension.NewStrikethroughParser(), 500),
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0)),
	)
	return p
}

// renderer makes lines of blocks of Markdown.
type renderer struct {
	parser parser.Parser
	width  int                // columns
	refs   []parser.Reference // where the links lead that the finished blocks of the reply define
}

// maxRefs bounds how many definitions of links are remembered of a reply.
const maxRefs = 500

// lines are a finished block as lines of spans, none wider than the renderer's width. What the
// block says acts on nothing: see internal/plain. The links that it defines are known to the blocks
// after it; those before stand there already, as they were written, so a definition is shown too.
func (r *renderer) lines(b block) [][]span {
	lines, known := r.draft(b)
	if known != nil && len(r.refs) < maxRefs {
		r.refs = known.References()
	}
	return lines
}

// draft is lines of a block that may go on: what it defines may yet change, and is not remembered.
func (r *renderer) draft(b block) ([][]span, parser.Context) {
	if b.kind == fence {
		return r.fence(b), nil
	}
	known := parser.NewContext()
	for _, ref := range r.refs {
		known.AddReference(ref)
	}
	source := []byte(plain.Strip(b.source) + "\n")
	p := &page{source: source, render: r}
	return p.blocks(r.parser.Parse(text.NewReader(source), parser.WithContext(known)), r.width), known
}

// forget ends a reply: the next one defines its own links.
func (r *renderer) forget() { r.refs = nil }

// codeIndent stands before each line of code.
const codeIndent = 2

func (r *renderer) fence(b block) [][]span {
	if b.source == "" {
		return nil
	}
	return r.code(plain.Strip(b.source), plain.Strip(b.lang), plain.Strip(b.context))
}

func (r *renderer) code(source, lang, context string) [][]span {
	var out [][]span
	for _, line := range highlight(source, lang, context) {
		for _, piece := range chop(line, r.width-codeIndent) {
			out = append(out, append([]span{{text: strings.Repeat(" ", codeIndent)}}, piece...))
		}
	}
	return out
}

// page walks through one parsed source.
type page struct {
	source []byte
	render *renderer
	cells  bool // what is read stands in a table, where a bar in code is written with a backslash
}

// blocks are the blocks below a node, with an empty line between those that are not items of a
// tight list.
func (p *page) blocks(parent ast.Node, width int) [][]span {
	var out [][]span
	for node := parent.FirstChild(); node != nil; node = node.NextSibling() {
		lines := p.block(node, width)
		if len(lines) == 0 {
			continue
		}
		list, isList := parent.(*ast.List)
		_, inItem := parent.(*ast.ListItem)
		_, below := node.(*ast.List)
		_, defines := node.(*ast.LinkReferenceDefinition)
		_, defined := node.PreviousSibling().(*ast.LinkReferenceDefinition)
		tight := isList && list.IsTight || inItem && below || defines && defined
		if len(out) > 0 && !tight {
			out = append(out, nil)
		}
		out = append(out, lines...)
	}
	return out
}

func (p *page) block(node ast.Node, width int) [][]span {
	switch n := node.(type) {
	case *ast.Heading:
		s := style{bold: true, fg: cyan}
		if n.Level == 1 {
			s.underline = true
		}
		return wrap(p.inline(n, s), width)
	case *ast.ThematicBreak:
		return [][]span{{{strings.Repeat("─", min(width, 40)), style{faint: true}}}}
	case *ast.Blockquote:
		return prefixed(p.blocks(n, width-2), span{"│ ", style{faint: true}}, span{"│ ", style{faint: true}})
	case *ast.List:
		return p.list(n, width)
	case *ast.FencedCodeBlock:
		return p.inner(n.Lines(), string(n.Language(p.source)), width)
	case *ast.CodeBlock:
		return p.inner(n.Lines(), "", width)
	case *ast.HTMLBlock:
		return wrap([]span{{text: strings.TrimRight(p.literal(n.Lines()), "\n")}}, width)
	case *east.Table:
		return p.table(n, width)
	case *ast.LinkReferenceDefinition:
		return wrap([]span{{plain.Strip("[" + string(n.Label) + "]: " + titled(n)), style{faint: true}}}, width)
	default:
		return wrap(p.inline(n, style{}), width)
	}
}

// titled is where a definition leads, with the title that it has.
func titled(n *ast.LinkReferenceDefinition) string {
	if len(n.Title) == 0 {
		return string(n.Destination)
	}
	return string(n.Destination) + ` "` + string(n.Title) + `"`
}

func (p *page) inner(lines *text.Segments, lang string, width int) [][]span {
	r := renderer{width: width}
	return r.code(strings.TrimRight(p.literal(lines), "\n"), lang, "")
}

func (p *page) literal(lines *text.Segments) string {
	var b strings.Builder
	for i := range lines.Len() {
		segment := lines.At(i)
		b.Write(segment.Value(p.source))
	}
	return b.String()
}

// list writes a list, each item behind its mark.
func (p *page) list(list *ast.List, width int) [][]span {
	var out [][]span
	number := list.Start
	for node := list.FirstChild(); node != nil; node = node.NextSibling() {
		mark := "• "
		if list.IsOrdered() {
			mark = strconv.Itoa(number) + string(list.Marker) + " "
			number++
		}
		lines := p.blocks(node, width-len([]rune(mark)))
		if len(lines) == 0 {
			lines = [][]span{nil}
		}
		if len(out) > 0 && !list.IsTight {
			out = append(out, nil)
		}
		out = append(out, prefixed(lines, span{mark, style{fg: cyan}},
			span{text: strings.Repeat(" ", len([]rune(mark)))})...)
	}
	return out
}

// prefixed puts something before the first line and before the others.
func prefixed(lines [][]span, first, others span) [][]span {
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

// inline is the text below a node.
func (p *page) inline(parent ast.Node, s style) []span {
	var out []span
	for node := parent.FirstChild(); node != nil; node = node.NextSibling() {
		switch n := node.(type) {
		case *ast.Text:
			out = append(out, span{p.unescaped(n), s})
			if n.HardLineBreak() || n.SoftLineBreak() {
				out = append(out, span{"\n", s})
			}
		case *ast.String:
			out = append(out, span{string(n.Value), s})
		case *ast.CodeSpan:
			code := s
			code.fg = magenta
			out = append(out, p.inline(n, code)...)
		case *ast.Emphasis:
			strong := s
			if n.Level == 1 {
				strong.italic = true
			} else {
				strong.bold = true
			}
			out = append(out, p.inline(n, strong)...)
		case *east.Strikethrough:
			struck := s
			struck.strike = true
			out = append(out, p.inline(n, struck)...)
		case *ast.Link:
			out = append(out, p.link(p.inline(n, underlined(s)), string(n.Destination), s)...)
		case *ast.Image:
			out = append(out, p.link(p.inline(n, underlined(s)), string(n.Destination), s)...)
		case *ast.AutoLink:
			out = append(out, span{string(n.URL(p.source)), underlined(s)})
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
			out = append(out, p.inline(n, s)...)
		}
	}
	return out
}

// unescaped is a text as it is read: escapes and entities say what they mean, and nothing that acts
// comes in through one.
func (p *page) unescaped(n *ast.Text) string {
	value := n.Segment.Value(p.source)
	if n.IsRaw() && p.cells {
		value = bytes.ReplaceAll(value, []byte(`\|`), []byte("|"))
	}
	if !n.IsRaw() {
		value = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(value)))
	}
	return plain.Strip(string(value))
}

func underlined(s style) style {
	s.underline = true
	return s
}

// link is a text with where it leads: a person sees the address, not only what the model calls it.
func (p *page) link(label []span, to string, s style) []span {
	var said strings.Builder
	for _, piece := range label {
		said.WriteString(piece.text)
	}
	to = plain.Strip(to)
	if to == "" || said.String() == to || "mailto:"+said.String() == to {
		return label
	}
	address := s
	address.faint = true
	return append(label, span{" (" + to + ")", address})
}
