package tui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/text"
)

// What has no room in a message is refused with a word, and nothing of what stands there goes; what
// was written before comes back whole.
func TestPasteTooLarge(t *testing.T) {
	large := strings.Repeat("0123456789\n", maxTyped/10)
	m := newModel(t.Context(), Config{Config: chat.Config{Text: text.New("en")}})
	m.obey(tea.PasteMsg{Content: "a draft"})
	m.obey(tea.PasteMsg{Content: large})
	if m.draft.value() != "a draft" || !strings.Contains(m.hint, "1 MiB") {
		t.Errorf("the prompt holds %d bytes, and it says %q", len(m.draft.value()), m.hint)
	}
	m.obey(tea.PasteMsg{Content: large[:maxTyped-100]})
	m.obey(tea.PasteMsg{Content: large[:200]})
	if n := len(m.draft.value()); n != maxTyped-100+len("a draft") {
		t.Errorf("the prompt holds %d bytes", n)
	}
	for range 100 - len("a draft") {
		m.obey(pressed('x'))
	}
	if m.hint != "" {
		t.Errorf("what has room is refused: %q", m.hint)
	}
	if m.obey(pressed('x')); !strings.Contains(m.hint, "1 MiB") || len(m.draft.value()) != maxTyped {
		t.Errorf("the prompt holds %d bytes, and it says %q", len(m.draft.value()), m.hint)
	}
	m.history.add(large)
	m.history.older(m)
	if m.draft.value() != strings.TrimSpace(large) {
		t.Errorf("of %d bytes that were said %d come back", len(large), len(m.draft.value()))
	}
	m.history.newer(m)
	if len(m.draft.value()) != maxTyped {
		t.Errorf("of the draft %d bytes come back", len(m.draft.value()))
	}
}

// A large message that is recalled is one mark; one that was written by hand stands there to be
// edited, and the cursor goes through it at once.
func TestRecalled(t *testing.T) {
	var e editor
	e.set(strings.Repeat("a line\n", recalledLines+1))
	if len(e.text) != 1 {
		t.Errorf("%d characters", len(e.text))
	}
	long := strings.Repeat("x", 200_000)
	e = editor{text: []rune(long), at: len(long)}
	began := time.Now()
	for range 3 {
		if !e.vertical(-1, 80, nil) {
			t.Fatal("there is no line above")
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("three lines took %s", took)
	}
	if want := len(long) - 3*80; e.at != want {
		t.Errorf("the cursor stands at %d, want %d", e.at, want)
	}
}

// A paste is no answer: where something is asked it stands in the prompt, with the letter that was
// typed before it.
func TestPasteAtQuestion(t *testing.T) {
	for _, d := range []dialog{
		batch(regie.Approval{Reviews: []regie.Review{{}}}),
		&questioning{asked: regie.Question{Module: regie.Module{Kind: regie.ModuleChoice, Options: []string{"one", "two"}, AllowMultiple: true}}, chosen: map[int]bool{}},
	} {
		m := asked(t, d)
		m.obey(tea.PasteMsg{Content: "see the log\nof it"})
		if m.draft.value() != "see the log\nof it" || m.armed || m.dialog == nil {
			t.Errorf("%T: the prompt holds %q", d, m.draft.value())
		}
	}
	a := batch(regie.Approval{Reviews: []regie.Review{{}}})
	m := asked(t, a)
	m.obey(pressed('y'))
	serial := m.letter.serial
	m.obey(tea.PasteMsg{Content: "et another"})
	m.obey(stands{serial})
	if m.draft.value() != "yet another" || a.Busy {
		t.Errorf("the prompt holds %q", m.draft.value())
	}
	a.mode, m.armed = reasoning, true
	m.obey(tea.PasteMsg{Content: "because\nof it"})
	if got := a.reason.value(); got != "because\nof it" {
		t.Errorf("the reason is %q", got)
	}
}
