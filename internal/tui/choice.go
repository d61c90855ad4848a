package tui

import (
	"strings"

	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/sanitize"
)

// picking has the person choose one of several things, by typing a part of it.
type picking struct {
	*chat.Choice
	query  editor
	picked int
}

// matchingOptions returns the options that hold what was typed.
func (p *picking) matchingOptions() (out []chat.Option) {
	oneLine := func(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }
	for _, o := range p.Options {
		if strings.Contains(oneLine(o.Text), oneLine(p.query.fullText())) {
			out = append(out, o)
		}
	}
	p.picked = max(0, min(p.picked, len(out)-1))
	return out
}

func (p *picking) inputField() *editor { return &p.query }

func (p *picking) dialogKeys(m *model) ([]chat.Key, bool) {
	fits := p.matchingOptions()
	return append(
		pickKeys(&p.picked, len(fits), nil),
		chat.Key{Names: "enter", Label: m.Text.T("[Enter] choose"), Do: func() {
			if len(fits) > 0 {
				m.closeDialog()
				p.Then(fits[p.picked].Value)
			}
		}},
		chat.Key{Names: "esc", Label: m.Text.T("[Esc] back"), Do: m.closeDialog},
	), false
}

func (p *picking) render(m *model) [][]span {
	var options []string
	for _, o := range p.matchingOptions() {
		options = append(options, sanitize.Line(o.Text))
	}
	head := []span{
		{"? ", style{fg: cyan, bold: true}},
		{p.Title + " ", style{bold: true}},
		{text: sanitize.Line(p.query.fullText())},
		{" ", style{reverse: true}},
	}
	return append([][]span{head}, m.screen.renderChoices(options, p.picked)...)
}

// confirming asks something before it is done.
type confirming struct {
	said   string
	offers []chat.Key
}

func (c *confirming) inputField() *editor { return nil }

func (c *confirming) render(m *model) [][]span {
	if c.said == "" {
		return nil
	}
	return wrapSpans([]span{{c.said, style{fg: yellow}}}, m.screen.width-2)
}

func (c *confirming) dialogKeys(m *model) (list []chat.Key, busy bool) {
	for _, key := range c.offers {
		do := key.Do
		key.Do = func() {
			m.closeDialog()
			do()
		}
		list = append(list, key)
	}
	return list, false
}

// replaceDialog closes the open dialog before another one opens. A pending approval or question
// comes back after that one.
func (m *model) replaceDialog() {
	switch m.dialog.(type) {
	case nil:
	case *picking, *confirming:
		m.decideByKey("esc")
	default:
		m.closeOvertaken()
		m.Due = true
	}
}

// restorePrompt puts a message that was not sent into the prompt, before what has been written
// there meanwhile.
func (m *model) restorePrompt(typed string) {
	if strings.HasPrefix(typed, "/") { // as it is typed: else it would be a command
		typed = "/" + typed
	}
	m.history.endBrowsing()
	if written := m.draft.fullText(); written != "" {
		typed += "\n" + written
	}
	m.draft.replaceText(typed)
}
