package tui

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// aloneFor is how long a letter that decides something stands alone before it does: with another
// letter behind it, it was the beginning of a message, and decides nothing.
const aloneFor = 300 * time.Millisecond

// letter is a key of a dialogue that waits for that.
type letter struct {
	name, typed string
	serial      int
}

// stands says that nothing was typed behind a letter.
type stands struct{ serial int }

// meaning is what a typed character is to a dialogue.
type meaning int

const (
	begins meaning = iota // nothing: it begins a message
	waits                 // a key, once it stands alone
	acts                  // a key at once: it decides nothing
)

// lettered is a dialogue in which letters are keys.
type lettered interface {
	dialog
	letter(typed string) meaning
}

// worded is a dialogue that takes words itself. What it returns of them is a message.
type worded interface {
	words(m *model, typed string) (rest string)
}

// among has each of some letters be a key.
func among(keys, typed string) meaning {
	switch {
	case typed == " ":
		return acts
	case utf8.RuneCountInString(typed) == 1 && strings.Contains(keys, typed):
		return waits
	}
	return begins
}

func (a *approving) letter(typed string) meaning {
	switch a.mode {
	case reasoning:
		return acts
	case scoping:
		if n, err := strconv.Atoi(typed); err == nil && n >= 1 && n <= len(a.Review().Preview.Scopes) {
			return acts
		}
		return among("btv", typed)
	}
	switch {
	case a.all:
		return among("YNnvbl", typed)
	case a.Edit.Refused:
		return among("yonrelb", typed)
	case a.Edit.Review != nil:
		return among("yonrevl", typed)
	case a.listed:
		return among("yoYNnrsaevlc", typed)
	}
	return among("yoYNnrsaevl", typed)
}

func (u *undoing) letter(typed string) meaning { return among("yonv", typed) }

func (d *instead) letter(typed string) meaning {
	if d.question {
		return among("yon", typed)
	}
	return among("yonq", typed)
}

// answerKey gives a key to the dialogue, a letter that decides something after a moment. A letter
// that is no key begins a message: nothing typed is lost, and Enter behind it sends that, and takes
// nothing of what is asked.
func (m *model) answerKey(name, typed string) {
	d, ok := m.dialog.(lettered)
	means := acts
	if ok && typed != "" {
		means = d.letter(typed)
	}
	switch {
	case m.letter.typed != "" && typed != "":
		m.words(m.letter.typed + typed)
	case m.letter.typed != "":
		m.letterStands(m.letter.serial)
		// Enter ends the wait; what it would take of what the letter opens was not seen
		if name != "enter" && m.dialog != nil && m.armed {
			m.decide(name, typed)
		}
	case means == acts:
		m.decide(name, typed)
	case means == waits:
		m.letter = letter{name, typed, m.letter.serial + 1}
		serial := m.letter.serial
		m.run(tea.Tick(aloneFor, func(time.Time) tea.Msg { return stands{serial} }))
	default:
		m.words(typed)
	}
}

// words has what is typed be the beginning of a message, unless the dialogue takes it.
func (m *model) words(typed string) {
	m.letter = letter{serial: m.letter.serial}
	if d, ok := m.dialog.(worded); ok {
		typed = d.words(m, typed)
	}
	if typed == "" {
		return
	}
	m.armed, m.typed = false, time.Now()
	m.fits(m.draft.insert(typed))
	m.popup.follow(m)
	m.popup.fetch(m)
}

// letterStands has the letter decide, unless something was typed behind it.
func (m *model) letterStands(serial int) {
	l := m.letter
	if l.typed == "" || l.serial != serial {
		return
	}
	m.letter = letter{serial: serial}
	if m.dialog != nil && m.armed {
		m.decide(l.name, l.typed)
	}
}

// decide gives a key to the dialogue, unless what it would do cannot be seen.
func (m *model) decide(name, typed string) {
	if !m.screen.small || name == "esc" {
		m.dialog.key(m, name, typed)
	}
}
