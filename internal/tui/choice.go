package tui

import (
	"strings"

	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

// picking has the person choose one of several things, by typing a part of it.
type picking struct {
	*chat.Choice
	query  editor
	picked int
}

// fits are the options that hold what was typed.
func (p *picking) fits() (out []chat.Option) {
	oneLine := func(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }
	for _, o := range p.Options {
		if strings.Contains(oneLine(o.Text), oneLine(p.query.value())) {
			out = append(out, o)
		}
	}
	p.picked = max(0, min(p.picked, len(out)-1))
	return out
}

func (p *picking) field() *editor { return &p.query }

func (p *picking) keys(m *model) ([]key, bool) {
	fits := p.fits()
	return append(
		pickKeys(&p.picked, len(fits), nil),
		key{"enter", m.Text.T("[Enter] choose"), func() {
			if len(fits) > 0 {
				m.closeDialog()
				p.Then(fits[p.picked].Value)
			}
		}},
		key{"esc", m.Text.T("[Esc] back"), m.closeDialog},
	), false
}

func (p *picking) view(m *model) [][]span {
	var options []string
	for _, o := range p.fits() {
		options = append(options, plain.Line(o.Text))
	}
	head := []span{
		{"? ", style{fg: cyan, bold: true}},
		{p.Title + " ", style{bold: true}},
		{text: plain.Line(p.query.value())},
		{" ", style{reverse: true}},
	}
	return append([][]span{head}, m.screen.choices(options, p.picked)...)
}

// undoing asks whether an undo is done (decision 16).
type undoing struct {
	*chat.UndoOffer
	busy bool
}

func (u *undoing) field() *editor { return nil }

func (u *undoing) view(*model) [][]span { return nil }

func (u *undoing) keys(m *model) ([]key, bool) {
	list := []key{{"y o", m.Text.T("[y] undo"), func() {
		u.busy = true
		u.Agree(func() {
			if m.dialog == dialog(u) {
				m.closeDialog()
			}
		})
	}}}
	if u.More {
		list = append(list, key{"v", m.Text.T("[v] the whole diff"), u.ShowWhole})
	}
	return append(list, key{"n esc", m.Text.T("[n] leave it"), func() {
		m.closeDialog()
		u.Refuse()
	}}), u.busy
}

// instead asks whether a message is to take the place of what the session waits for (decision 10).
type instead struct {
	typed    string
	question bool
}

func (d *instead) field() *editor { return nil }

func (d *instead) view(m *model) [][]span {
	return wrap([]span{{m.Text.T("The run waits for your answer (/approvals). Sent now, your message withdraws what it asks about, and nothing of that is run."), style{fg: yellow}}}, m.screen.width-2)
}

func (d *instead) keys(m *model) ([]key, bool) {
	send := func(when store.WhenBusy) func() {
		return func() {
			m.closeDialog()
			m.Due = when == store.Queue && m.Waiting()
			m.Send(d.typed, when)
		}
	}
	list := []key{{"y o", m.Text.T("[y] send and withdraw"), send(store.Steer)}}
	if !d.question {
		list = append(list, key{"q", m.Text.T("[q] send when this run has ended"), send(store.Queue)})
	}
	return append(list, key{"n esc", m.Text.T("[n] do not send"), func() {
		m.closeDialog()
		m.back(d.typed)
		m.Due = m.Waiting()
	}}), false
}

// with puts a message behind the one that the person has been asked about, and asks no more about
// that: what they have not decided about is a part of it.
func (m *model) with(typed string) string {
	if d, ok := m.dialog.(*instead); ok {
		m.closeDialog()
		return d.typed + "\n" + typed
	}
	return typed
}

// back puts a message that was not sent into the prompt, before what has been written there
// meanwhile.
func (m *model) back(typed string) {
	if strings.HasPrefix(typed, "/") { // as it is typed: else it would be a command
		typed = "/" + typed
	}
	m.history.ends()
	if written := m.draft.value(); written != "" {
		typed += "\n" + written
	}
	m.draft.set(typed)
}
