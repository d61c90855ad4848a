package tui

import (
	"fmt"
	"slices"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
)

// choice is a question with so many options, with the keyboard.
func choice(t *testing.T, options int, several, ownWords bool) (*model, *questioning) {
	t.Helper()
	module := regie.Module{Kind: regie.ModuleChoice, Text: "Delete it?", AllowMultiple: several, AllowFreeText: ownWords}
	for i := range options {
		module.Options = append(module.Options, fmt.Sprintf("option %d", i+1))
	}
	q := &questioning{asked: regie.Question{ID: regie.NewID(), State: regie.WaitOpen, Module: module}, chosen: map[int]bool{}}
	m := asked(t, q)
	m.State = regie.SessionWaitingResponse
	return m, q
}

// types types a text, without Enter.
func types(m *model, said string) {
	for _, r := range said {
		m.handleMessage(pressed(r))
	}
}

// What is typed as words at a question is words from the first letter on: an answer where the
// question takes one, else a message; no option is taken.
func TestWordsAtQuestion(t *testing.T) {
	for _, said := range []string{"no thanks", "no, wait, first back it up", "later please", "the other one", "k", "0.5 of it", "é"} {
		m, q := choice(t, 2, false, false)
		if types(m, said); m.draft.fullText() != said || m.armed || m.dialog == nil || q.picked != 0 {
			t.Errorf("%q: the prompt holds %q, the question has the keyboard: %v, option %d is picked", said, m.draft.fullText(), m.armed, q.picked+1)
		}
		for _, several := range []bool{false, true} {
			m, q = choice(t, 3, several, true)
			if types(m, said); q.text.fullText() != said || !q.writes || !m.draft.isEmpty() || q.picked != 0 || len(q.tickedOptions()) > 0 {
				t.Errorf("%q: the answer is %q, the prompt holds %q, option %d is picked, ticked are %v", said, q.text.fullText(), m.draft.fullText(), q.picked+1, q.tickedOptions())
			}
		}
	}
	m, q := choice(t, 2, false, false)
	typing(m, "nope")
	if q.busy {
		t.Error("Enter behind words takes an option")
	}
	for _, said := range []string{"/queue", "!git status"} { // what the prompt has is not the agent's
		m, q = choice(t, 2, false, true)
		if types(m, said); m.draft.fullText() != said || q.writes {
			t.Errorf("the prompt holds %q, the answer is %q", m.draft.fullText(), q.text.fullText())
		}
	}
}

// A letter that stands alone is a key of the question, and Enter behind it takes nothing.
func TestLettersAtQuestion(t *testing.T) {
	m, q := choice(t, 12, true, true)
	m.handleMessage(pressed('2'))
	m.handleMessage(pressed('t'))
	if q.writes {
		t.Fatal("t decided at once")
	}
	m.letterStands(m.letter.serial)
	types(m, "and more")
	if !q.writes || q.text.fullText() != "and more" || !slices.Equal(q.tickedOptions(), []string{"2"}) {
		t.Errorf("the answer is %q beside %v", q.text.fullText(), q.tickedOptions())
	}

	m, q = choice(t, 2, false, false)
	m.handleMessage(pressed('l'))
	if m.dialog == nil {
		t.Fatal("l decided at once")
	}
	m.letterStands(m.letter.serial)
	if m.dialog != nil || !m.Later[q.asked.ID] {
		t.Error("l does not put it off")
	}

	a := batch(regie.Approval{Reviews: []regie.Review{{Preview: regie.Preview{Scopes: []regie.Scope{{}}}}}})
	m = asked(t, a)
	typing(m, "s")
	if a.answer != regie.AnswerSession || a.Busy {
		t.Errorf("Enter right behind s allows for the session what was not seen: %q", a.answer)
	}
}

// Words where it is chosen what an answer for longer covers allow nothing.
func TestWordsAtScopes(t *testing.T) {
	a := batch(regie.Approval{Reviews: []regie.Review{{Preview: regie.Preview{Scopes: []regie.Scope{{}, {}}}}}})
	a.answer = regie.AnswerSession
	m := asked(t, a)
	typing(m, "no thanks")
	if a.Busy || a.holds != 0 || m.armed {
		t.Errorf("they are a key: deciding %v, it holds %d", a.Busy, a.holds)
	}
	m = asked(t, a)
	if m.handleMessage(pressed('2')); a.picked != 1 {
		t.Error("a number does not pick")
	}
	m.handleMessage(pressed('t'))
	if m.letterStands(m.letter.serial); a.holds != 1 {
		t.Error("t does not say how long")
	}
}

// A paste at a question that takes own words is one, behind the letter that was typed before it;
// nothing of an answer that was written is lost.
func TestPasteAsAnswer(t *testing.T) {
	m, q := choice(t, 2, true, true)
	m.handleMessage(pressed('t'))
	serial := m.letter.serial
	m.handleMessage(tea.PasteMsg{Content: "he third one"})
	m.letterStands(serial)
	if q.text.fullText() != "the third one" || !m.draft.isEmpty() {
		t.Errorf("the answer is %q, the prompt holds %q", q.text.fullText(), m.draft.fullText())
	}
	m.handleMessage(tea.KeyPressMsg{Code: tea.KeyEscape})
	m.handleMessage(tea.KeyPressMsg{Code: tea.KeyEscape})
	if m.dialog != nil || !slices.Contains(m.history.list, "the third one") {
		t.Errorf("put off, the words are gone: %q", m.history.list)
	}
}
