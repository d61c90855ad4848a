package tui

import (
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
)

// maxQuestion is how many lines of the live part a question has for itself, in a terminal of as
// many times that many lines; it stands whole above.
const maxQuestion = 5

// question is what is asked, at the head of a dialogue.
func (s *screen) question(said string) [][]span {
	width := s.width - 2
	lines := wrap([]span{{said, style{bold: true}}}, width-2)
	if most := max(1, s.height/maxQuestion); len(lines) > most {
		var left strings.Builder
		for _, line := range lines[most-1:] {
			for _, piece := range line {
				left.WriteString(piece.text)
			}
			left.WriteByte(' ')
		}
		lines = append(lines[:most-1:most-1],
			[]span{{cut(strings.TrimSpace(left.String()), width-2), style{bold: true}}})
	}
	return marked(lines)
}

// marked has a question's mark before its lines.
func marked(lines [][]span) [][]span {
	for i, line := range lines {
		mark := span{"? ", style{fg: yellow, bold: true}}
		if i > 0 {
			mark = span{text: "  "}
		}
		lines[i] = append([]span{mark}, line...)
	}
	return lines
}

// allowAll allows all calls that are left. Where some have not been shown they are, and Y is asked
// for once more; so it is where a diff was shortened, unless that was asked before.
func (a *approving) allowAll() {
	left, asked := a.Left(), a.all
	a.all = a.Seen.Show(a.Page, &a.Asked, left) || !asked && len(a.Seen.Cut(&a.Asked, left)) > 0
	if a.all {
		a.Reread()
		return
	}
	chat.AnswerAll(left, regie.AnswerAllow, "")
	a.Decide(left)
}

// allKey is the keyboard once all that Y allows has been shown.
func (a *approving) allKey(name, typed string) {
	switch {
	case typed == "Y":
		a.allowAll()
	case typed == "N":
		a.all = false
		a.DenyLeft()
	case typed == "v":
		a.Seen.Whole(a.Page, &a.Asked, a.Left())
	case typed == "b" || typed == "n" || typed == "l" || name == "esc":
		a.all = false
	}
}

func (a *approving) viewAll(m *model) [][]span {
	t, all := m.Text, a.Left()
	// whole, or no key decides anything
	lines := marked(wrap([]span{{t.T("Y again allows these %d calls", len(all)), style{bold: true}}}, m.screen.width-4))
	m.screen.from, m.screen.to = 0, len(lines)
	list := []string{t.T("[Y] yes to all"), t.T("[N] no to all")}
	if len(a.Seen.Cut(&a.Asked, all)) > 0 {
		list = append(list, t.T("[v] whole diff"))
	}
	return append(lines, m.screen.keyLines(len(lines), append(list, t.T("[Esc] back"))...)...)
}

// along are this call and those that the scope that is picked would allow with it.
func (a *approving) along() []regie.Decision {
	more, _ := chat.Covered(&a.Asked, a.At+1, &a.Review().Preview.Scopes[a.picked])
	return append([]regie.Decision{{CallID: a.Review().CallID}}, more...)
}

// showsAlong shows the calls that an answer for longer would allow with this one, where they have
// not been; Enter once more allows them.
func (a *approving) showsAlong(m *model, scope *regie.Scope) bool {
	more, numbers := chat.Covered(&a.Asked, a.At+1, scope)
	if !a.Seen.Show(m.Page, &a.Asked, more) {
		return false
	}
	m.Note("     ! " + m.Text.T("it allows the calls %s with it, as they stand above: Enter once more",
		strings.Join(numbers, ", ")))
	a.Reread()
	return true
}
