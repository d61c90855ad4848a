package tui

import "time"

// focus says who has the keyboard: the prompt, or what the person is asked.
type focus struct {
	dialog dialog
	armed  bool // the dialog takes keys
	swept  bool // what is typed was meant for a dialog that has gone, until the person pauses
	letter letter
	typed  time.Time // when something was typed last
}

func (f *focus) open(d dialog) { f.dialog, f.armed = d, false }

func (f *focus) closeDialog() { f.dialog, f.armed, f.letter.typed = nil, false, "" }

// askAgain has what was just written read before a key answers: as where a dialogue opens, the
// keyboard is the prompt's for a moment.
func (f *focus) askAgain() { f.armed, f.typed = false, time.Now() }

// hasField reports whether a dialog has the keyboard: then the cursor is not in the prompt.
func (f *focus) hasField() bool { return f.dialog != nil && f.armed }

// opened reports whether something that the person opened themselves has the keyboard, so that what
// waits for them is not asked yet.
func (f *focus) opened() bool {
	switch f.dialog.(type) {
	case *picking, *undoing:
		return f.armed
	}
	return false
}
