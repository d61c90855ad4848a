package tui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/i18n"
)

func ctrl(r rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: r, Mod: tea.ModCtrl} }

// looking is a model whose person knows what they have said, and nothing more is read.
func looking(t *testing.T, said ...string) *model {
	t.Helper()
	m := newModel(t.Context(), Config{Config: chat.Config{Text: i18n.New("en")}})
	m.handleMessage(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.history.list, m.history.loaded = said, true
	return m
}

// pauses has the person type nothing for a while.
func pauses(m *model) {
	m.typed = time.Now().Add(-time.Hour)
	m.handleDue()
}

// While the person looks back, or something is offered for what they write, what is asked has not
// the keyboard.
func TestSearchKeepsKeyboard(t *testing.T) {
	m := looking(t, "Make it so", "My word")
	m.handleMessage(ctrl('r'))
	m.handleMessage(pressed('M'))
	a := batch(regie.Approval{Reviews: []regie.Review{{}}})
	m.State = regie.SessionWaitingValidation
	a.attach(m)
	m.openDialog(a)
	if pauses(m); m.armed {
		t.Fatal("the approval takes the keyboard")
	}
	if out := paintLine(m.renderStatus(80), false); !strings.Contains(out, "waits for your answer") || strings.Contains(out, "Tab") {
		t.Errorf("the status says %q", out)
	}
	m.handleMessage(pressed('y'))
	m.handleMessage(tea.KeyPressMsg{Code: tea.KeyEnter})
	if a.Busy || m.history.searching || m.draft.fullText() != "My word" {
		t.Errorf("deciding %v, the prompt holds %q", a.Busy, m.draft.fullText())
	}
	m.handleMessage(ctrl('u'))
	m.handleMessage(ctrl('r'))
	m.handleMessage(tea.KeyPressMsg{Code: tea.KeyEscape})
	if pauses(m); !m.armed {
		t.Error("behind the search the approval does not take the keyboard")
	}

	m = looking(t)
	types(m, "/he")
	m.openDialog(a)
	if !m.popup.isShown() {
		t.Error("what is offered goes when something is asked")
	}
	m.handleMessage(tea.KeyPressMsg{Code: tea.KeyTab})
	if m.draft.fullText() != "/help " || m.armed {
		t.Errorf("Tab makes %q, the approval has the keyboard: %v", m.draft.fullText(), m.armed)
	}
}

// What is pasted where one of several things is chosen is looked for among them.
func TestPickPaste(t *testing.T) {
	m := looking(t)
	chose := ""
	p := &chat.Choice{Options: []chat.Option{{Value: "1", Text: "main"}, {Value: "2", Text: "Review of\tit"}}, Then: func(value string) { chose = value }}
	surface{m}.Choose(p)
	m.handleMessage(tea.PasteMsg{Content: "review of\n"})
	if !m.hasField() || !m.draft.isEmpty() {
		t.Fatalf("the prompt holds %q", m.draft.fullText())
	}
	m.handleMessage(tea.KeyPressMsg{Code: tea.KeyEnter})
	if chose != "2" || m.dialog != nil {
		t.Errorf("%q is chosen", chose)
	}
}

// What the person opened does not come in between where they write meanwhile, and goes with what
// they send; what waits for them is asked behind it.
func TestPickBeside(t *testing.T) {
	m := looking(t)
	p := &chat.Choice{Options: []chat.Option{{Value: "1", Text: "main"}, {Value: "2", Text: "other"}}}
	types(m, "and")
	if (surface{m}).Choose(p); m.armed || !strings.Contains(m.hint, "Tab") {
		t.Errorf("the list takes the keyboard: %v, and it says %q", m.armed, m.hint)
	}
	typing(m, "")
	if pauses(m); m.dialog != nil {
		t.Error("the list comes back behind the message")
	}

	c, ids := talked(t, []string{"one"})
	m = newModel(t.Context(), c)
	m.Session, m.State = ids[0], regie.SessionWaitingResponse
	m.askPending() // on its way while the list is opened
	cmd := m.takeCommands()
	surface{m}.Choose(p)
	if works(m, cmd); !m.Due {
		t.Error("behind the list nothing is asked")
	}
}
