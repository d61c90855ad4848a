package tui

import (
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// aloneFor is how long a letter that decides something stands alone before it does: with another letter behind it, it was the beginning of a
// message, and decides nothing.
const aloneFor = 300 * time.Millisecond

// letter is a key of a dialogue that waits for that.
type letter struct {
	name, typed string
	serial      int
}

// stands says that nothing was typed behind a letter.
type stands struct{ serial int }

// decides is a dialogue in which a letter may decide something at once.
type decides interface {
	dialog
	decides() bool
}

func (a *approving) decides() bool   { return a.mode == choosing }
func (q *questioning) decides() bool { return !q.writes && len(q.asked.Module.Options) == 0 }
func (u *undoing) decides() bool     { return true }
func (d *instead) decides() bool     { return true }

// answerKey gives a key to the dialogue, a letter that decides something after a moment.
func (m *model) answerKey(name, typed string) tea.Cmd {
	d, ok := m.dialog.(decides)
	alone := ok && d.decides() && utf8.RuneCountInString(typed) == 1 && typed != " "
	switch {
	case m.letter.typed != "" && utf8.RuneCountInString(typed) > 0: // a message
		m.draft.insert(m.letter.typed + typed)
		m.letter, m.armed, m.typed = letter{serial: m.letter.serial}, false, time.Now()
		return nil
	case m.letter.typed != "":
		first := m.letterStands(m.letter.serial)
		if m.dialog == nil || !m.armed {
			return first
		}
		return tea.Batch(first, m.decide(name, typed))
	case alone:
		m.letter = letter{name, typed, m.letter.serial + 1}
		serial := m.letter.serial
		return tea.Tick(aloneFor, func(time.Time) tea.Msg { return stands{serial} })
	}
	return m.decide(name, typed)
}

// letterStands has the letter decide, unless something was typed behind it.
func (m *model) letterStands(serial int) tea.Cmd {
	l := m.letter
	if l.typed == "" || l.serial != serial {
		return nil
	}
	m.letter = letter{serial: serial}
	if m.dialog == nil || !m.armed {
		return nil
	}
	return m.decide(l.name, l.typed)
}

// decide gives a key to the dialogue, unless what it would do cannot be seen.
func (m *model) decide(name, typed string) tea.Cmd {
	if m.screen.small && name != "esc" {
		return nil
	}
	return m.dialog.key(m, name, typed)
}
