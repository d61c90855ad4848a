package tui

import "github.com/regie-run/regie/internal/chat"

// undoing asks whether an undo is done (decision 16).
type undoing struct {
	*chat.UndoOffer
	busy bool
}

func (u *undoing) key(m *model, name, typed string) {
	switch {
	case u.busy:
	case typed == "y", typed == "o":
		u.busy = true
		u.Agree(func() {
			if m.dialog == dialog(u) {
				m.closeDialog()
			}
		})
	case typed == "v" && u.More:
		u.ShowWhole()
	case typed == "n", name == "esc":
		m.closeDialog()
		u.Refuse()
	}
}

func (u *undoing) view(m *model) [][]span {
	t := m.Text
	list := []string{t.T("[y] undo")}
	if u.More {
		list = append(list, t.T("[v] the whole diff"))
	}
	return m.screen.keyLines(0, append(list, t.T("[n] leave it"))...)
}
