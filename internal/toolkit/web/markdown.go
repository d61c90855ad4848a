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
)

// Markdown turns a page into Markdown and returns its title. Of a page with a main element it shows
// only that. It reads tokens and builds no tree, so that its time is linear for any nesting.
func Markdown(page string, base *url.URL) (text, title string) {
	m := markdown{base: base, mainFrom: -1}
	m.readPage(page)
	shown := m.out
	if m.mainTo > m.mainFrom && m.mainFrom >= 0 && len(bytes.TrimSpace(m.out[m.mainFrom:m.mainTo])) > 0 {
		shown = m.out[m.mainFrom:m.mainTo]
	}
	return string(bytes.TrimSpace(shown)) + "\n", m.title
}

// markdown is a page on its way.
type markdown struct {
	base             *url.URL
	out              []byte
	title            string
	mainFrom, mainTo int    // where the first main element begins and ends in out
	skip             string // the name of an element: its content is left out
	skipped          int    // open elements of that name
	breaks           int    // line feeds that stand before the next text
	space            bool   // a space stands before the next text
	fresh            bool   // nothing stands on the line but what begins it
	lists            []int  // the next number of each open list, 0 without numbers
	quotes, table    int    // open elements
	link             string // where the open link leads
	linkFrom         int    // where its text begins
	pre              bool
	preFrom          int
}

// hidden are elements with content that is no text of the page.
var hidden = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Svg: true, atom.Math: true,
	atom.Iframe: true, atom.Object: true, atom.Select: true,
	atom.Textarea: true, atom.Noframes: true, atom.Noembed: true,
}

// inline are elements that do not end the line.
var inline = map[atom.Atom]bool{
	0: true, atom.A: true, atom.B: true, atom.I: true, atom.U: true, atom.S: true, atom.Em: true, atom.Strong: true,
	atom.Span: true, atom.Code: true, atom.Kbd: true, atom.Samp: true, atom.Var: true, atom.Img: true, atom.Small: true,
	atom.Sub: true, atom.Sup: true, atom.Abbr: true, atom.Cite: true, atom.Q: true, atom.Mark: true, atom.Time: true,
	atom.Del: true, atom.Ins: true, atom.Font: true, atom.Button: true, atom.Label: true, atom.Input: true,
	atom.Wbr: true, atom.Bdi: true, atom.Bdo: true, atom.Data: true, atom.Dfn: true, atom.Br: true, atom.Li: true,
	atom.Ul: true, atom.Ol: true, atom.Tr: true, atom.Td: true, atom.Th: true, atom.Tbody: true, atom.Thead: true,
}

func (m *markdown) readPage(page string) {
	z := html.NewTokenizer(strings.NewReader(page))
	for len(m.out) < maxMarkdown {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			m.closePre()
			m.closeLink()
			return
		case html.TextToken:
			m.addText(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			if t := z.Token(); t.DataAtom != atom.Title || m.skipped > 0 {
				m.openTag(t)
			} else if z.Next() == html.TextToken && m.title == "" {
				m.title = strings.Join(strings.Fields(string(z.Text())), " ")
			}
		case html.EndTagToken:
			m.closeTag(z.Token())
		}
	}
}

// addText adds text as a page shows it: runs of white space are one space, except in a pre.
func (m *markdown) addText(text string) {
	switch {
	case m.skipped > 0:
	case m.pre:
		m.out = append(m.out, text...)
	default:
		if m.table > 0 {
			text = strings.ReplaceAll(text, "|", `\|`)
		}
		m.space = m.space || strings.TrimLeft(text, blanks) != text
		for word := range strings.FieldsSeq(text) {
			m.addInline(word)
			m.space = true
		}
		m.space = m.space && strings.TrimRight(text, blanks) != text
	}
}

const blanks = " \t\r\n\f\u00a0"

// addInline adds a piece of a line behind the text so far.
func (m *markdown) addInline(text string) {
	m.beginLine(len(m.lists))
	if m.space && !m.fresh {
		m.out = append(m.out, ' ')
	}
	m.out = append(m.out, text...)
	m.space, m.fresh = false, false
}

// addMark adds what begins a line, or a part of one: the next text follows it at once.
func (m *markdown) addMark(text string) {
	m.addInline(text)
	m.fresh = true
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
func (m *markdown) beginLine(indent int) {
	if m.breaks == 0 && len(m.out) > 0 {
		return
	}
	if len(m.out) > 0 {
		m.out = append(m.out, "\n\n"[:m.breaks]...)
	}
	m.out = append(m.out, strings.Repeat("> ", min(m.quotes, maxNested))...)
	m.out = append(m.out, strings.Repeat("  ", min(indent, maxNested))...)
	m.breaks, m.space, m.fresh = 0, false, true
}

func (m *markdown) openTag(t html.Token) {
	a, foreign := t.DataAtom, t.DataAtom == atom.Svg || t.DataAtom == atom.Math
	switch {
	case m.skipped > 0:
		if t.Data == m.skip && t.Type == html.StartTagToken {
			m.skipped++
		}
		return
	case hidden[a]:
		if !foreign || t.Type == html.StartTagToken {
			m.skip, m.skipped = t.Data, 1
		}
		return
	case m.pre:
		if a == atom.Br {
			m.out = append(m.out, '\n')
		}
		return
	case !inline[a]:
		m.breakLine(2)
	}
	switch a {
	case atom.Main:
		if m.mainFrom < 0 {
			m.mainFrom = len(m.out)
		}
	case atom.Br:
		m.breakLine(1)
	case atom.Hr:
		m.addInline("---")
		m.breakLine(2)
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		m.addMark(strings.Repeat("#", int(t.Data[1]-'0')) + " ")
	case atom.Blockquote:
		m.quotes++
	case atom.Ul, atom.Ol:
		m.breakLine(2 - min(len(m.lists), 1))
		m.lists = append(m.lists, map[atom.Atom]int{atom.Ol: 1}[a])
	case atom.Li:
		m.openItem()
	case atom.Code, atom.Kbd, atom.Samp:
		m.addMark("`")
	case atom.Pre:
		m.closeLink()
		m.pre, m.preFrom = true, len(m.out)
	case atom.A:
		m.closeLink()
		if m.link = m.absolute(t); m.link != "" {
			m.addMark("[")
			m.linkFrom = len(m.out)
		}
	case atom.Table:
		m.table++
	case atom.Tr:
		m.fresh, m.breaks = false, max(m.breaks, 1)
	case atom.Td, atom.Th:
		m.space = true
		m.addMark("| ")
	}
}

// openItem begins an item of a list; one outside of any is of a list without numbers.
func (m *markdown) openItem() {
	m.fresh = false
	m.breakLine(1)
	marker, last := "- ", len(m.lists)-1
	if last >= 0 && m.lists[last] > 0 {
		marker = strconv.Itoa(m.lists[last]) + ". "
		m.lists[last]++
	}
	m.beginLine(max(0, last))
	m.addMark(marker)
}

func (m *markdown) closeTag(t html.Token) {
	switch {
	case m.skipped > 0:
		if t.Data == m.skip {
			m.skipped--
		}
		return
	case m.pre:
		if t.DataAtom == atom.Pre {
			m.closePre()
		}
		return
	}
	switch t.DataAtom {
	case atom.Main:
		if m.mainTo == 0 {
			m.mainTo = len(m.out)
		}
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
		m.table = max(0, m.table-1)
	}
	if !inline[t.DataAtom] {
		m.fresh = false
		m.breakLine(2)
	}
}

// closeLink writes an open link: its text is one line.
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
	if !m.pre {
		return
	}
	text := strings.Trim(string(m.out[m.preFrom:]), "\r\n")
	longest, run := 2, 0
	for i := range len(text) {
		if run++; text[i] != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	m.out, m.pre, m.fresh, m.table = m.out[:m.preFrom], false, false, 0 // a fence does not fit into a cell
	m.breakLine(2)
	m.addInline(fence + "\n" + text + "\n" + fence)
	m.breakLine(2)
}

// absolute returns the address that a link leads to, "" for one that leads nowhere else.
func (m *markdown) absolute(t html.Token) string {
	for _, a := range t.Attr {
		u, err := m.base.Parse(strings.TrimSpace(a.Val))
		if a.Key == "href" && err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" &&
			!strings.HasPrefix(a.Val, "#") && len(a.Val) < maxURL {
			return inBrackets.Replace(u.String())
		}
	}
	return ""
}

// inBrackets escapes what would end the address of a link.
var inBrackets = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20", "<", "%3C", ">", "%3E")
