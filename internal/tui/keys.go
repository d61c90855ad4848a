package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
)

// keyboard is a model as its keys act on it.
type keyboard struct{ *model }

// pressed obeys a key.
func (m keyboard) pressed(msg tea.KeyPressMsg) {
	name, typed := msg.String(), msg.Key().Text
	m.hint = ""
	if name != "ctrl+c" {
		m.once = false
	}
	if m.leaving {
		return
	}
	switch {
	case name == "ctrl+c":
		m.cancel()
		return
	case name == "ctrl+z":
		m.suspend()
		return
	case m.dialog != nil && m.armed:
		m.answerKey(name, typed)
		return
	}
	m.typed = time.Now()
	switch {
	case m.history.searching:
		m.history.key(m.model, name, typed)
	case m.popup.key(m.model, name), m.promptKey(name):
	default:
		if !m.draft.key(name) && typed != "" {
			m.draft.insert(typed)
		}
		m.popup.follow(m.model)
	}
}

// promptKey obeys a key of the prompt that edits nothing, and reports whether it was one.
func (m keyboard) promptKey(name string) bool {
	switch name {
	case "esc":
		m.escape()
	case "ctrl+d":
		if !m.draft.empty() {
			return false
		}
		m.Leave()
	case "enter":
		m.enter()
	case "tab":
		switch {
		case m.dialog != nil:
			m.armed = true
		case m.Waiting() && m.draft.empty():
			clear(m.Later)
			m.Due, m.typed = true, time.Time{}
		default:
			m.popup.follow(m.model)
		}
	case "ctrl+r":
		m.history.search(m.model)
	case "ctrl+o":
		m.ShowCall("")
	case "ctrl+l":
		m.run(tea.ClearScreen)
	case "up", "ctrl+p":
		queue := m.Queue()
		switch {
		case m.draft.vertical(-1, m.screen.width-3, m.pasted):
		case m.draft.empty() && m.history.at == 0 && len(queue) > 0:
			m.TakeBack(queue[len(queue)-1], true)
		default:
			m.history.load(m.model, func() { m.history.older(m.model) })
		}
	case "down", "ctrl+n":
		if !m.draft.vertical(1, m.screen.width-3, m.pasted) {
			m.history.newer(m.model)
		}
	default:
		return false
	}
	return true
}

// suspend obeys Ctrl-Z, unless runs go on in this process: they would stand still with it, and
// other programs wait for it.
func (m keyboard) suspend() {
	if m.config.IsEngine != nil && m.config.IsEngine() {
		m.hint = m.Text.T("no Ctrl-Z: runs go on in this program. Ctrl-D leaves, regie chat -c returns")
		return
	}
	m.run(tea.Suspend)
}

// cancel obeys Ctrl-C: it closes what is open, clears what was written, interrupts the run; where
// there is nothing of that, twice leaves.
func (m keyboard) cancel() {
	switch m.dialog.(type) {
	case *picking, *confirming:
		m.decide("esc")
		return
	}
	switch {
	case m.history.searching:
		m.history.searching = false
	case m.popup.shown():
		m.popup.offers = nil
	case !m.draft.empty() && !m.hasField():
		m.history.add(m.draft.value())
		m.draft = editor{}
	case m.Interrupting || m.once:
		m.result.Signalled = m.Interrupting
		m.Leave()
	case !m.Round.IsZero():
		m.Interrupt()
	default:
		m.once = true
	}
}

// escape obeys Esc: it interrupts the run; where nothing runs, or the run waits for the person who
// writes, twice clears what was written.
func (m keyboard) escape() {
	switch {
	case !m.Round.IsZero() && (m.draft.empty() || !m.Waiting()):
		m.Interrupt()
	case !m.draft.empty() && time.Since(m.draftEsc) < 2*time.Second:
		m.history.add(m.draft.value())
		m.draft = editor{}
	case !m.draft.empty():
		m.draftEsc = time.Now()
		m.hint = m.Text.T("Esc once more clears what you wrote")
	}
}

// enter sends what was written, or obeys it. What was opened and left again for the prompt is
// closed: a message that it was about goes with this one.
func (m keyboard) enter() {
	typed := m.draft.value()
	if strings.TrimSpace(typed) == "" {
		return
	}
	m.draft, m.popup.offers = editor{}, nil
	m.history.ends()
	m.history.add(typed)
	switch m.dialog.(type) {
	case *picking, *confirming:
		m.decide("esc")
	}
	if !m.draft.empty() && !strings.ContainsAny(typed[:1], "/"+regie.CommandMark) {
		typed = m.draft.value() + "\n" + typed
		m.draft = editor{}
	}
	m.Enter(typed)
}
