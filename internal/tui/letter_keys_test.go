package tui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/i18n"
)

// keyed is a model that a person types into, with something that is asked.
func keyed() *model {
	m := newModel(nil, Config{Config: chat.Config{Text: i18n.New("en")}}) //nolint:staticcheck // nothing is asked of the Control
	m.State = regie.SessionWaitingValidation
	m.openDialog(&confirming{offers: []chat.Key{{Names: "y"}, {Names: "n", Do: func() { m.restorePrompt("a message") }}}})
	m.armed = true
	return m
}

func pressed(r rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: r, Text: string(r)} }

// A letter decides when it stands alone; with another one behind it, it is the beginning of a
// message.
func TestLetter(t *testing.T) {
	m := keyed()
	m.handleMessage(pressed('n'))
	if m.dialog == nil {
		t.Fatal("the letter decided at once")
	}
	m.letterStands(m.letter.serial)
	if m.dialog != nil || m.draft.fullText() != "a message" {
		t.Errorf("the letter decided nothing: %q", m.draft.fullText())
	}

	m = keyed()
	m.handleMessage(pressed('n'))
	serial := m.letter.serial
	m.handleMessage(pressed('o'))
	m.letterStands(serial)
	m.handleMessage(pressed('t'))
	if m.dialog == nil || m.armed || m.draft.fullText() != "not" {
		t.Errorf("the message is %q, the question has the keyboard: %v", m.draft.fullText(), m.armed)
	}
	m.typed = time.Now().Add(-time.Hour)
	if m.handleDue(); m.armed {
		t.Error("the question takes the keyboard in the middle of a message")
	}
	m.handleMessage(tea.KeyPressMsg{Code: tea.KeyTab})
	if !m.armed {
		t.Error("Tab does not answer")
	}

	m = keyed()
	m.handleMessage(pressed('n'))
	m.handleMessage(tea.KeyPressMsg{Code: tea.KeyEnter})
	if m.dialog != nil {
		t.Error("Enter does not end the letter's wait")
	}
}

// What is not armed decides nothing, and takes the keyboard once nobody types.
func TestArming(t *testing.T) {
	m := keyed()
	m.armed, m.typed = false, time.Now()
	m.handleMessage(pressed('y'))
	if m.handleDue(); m.armed || m.draft.fullText() != "y" {
		t.Errorf("armed %v, written %q", m.armed, m.draft.fullText())
	}
	m.draft = editor{}
	m.typed = time.Now().Add(-quiet)
	if m.handleDue(); !m.armed {
		t.Error("nobody types, and the question does not take the keyboard")
	}
}

// TestNoSize takes a terminal that does not know its size for one of 80 columns and 24 lines.
func TestNoSize(t *testing.T) {
	m := newModel(nil, Config{Config: chat.Config{Text: i18n.New("en")}}) //nolint:staticcheck // nothing is asked of the Control
	want := tea.WindowSizeMsg{Width: 80, Height: 24}
	for _, size := range []tea.WindowSizeMsg{{}, {Width: 100}, {Height: 30}} {
		if got := reflowCursor(m, &terminal{})(m, size); got != want {
			t.Errorf("%v is %v", size, got)
		}
	}
}
