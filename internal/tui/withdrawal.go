package tui

import (
	"strings"

	"github.com/regie-run/regie/internal/store"
)

// with puts a message behind the one that the person has been asked about, and asks no more about
// that: what they have not decided about is a part of it.
func (m *model) with(typed string) string {
	d, ok := m.dialog.(*instead)
	if !ok {
		return typed
	}
	m.closeDialog()
	return d.typed + "\n" + typed
}

// back puts a message that was not sent into the prompt, before what has been written there
// meanwhile.
func (m *model) back(typed string) {
	if strings.HasPrefix(typed, "/") { // as it is typed: else it would be a command
		typed = "/" + typed
	}
	m.history.ends()
	at, size, written := m.draft.at, len(m.draft.text), !m.draft.empty()
	m.draft.at = 0
	m.draft.place(typed, recalledLines)
	if !written {
		return
	}
	m.draft.put("\n")
	m.draft.at = at + len(m.draft.text) - size
	m.hint = m.Text.T("what was not sent stands in the prompt, before what you write")
}

// instead asks whether a message is to take the place of what the session waits for (decision 10).
type instead struct {
	typed    string
	question bool
}

func (d *instead) key(m *model, name, typed string) {
	when := store.Steer
	switch {
	case typed == "y", typed == "o":
	case typed == "q" && !d.question:
		when = store.Queue
	case typed == "n", name == "esc":
		d.back(m)
		return
	default:
		return
	}
	m.closeDialog()
	m.Due = when == store.Queue && m.Waiting()
	m.Send(d.typed, when)
}

// back leaves the message unsent; what stood there before is asked again.
func (d *instead) back(m *model) {
	m.closeDialog()
	m.back(d.typed)
	m.Due = m.Waiting()
}

func (d *instead) view(m *model) [][]span {
	width, t := m.screen.width-2, m.Text
	lines := wrap([]span{{t.T("The run waits for your answer (/approvals). Sent now, your message withdraws what it asks about, and nothing of that is run."), style{fg: yellow}}}, width)
	list := []string{t.T("[y] send and withdraw")}
	if !d.question {
		list = append(list, t.T("[q] send when this run has ended"))
	}
	return append(lines, m.screen.keyLines(len(lines), append(list, t.T("[n] do not send"))...)...)
}
