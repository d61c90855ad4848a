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
		m.handleMessage(tea.PasteMsg{Content: "see the log\nof it"})
		if m.draft.fullText() != "see the log\nof it" || m.armed || m.dialog == nil {
			t.Errorf("%T: the prompt holds %q", d, m.draft.fullText())
		}
	}
	a := batch(regie.Approval{Reviews: []regie.Review{{}}})
	m := asked(t, a)
	m.handleMessage(pressed('y'))
	serial := m.letter.serial
	m.handleMessage(tea.PasteMsg{Content: "et another"})
	m.letterStands(serial)
	if m.draft.fullText() != "yet another" || a.Busy {
		t.Errorf("the prompt holds %q", m.draft.fullText())
	}
	a.reasons, m.armed = true, true
	m.handleMessage(tea.PasteMsg{Content: "because\nof it"})
	if got := a.reason.fullText(); got != "because\nof it" {
		t.Errorf("the reason is %q", got)
	}
}
