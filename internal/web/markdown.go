package web

import (
	"bytes"
	"html/template"
	"regexp"
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/regie-run/regie/internal/sanitize"
)

// markdown renders answers. An image becomes a link to it: a page that loads one would tell its
// server what the conversation holds.
var markdown = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.Strikethrough, extension.Linkify, extension.TaskList,
		),
		goldmark.WithParserOptions(
			// in front of tables, and of headings
			parser.WithParagraphTransformers(util.Prioritized(heavyParagraphs{}, 50)),
			parser.WithBlockParsers(util.Prioritized(longHeadings{parser.NewATXHeadingParser()}, 550)),
		),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(plainNodes{}, 100))))
})

// The time that goldmark takes grows with the square of these: beyond them a text shows as it is.
const (
	maxMarkdown = 256 << 10 // bytes
	maxMarks    = 5000      // of a paragraph; bytes of a heading
	maxCells    = 20_000    // of a table
)

// tooDeep matches a line in a hundred quotes and lists.
var tooDeep = regexp.MustCompile(`(?m)^[ \t]*(?:>[ \t]*|(?:[*+-]|\d+[.)])[ \t]+){100}`)

// heavyParagraphs shows paragraphs as they are that goldmark would read for seconds.
type heavyParagraphs struct{}

// Transform implements parser.ParagraphTransformer.
func (heavyParagraphs) Transform(node *ast.Paragraph, reader text.Reader, _ parser.Context) {
	marks, columns := 0, 0
	for i := range node.Lines().Len() {
		line := node.Lines().At(i)
		value := line.Value(reader.Source())
		columns = max(columns, bytes.Count(value, []byte("|")))
		for _, mark := range []string{"*", "_", "~", "["} {
			marks += bytes.Count(value, []byte(mark))
		}
	}
	if marks > maxMarks || columns*node.Lines().Len() > maxCells {
		code := ast.NewCodeBlock()
		code.SetLines(node.Lines())
		node.Parent().ReplaceChild(node.Parent(), node, code)
	}
}

// longHeadings does the same for headings.
type longHeadings struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (longHeadings) Open(_ ast.Node, reader text.Reader, _ parser.Context) (ast.Node, parser.State) {
	line, segment := reader.PeekLine()
	if len(line) <= maxMarks {
		return nil, parser.NoChildren
	}
	code := ast.NewCodeBlock()
	code.Lines().Append(segment)
	return code, parser.NoChildren
}

// plainNodes renders images as links, and headings below those of the page.
type plainNodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (plainNodes) RegisterFuncs(to renderer.NodeRendererFuncRegisterer) {
	to.Register(ast.KindImage, func(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
		image, _ := node.(*ast.Image)
		if entering {
			_, _ = w.WriteString(`<a href="` + string(util.EscapeHTML(util.URLEscape(image.Destination, true))) + `">`)
			if !image.HasChildren() {
				_, _ = w.Write(util.EscapeHTML(image.Destination))
			}
			return ast.WalkContinue, nil
		}
		_, _ = w.WriteString("</a>")
		return ast.WalkContinue, nil
	})
	to.Register(ast.KindHeading, func(w util.BufWriter, _ []byte, node ast.Node, entering bool) (
		ast.WalkStatus, error,
	) {
		heading, _ := node.(*ast.Heading)
		tag := "h" + string('0'+byte(min(6, heading.Level+2))) + ">"
		if entering {
			_, _ = w.WriteString("<" + tag)
		} else {
			_, _ = w.WriteString("</" + tag + "\n")
		}
		return ast.WalkContinue, nil
	})
}

// sanitizer is what HTML of others may hold: text, and links that tell their target nothing of the
// page.
var sanitizer = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li",
		"h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("align").Matching(regexp.MustCompile("^(left|right|center)$")).OnElements("th", "td")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[\w+#-]+$`)).OnElements("code")
	p.AllowAttrs("type").Matching(regexp.MustCompile("^checkbox$")).OnElements("input")
	p.AllowAttrs("checked", "disabled").OnElements("input")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.AllowRelativeURLs(false)
	p.RequireNoReferrerOnLinks(true)
	p.RequireNoFollowOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	return p
})

// boxes are elements that scroll sideways by themselves, for the keyboard too. The sanitizer has
// left no attributes on them.
var boxes = strings.NewReplacer("<table>", `<div class="scroll" tabindex="0"><table>`, "</table>", "</table></div>",
	"<pre>", `<pre tabindex="0">`)

// renderBlocks renders Markdown from its top-level block number from on, block by block. A text
// that goldmark cannot take shows as it is.
func renderBlocks(source string, from int) (out []template.HTML) {
	data := []byte(sanitize.Strip(source))
	asItIs := func() []template.HTML {
		text := `<p class="lines">` + template.HTMLEscapeString(string(data)) + "</p>"
		return []template.HTML{template.HTML(text)}[min(from, 1):] //nolint:gosec // it is escaped
	}
	defer func() {
		if recover() != nil {
			out = asItIs()
		}
	}()
	if len(data) > maxMarkdown || tooDeep.Match(data) {
		return asItIs()
	}
	document := markdown().Parser().Parse(text.NewReader(data))
	for node, n := document.FirstChild(), 0; node != nil; node, n = node.NextSibling(), n+1 {
		if n < from {
			continue
		}
		var block bytes.Buffer
		if markdown().Renderer().Render(&block, data, node) != nil {
			return asItIs()
		}
		clean := boxes.Replace(sanitizer().SanitizeReader(&block).String())
		out = append(out, template.HTML(clean)) //nolint:gosec // the sanitizer has made it
	}
	return out
}
