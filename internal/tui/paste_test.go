package tui

import (
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
)

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
