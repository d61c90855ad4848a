package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
)

// keyboard is a model as its keys act on it.
type keyboard struct{ *model }

// handleKey obeys a key.
func (m keyboard) handleKey(msg tea.KeyPressMsg) {
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
		m.handleCancel()
		return
	case name == "ctrl+z":
		m.handleSuspend()
		return
	case name == "shift+tab":
		chat.CycleMode(m.Conversation)
		return
	case m.dialog != nil && m.armed:
		m.answerKey(name, typed)
		return
	}
	m.typed = time.Now()
	switch {
	case m.history.searching:
		m.history.handleKey(m.model, name, typed)
	case m.popup.handleKey(m.model, name), m.promptKey(name):
	default:
		if !m.draft.handleKey(name) && typed != "" {
			m.draft.insertText(typed)
		}
		m.popup.updateOffers(m.model)
	}
}

// promptKey obeys a key of the prompt that edits nothing, and reports whether it was one.
func (m keyboard) promptKey(name string) bool {
	switch name {
	case "esc":
		m.handleEscape()
	case "ctrl+d":
		if !m.draft.isEmpty() {
			return false
		}
		m.Leave()
	case "enter":
		m.handleEnter()
	case "tab":
		switch {
		case m.dialog != nil:
			m.armed = true
		case m.Waiting() && m.draft.isEmpty():
			clear(m.Later)
			m.Due, m.typed = true, time.Time{}
		default:
			m.popup.updateOffers(m.model)
		}
	case "ctrl+r":
		m.history.startSearch(m.model)
	case "ctrl+o":
		m.ShowCall("")
	case "ctrl+l":
		m.queueCommand(drawAgain)
	case "up", "ctrl+p":
		queue := m.Queue()
		switch {
		case m.draft.moveVertically(-1, m.screen.width-3, m.describePaste):
		case m.draft.isEmpty() && m.history.at == 0 && len(queue) > 0:
			m.TakeBack(queue[len(queue)-1], true)
		default:
			m.history.loadEntries(m.model, func() { m.history.showOlder(m.model) })
		}
	case "down", "ctrl+n":
		if !m.draft.moveVertically(1, m.screen.width-3, m.describePaste) {
			m.history.showNewer(m.model)
		}
	default:
		return false
	}
	return true
}

// handleSuspend obeys Ctrl-Z, unless runs go on in this process: they would stand still with it,
// and other programs wait for it.
func (m keyboard) handleSuspend() {
	if m.config.IsEngine != nil && m.config.IsEngine() {
		m.hint = m.Text.T("no Ctrl-Z: runs go on in this program. Ctrl-D leaves, regie chat -c returns")
		return
	}
	m.queueCommand(tea.Suspend)
}

// handleCancel handles Ctrl-C: it closes what is open, clears the text, or interrupts the run; if
// there is nothing to do, a second Ctrl-C leaves.
func (m keyboard) handleCancel() {
	switch m.dialog.(type) {
	case *picking, *confirming:
		m.decideByKey("esc")
		return
	}
	switch {
	case m.history.searching:
		m.history.searching = false
	case m.popup.isShown():
		m.popup.offers = nil
	case !m.draft.isEmpty() && !m.hasField():
		m.history.addEntry(m.draft.fullText())
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

// handleEscape obeys Esc: it interrupts the run; where nothing runs, or the run waits for the
// person who writes, twice clears what was written.
func (m keyboard) handleEscape() {
	switch {
	case !m.Round.IsZero() && (m.draft.isEmpty() || !m.Waiting()):
		m.Interrupt()
	case !m.draft.isEmpty() && time.Since(m.draftEsc) < 2*time.Second:
		m.history.addEntry(m.draft.fullText())
		m.draft = editor{}
	case !m.draft.isEmpty():
		m.draftEsc = time.Now()
		m.hint = m.Text.T("Esc once more clears what you wrote")
	}
}

// handleEnter sends what was written, or obeys it. What was opened and left again for the prompt is
// closed: a message that it was about goes with this one.
func (m keyboard) handleEnter() {
	typed := m.draft.fullText()
	if strings.TrimSpace(typed) == "" {
		return
	}
	m.draft, m.popup.offers = editor{}, nil
	m.history.endBrowsing()
	m.history.addEntry(typed)
	switch m.dialog.(type) {
	case *picking, *confirming:
		m.decideByKey("esc")
	}
	if !m.draft.isEmpty() && !strings.ContainsAny(typed[:1], "/"+regie.CommandMark) {
		typed = m.draft.fullText() + "\n" + typed
		m.draft = editor{}
	}
	m.Enter(typed)
}
