package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
)

// Bell says when the person is called: by the terminal's bell, and by a notification where the
// terminal has those (OSC 9, OSC 777).
type Bell string

// The ways of calling.
const (
	BellAuto   Bell = "auto"   // when they have waited for a while
	BellAlways Bell = "always" // whenever they are needed
	BellOff    Bell = "off"
)

// ParseBell reads how the person is called; empty is BellAuto. It returns CodeBadRequest for what
// is no such word.
func ParseBell(word string) (Bell, error) {
	switch b := Bell(word); b {
	case "":
		return BellAuto, nil
	case BellAuto, BellAlways, BellOff:
		return b, nil
	}
	return "", regie.Errorf(regie.CodeBadRequest, "%q is not a bell setting: use auto, always or off", word)
}

// patient is the length of work after which the bell rings: the person may be looking elsewhere.
const patient = 10 * time.Second

// isWanted reports whether the person is to be called after so much work.
func (b Bell) isWanted(worked time.Duration) bool {
	return b == BellAlways || b != BellOff && worked >= patient
}

// ringBell rings the bell if wanted. Its text is Regie's own, never a model's.
func (b Bell) ringBell(why string, worked time.Duration) tea.Cmd {
	if !b.isWanted(worked) {
		return nil
	}
	said := sanitize.Line("regie: " + why)
	return tea.Raw("\a\x1b]9;" + said + "\x07\x1b]777;notify;regie;" + said + "\x07")
}
