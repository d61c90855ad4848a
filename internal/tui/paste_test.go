package tui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
)

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
	m.letterStands(serial)
	if m.draft.value() != "yet another" || a.Busy {
		t.Errorf("the prompt holds %q", m.draft.value())
	}
	a.reasons, m.armed = true, true
	m.obey(tea.PasteMsg{Content: "because\nof it"})
	if got := a.reason.value(); got != "because\nof it" {
		t.Errorf("the reason is %q", got)
	}
}
