package tui

import (
	"strings"

	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/plain"
)

// picking has the person choose one of several things, by typing a part of it.
type picking struct {
	*chat.Choice
	query  editor
	picked int
}

// fits are the options that hold what was typed.
func (p *picking) fits() []chat.Option {
	wanted := strings.Join(strings.Fields(strings.ToLower(p.query.value())), " ")
	var out []chat.Option
	for _, o := range p.Options {
		if strings.Contains(strings.Join(strings.Fields(strings.ToLower(o.Text)), " "), wanted) {
			out = append(out, o)
		}
	}
	return out
}

func (p *picking) key(m *model, name, typed string) {
	fits := p.fits()
	switch name {
	case "esc":
		m.closeDialog()
	case "up", "ctrl+p":
		p.picked = max(0, p.picked-1)
	case "down", "ctrl+n":
		p.picked = min(max(0, len(fits)-1), p.picked+1)
	case "enter":
		if p.picked < len(fits) {
			m.closeDialog()
			p.Then(fits[p.picked].Value)
		}
	default:
		if !p.query.key(name) {
			p.query.insert(typed)
		}
		p.picked = 0
	}
}

// paste looks for what is pasted, as typing does.
func (p *picking) paste(s string) (writes, fits bool) {
	p.picked = 0
	return true, p.query.insert(strings.Join(strings.Fields(s), " "))
}

func (p *picking) view(m *model) [][]span {
	width := m.screen.width - 2
	lines := [][]span{{
		{"? ", style{fg: cyan, bold: true}},
		{p.Title + " ", style{bold: true}},
		{plain.Line(p.query.value()), style{}},
		{" ", style{reverse: true}},
	}}
	fits := p.fits()
	most := m.screen.choices(min(10, max(3, m.screen.height/2)))
	from := min(max(0, p.picked-most/2), max(0, len(fits)-most))
	for i := from; i < min(len(fits), from+most); i++ {
		if i == p.picked { // the whole of it is seen
			lines = m.screen.choice(lines, true, "", "", plain.Line(fits[i].Text), width)
			continue
		}
		lines = append(lines, []span{{text: "    " + cut(plain.Line(fits[i].Text), width-5)}})
	}
	return append(lines, m.screen.keyLines(len(lines), m.Text.T("[Enter] choose"), m.Text.T("[Esc] back"))...)
}
