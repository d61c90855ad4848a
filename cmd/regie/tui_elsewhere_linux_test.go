package main

import (
	"strings"
	"testing"
)

// TestScreenAnsweredElsewhere has an approval allowed in another terminal while the person writes why not: they read by whom, what they wrote stands in the
// prompt, and nothing of it is sent.
func TestScreenAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("I write.", wanted{"a", "a.txt", "one\n"}), reply("Done."))
	p := emulator(s, 100, 30, "chat")
	p.sees("›", "ready")
	p.enter("write")
	p.sees("[r] no, because…")
	p.press("r")
	p.sees("[Enter] deny")
	p.types("it is too")
	p.sees("it is too")
	other := s.regie("approve", "last")
	other.ends(0)
	p.sees("→ elsewhere, by ", ": allowed once", "Done.", "› it is too", "it is not sent", "ready")
	s.holds("a.txt", "one\n")
	if sent := s.read(); strings.Contains(sent, "it is too") {
		t.Errorf("what was typed was sent: %s", sent)
	}
	p.types(" early")
	p.sees("› it is too early")
	p.press("C-c")
	p.gone("too early")
	p.press("C-d")
	p.ends(0)
}
