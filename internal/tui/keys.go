package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
)

// pressed obeys a key.
func (m *model) pressed(msg tea.KeyPressMsg) tea.Cmd {
	name, typed := msg.String(), msg.Key().Text
	m.hint, m.runHint = "", ""
	if name != "ctrl+c" {
		m.once = false
	}
	if m.leaving {
		return nil
	}
	switch name {
	case "ctrl+c":
		return m.cancel()
	case "ctrl+z":
		return m.suspend()
	}
	if m.dialog != nil && m.armed {
		return m.answerKey(name, typed)
	}
	m.stillTyping()
	if m.history.searching {
		return m.history.key(m, name, typed)
	}
	if m.popup.key(m, name) {
		return nil
	}
	switch name {
	case "esc":
		return m.escape()
	case "ctrl+d":
		if m.draft.empty() {
			m.leave()
			return nil
		}
		m.draft.key("delete")
		return nil
	case "enter":
		return m.enter()
	case "tab":
		if m.dialog != nil {
			m.armed = true
			return nil
		}
		if waiting(m.state) && m.draft.empty() {
			clear(m.later)
			m.due, m.typed = true, time.Time{}
			return nil
		}
		m.popup.open(m)
		return m.popup.fetch(m)
	case "ctrl+r":
		m.history.search(m)
		return m.history.begins(m)
	case "ctrl+o":
		return m.show("")
	case "ctrl+l":
		return tea.ClearScreen
	case "up", "ctrl+p":
		if m.draft.vertical(-1, m.screen.width-3, m.pasted) {
			return nil
		}
		if queue := m.stream.Queue(); m.draft.empty() && m.history.at == 0 && len(queue) > 0 {
			return m.takeBack(queue[len(queue)-1], true)
		}
		return m.history.back(m)
	case "down", "ctrl+n":
		if !m.draft.vertical(1, m.screen.width-3, m.pasted) {
			m.history.newer(m)
		}
		return nil
	}
	if !m.draft.key(name) {
		if typed == "" {
			return nil
		}
		m.fits(m.draft.insert(typed))
	}
	m.popup.follow(m)
	return m.popup.fetch(m)
}

// suspend obeys Ctrl-Z, unless runs go on in this process: they would stand still with it, and
// other programs wait for it.
func (m *model) suspend() tea.Cmd {
	if m.IsEngine != nil && m.IsEngine() {
		m.stays()
		return nil
	}
	return tea.Suspend
}

// stays says why Ctrl-Z stops nothing.
func (m *model) stays() {
	m.hint = m.Text.T("no Ctrl-Z: runs go on in this program. Ctrl-D leaves, regie chat -c returns")
}

// cancel obeys Ctrl-C: it closes what is open, clears what was written, interrupts the run; where
// there is nothing of that, twice leaves.
func (m *model) cancel() tea.Cmd {
	_, asks := m.dialog.(moves)
	switch {
	case m.history.searching:
		m.history.searching = false
	case m.popup.shown():
		m.popup = popup{}
	case m.dialog != nil && !asks:
		if d, ok := m.dialog.(*instead); ok {
			d.back(m)
			return nil
		}
		m.closeDialog()
	case !m.draft.empty() && !m.hasField():
		m.history.add(m.draft.value())
		m.draft = editor{killed: m.draft.killed}
	case m.interrupting || m.once:
		m.result.Signalled = m.interrupting
		m.leave()
	case !m.round.IsZero():
		return m.interrupt()
	default:
		m.once = true
	}
	return nil
}

// escape obeys Esc: it interrupts the run; where nothing runs, or the run waits for the person who
// writes, twice clears what was written.
func (m *model) escape() tea.Cmd {
	switch {
	case !m.round.IsZero() && (m.draft.empty() || !waiting(m.state)):
		return m.interrupt()
	case !m.draft.empty() && time.Since(m.draftEsc) < 2*time.Second:
		m.history.add(m.draft.value())
		m.draft = editor{killed: m.draft.killed}
	case !m.draft.empty():
		m.draftEsc = time.Now()
		m.hint = m.Text.T("Esc once more clears what you wrote")
	}
	return nil
}

// enter sends what was written, or obeys it.
func (m *model) enter() tea.Cmd {
	if n := m.draft.at; n > 0 && n == len(m.draft.text) && m.draft.text[n-1] == '\\' { // goes on on the next line
		m.draft.remove(n-1, n)
		m.draft.insert("\n")
		return nil
	}
	typed := m.draft.value()
	if strings.TrimSpace(typed) == "" || m.heldBack() {
		return nil
	}
	m.draft = editor{killed: m.draft.killed}
	m.popup = popup{}
	m.history.ends()
	m.history.add(typed)
	m.forgo()
	switch {
	case strings.HasPrefix(typed, "//"):
		return m.say(typed[1:])
	case strings.HasPrefix(typed, "/"):
		return m.command(strings.TrimSpace(typed))
	case strings.HasPrefix(typed, regie.CommandMark):
		return m.give(typed)
	default:
		return m.say(typed)
	}
}
