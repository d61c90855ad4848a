package web

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxMarkdown = 8 << 20 // bytes: the addresses of links may make it longer than the page
	maxNested   = 8       // lists or quotes within each other that are shown as such
	maxTitle    = 1000
)

// Markdown turns a page into Markdown and returns its title. Of a page with a main element it shows
// only that. It reads tokens and builds no tree, so that its time is linear for any nesting.
func Markdown(page string, base *url.URL) (text, title string) {
	whole := &markdown{base: base}
	whole.readPage(page)
	shown := whole.out
	if whole.sawMain {
		part := &markdown{base: base, onlyMain: true}
		part.readPage(page)
		if len(bytes.TrimSpace(part.out)) > 0 {
			shown = part.out
		}
	}
	return string(bytes.TrimSpace(shown)) + "\n", strings.Join(strings.Fields(whole.title), " ")
}

// markdown is a page on its way.
type markdown struct {
	base              *url.URL
	out               []byte
	title             string
	inTitle           bool
	onlyMain, sawMain bool
	main              int // open main elements

	skip    string // the name of the element whose content is left out
	skipped int    // open elements of that name

	breaks int  // line feeds that stand before the next text
	space  bool // a space stands before the next text
	fresh  bool // nothing stands on the line but what begins it
	lists  []int
	quotes int

	link     string // where the open link leads
	linkFrom int    // where its text begins
	pre      int    // open pre elements
	preFrom  int    // where the text of the outermost one begins
	table    int    // open tables
	rows     int    // of the outermost one
	cells    int    // of its row
}

// hidden are elements whose content is no text of the page.
var hidden = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Svg: true, atom.Math: true,
	atom.Iframe: true, atom.Object: true, atom.Select: true, atom.Textarea: true, atom.Noframes: true, atom.Noembed: true,
}

// blocks are elements that stand apart from what is before and after them.
var blocks = map[atom.Atom]bool{
	atom.P: true, atom.Div: true, atom.Section: true, atom.Article: true, atom.Main: true, atom.Header: true,
	atom.Footer: true, atom.Nav: true, atom.Aside: true, atom.Figure: true, atom.Figcaption: true, atom.Form: true,
	atom.Dl: true, atom.Dt: true, atom.Dd: true, atom.Details: true, atom.Summary: true, atom.Address: true,
	atom.Fieldset: true, atom.Body: true, atom.Hgroup: true, atom.H1: true, atom.H2: true, atom.H3: true, atom.H4: true,
	atom.H5: true, atom.H6: true, atom.Hr: true, atom.Blockquote: true, atom.Pre: true, atom.Table: true,
}

func (m *markdown) readPage(page string) {
	z := html.NewTokenizer(strings.NewReader(page))
	for len(m.out) < maxMarkdown {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			m.pre = min(m.pre, 1)
			m.closePre()
			m.closeLink()
			return
		case html.TextToken:
			m.addText(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			m.openTag(z.Token())
		case html.EndTagToken:
			m.closeTag(z.Token())
		}
	}
}

// shows reports whether what is read now is part of what is shown.
func (m *markdown) shows() bool { return m.skipped == 0 && (!m.onlyMain || m.main > 0) }

// addText adds text as a page shows it: runs of white space are one space, except in a pre.
func (m *markdown) addText(text string) {
	switch {
	case m.inTitle && len(m.title) < maxTitle:
		m.title += text[:min(len(text), maxTitle)]
	case m.inTitle, !m.shows():
	case m.pre > 0:
		m.out = append(m.out, text...)
	default:
		if m.table > 0 {
			text = strings.ReplaceAll(text, "|", `\|`)
		}
		for word := range strings.FieldsSeq(text) {
			m.space = m.space || strings.IndexAny(text, " \t\r\n\f\u00a0") == 0
			m.addInline(word)
			m.space = true
		}
		m.space = m.space && (text == "" || strings.ContainsAny(text[len(text)-1:], " \t\r\n\f"))
	}
}

// addInline adds a piece of a line behind what stands before it.
func (m *markdown) addInline(text string) {
	m.beginLine()
	if m.space && !m.fresh {
		m.out = append(m.out, ' ')
	}
	m.out = append(m.out, text...)
	m.space, m.fresh = false, false
}

// breakLine has n line feeds stand before the next text; cells of a table stay on their line.
func (m *markdown) breakLine(n int) {
	if m.table > 0 {
		m.space = true
	} else if !m.fresh {
		m.breaks = max(m.breaks, n)
	}
}

// beginLine writes the line feeds before a text, with what begins its line.
func (m *markdown) beginLine() {
	if m.breaks == 0 && len(m.out) > 0 {
		return
	}
	if len(m.out) > 0 {
		m.out = append(m.out, "\n\n"[:min(m.breaks, 2)]...)
	}
	m.out = append(m.out, strings.Repeat("> ", min(m.quotes, maxNested))...)
	m.out = append(m.out, strings.Repeat("  ", min(len(m.lists), maxNested))...)
	m.breaks, m.space, m.fresh = 0, false, true
}

func (m *markdown) openTag(t html.Token) {
	switch {
	case m.skipped > 0:
		if t.Data == m.skip && t.Type == html.StartTagToken {
			m.skipped++
		}
		return
	case t.DataAtom == atom.Title:
		m.inTitle = true
		return
	case hidden[t.DataAtom]:
		if foreign := t.DataAtom == atom.Svg || t.DataAtom == atom.Math; !foreign || t.Type == html.StartTagToken {
			m.skip, m.skipped = t.Data, 1
		}
		return
	case t.DataAtom == atom.Main:
		m.sawMain = true
		m.main++
	}
	if !m.shows() {
		return
	}
	if m.pre > 0 {
		m.openInPre(t.DataAtom)
		return
	}
	if blocks[t.DataAtom] {
		m.breakLine(2)
	}
	m.openShown(t)
}

// openInPre heeds the few elements that matter in preformatted text.
func (m *markdown) openInPre(a atom.Atom) {
	switch a {
	case atom.Pre:
		m.pre++
	case atom.Br:
		m.out = append(m.out, '\n')
	}
}

func (m *markdown) openShown(t html.Token) {
	switch a := t.DataAtom; a {
	case atom.Br:
		m.breakLine(1)
	case atom.Hr:
		m.addInline("---")
		m.breakLine(2)
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		m.addInline(strings.Repeat("#", int(t.Data[1]-'0')) + " ")
		m.fresh = true
	case atom.Blockquote:
		m.quotes++
	case atom.Ul, atom.Ol:
		m.openList(a == atom.Ol)
	case atom.Li:
		m.openItem()
	case atom.Code, atom.Kbd, atom.Samp:
		m.addInline("`")
		m.fresh = true
	case atom.Pre:
		m.closeLink()
		m.pre, m.preFrom = 1, len(m.out)
	case atom.A:
		m.closeLink()
		if m.link = m.absolute(attribute(t, "href")); m.link != "" {
			m.addInline("[")
			m.linkFrom, m.fresh = len(m.out), true
		}
	case atom.Img:
		alt, source := strings.Join(strings.Fields(attribute(t, "alt")), " "), m.absolute(attribute(t, "src"))
		if alt != "" && source != "" {
			m.addInline("![" + alt + "](" + source + ")")
		}
	case atom.Table:
		if m.table++; m.table == 1 {
			m.rows, m.cells = 0, 0
		}
	case atom.Tr:
		m.closeRow()
	case atom.Td, atom.Th:
		m.openCell()
	}
}

func (m *markdown) openList(numbered bool) {
	if len(m.lists) == 0 {
		m.breakLine(2)
	}
	number := 0
	if numbered {
		number = 1
	}
	m.lists = append(m.lists, number)
}

// openItem begins an item of a list; one outside of any is of an unordered list.
func (m *markdown) openItem() {
	m.fresh = false
	if m.breakLine(1); m.table > 0 {
		return
	}
	marker := "- "
	if last := len(m.lists) - 1; last >= 0 {
		if n := m.lists[last]; n > 0 {
			marker = strconv.Itoa(n) + ". "
			m.lists[last]++
		}
		inner := m.lists[last]
		m.lists = m.lists[:last]
		m.beginLine()
		m.lists = append(m.lists, inner)
	}
	m.addInline(marker)
	m.fresh = true
}

func (m *markdown) openCell() {
	if m.table != 1 {
		m.space = true
		return
	}
	if m.cells == 0 {
		m.breaks = max(m.breaks, 1)
	} else {
		m.space = true
	}
	m.addInline("| ")
	m.fresh = true
	m.cells++
}

// closeRow ends the row of the outermost table; the first one is its head.
func (m *markdown) closeRow() {
	if m.table != 1 || m.cells == 0 {
		return
	}
	m.space = true
	m.addInline("|")
	if m.rows++; m.rows == 1 {
		m.breaks = 1
		m.addInline(strings.Repeat("|---", m.cells) + "|")
	}
	m.cells, m.breaks = 0, 1
}

func (m *markdown) closeTag(t html.Token) {
	switch {
	case m.skipped > 0:
		if t.Data == m.skip {
			m.skipped--
		}
		return
	case t.DataAtom == atom.Title:
		m.inTitle = false
		return
	case !m.shows():
		return
	case m.pre > 0:
		if t.DataAtom == atom.Pre {
			m.closePre()
		}
		return
	}
	switch t.DataAtom {
	case atom.Main:
		m.main = max(0, m.main-1)
	case atom.Blockquote:
		m.quotes = max(0, m.quotes-1)
	case atom.Ul, atom.Ol:
		m.fresh = false
		m.lists = m.lists[:max(0, len(m.lists)-1)]
		m.breakLine(2 - min(len(m.lists), 1))
	case atom.Code, atom.Kbd, atom.Samp:
		after := m.space
		m.space = false
		m.addInline("`")
		m.space = after
	case atom.A:
		m.closeLink()
	case atom.Table:
		m.closeRow()
		m.table = max(0, m.table-1)
		m.fresh = false
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		m.fresh = false
	}
	if blocks[t.DataAtom] {
		m.breakLine(2)
	}
}

// closeLink writes an open link: its text stands on one line.
func (m *markdown) closeLink() {
	if m.link == "" {
		return
	}
	text := strings.Join(strings.Fields(string(m.out[m.linkFrom:])), " ")
	if m.out = m.out[:m.linkFrom]; text == "" {
		text = m.link
	}
	m.out = append(m.out, strings.ReplaceAll(text, "](", "] (")+"]("+m.link+")"...)
	m.link, m.fresh = "", false
}

// closePre writes preformatted text in a fence that nothing in it ends.
func (m *markdown) closePre() {
	if m.pre--; m.pre != 0 {
		m.pre = max(0, m.pre)
		return
	}
	text := strings.Trim(string(m.out[m.preFrom:]), "\r\n")
	m.out = m.out[:m.preFrom]
	longest, run := 2, 0
	for i := range len(text) {
		if run++; text[i] != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	m.table = 0 // a fence does not fit into a cell
	m.fresh = false
	m.breakLine(2)
	m.addInline(fence + "\n" + text + "\n" + fence)
	m.breakLine(2)
}

// absolute returns the address that a link of the page leads to, "" for one that leads nowhere.
func (m *markdown) absolute(href string) string {
	if href = strings.TrimSpace(href); href == "" || strings.HasPrefix(href, "#") || len(href) > maxURL {
		return ""
	}
	u, err := m.base.Parse(href)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	return strings.NewReplacer("(", "%28", ")", "%29", " ", "%20", "<", "%3C", ">", "%3E").Replace(u.String())
}

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
