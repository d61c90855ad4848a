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
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(plainNodes{}, 100))))
})

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

// renderBlocks renders Markdown from its top-level block number from on, block by block.
func renderBlocks(source string, from int) []template.HTML {
	data := []byte(sanitize.Strip(source))
	document := markdown().Parser().Parse(text.NewReader(data))
	var out []template.HTML
	for node, n := document.FirstChild(), 0; node != nil; node, n = node.NextSibling(), n+1 {
		if n < from {
			continue
		}
		var block bytes.Buffer
		if err := markdown().Renderer().Render(&block, data, node); err != nil {
			block.Reset()
			template.HTMLEscape(&block, data)
		}
		clean := boxes.Replace(sanitizer().SanitizeReader(&block).String())
		out = append(out, template.HTML(clean)) //nolint:gosec // the sanitizer has made it
	}
	return out
}
