package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
)

// shownDiff is how many lines of a diff are written with what is asked; v writes the rest.
const shownDiff = 200

// undoing shows what would be taken back, and asks (decision 16).
type undoing struct {
	in    dispatch.UndoRequest
	plans []regie.UndoPlan
	more  bool // a diff was shortened
	busy  bool
}

// undo obeys /undo: it plans what would be taken back of the newest run, or of what is named.
func (m *model) undo(rest string) tea.Cmd {
	if m.last.IsZero() && rest == "" {
		m.note(m.Text.T("nothing was said in this chat"))
		return nil
	}
	in := dispatch.UndoRequest{Chat: true, SessionID: m.session, Root: m.Request.Root}
	series := chat.UndoWords(&in, rest)
	return m.do(func(ctx context.Context) func() tea.Cmd {
		plans, err := chat.UndoPlans(ctx, m.Control, in, series)
		return func() tea.Cmd {
			if err != nil {
				m.told(err)
				return nil
			}
			if m.dialog != nil { // something else came up
				m.note(m.Text.T("answer first what is asked, or put it off"))
				return nil
			}
			u := &undoing{in: in, plans: plans}
			m.paper.space()
			for i := range plans {
				u.more = m.page.UndoPlan(&plans[i], shownDiff) || u.more
			}
			if last := &plans[len(plans)-1]; len(last.Conflicts(in.Force)) > 0 {
				m.note(chat.UndoInTheWay(m.Text, last, in.Force, "/undo force"))
				return nil
			}
			if leaves := chat.UndoLeaves(m.Text, plans, in.Force); leaves != "" {
				m.note(leaves)
			}
			m.open(u)
			return nil
		}
	})
}

func (u *undoing) key(m *model, name, typed string) tea.Cmd {
	switch {
	case u.busy:
	case typed == "y", typed == "o":
		return u.run(m)
	case typed == "v" && u.more:
		for i := range u.plans {
			m.page.UndoPlan(&u.plans[i], 0)
		}
		u.more = false
	case typed == "n", name == "esc":
		m.closeDialog()
		m.note(m.Text.T("nothing was undone"))
	}
	return nil
}

func (u *undoing) run(m *model) tea.Cmd {
	u.busy = true
	var agreed []dispatch.UndoRequest
	for i := range u.plans {
		agreed = append(agreed, chat.Agreed(u.in, &u.plans[i]))
		m.stream.Own(agreed[i].UndoID)
	}
	return m.do(func(ctx context.Context) func() tea.Cmd {
		var undone []regie.Undo
		var err error
		for i := range agreed {
			var one regie.Undo
			if one, err = m.Control.Undo(ctx, agreed[i]); err != nil {
				break
			}
			undone = append(undone, one)
		}
		return func() tea.Cmd {
			for i := range undone {
				m.page.Undone(&undone[i])
			}
			m.page.Redo(undone)
			m.told(err)
			if m.dialog == dialog(u) {
				m.closeDialog()
			}
			return nil
		}
	})
}

func (u *undoing) view(m *model) [][]span {
	t := m.Text
	list := []string{t.T("[y] undo")}
	if u.more {
		list = append(list, t.T("[v] the whole diff"))
	}
	return m.keys(0, append(list, t.T("[n] leave it"))...)
}
