package main

import (
	"strings"
	"testing"
)

// TestScreenAnsweredElsewhere has an approval allowed in another terminal while the person writes
// why not: they read by whom, Up has what they wrote, and nothing of it is sent.
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
	p.sees("→ elsewhere, by ", ": allowed once", "Done.", "ready")
	s.holds("a.txt", "one\n")
	if sent := s.read(); strings.Contains(sent, "it is too") {
		t.Errorf("what was typed was sent: %s", sent)
	}
	p.press("Up")
	p.sees("› it is too")
	p.press("C-c")
	p.gone("it is too")
	p.press("C-d")
	p.ends(0)
}

// TestScreenBesideChoice answers with options and own words beside them: the agent reads both.
func TestScreenBesideChoice(t *testing.T) {
	t.Parallel()
	s := newStage(t, asks(`{"question": "Which of them?", "options": ["one", "two", "three"], "allow_multiple": true, "allow_free_text": true}`), reply("Thank you."))
	p := emulator(s, 80, 30, "chat")
	p.sees("›", "ready")
	p.enter("ask me")
	p.sees("Which of them?", "[t]")
	p.press("1")
	p.press("3")
	p.sees("☑ 1  one", "☑ 3  three")
	p.press("t")
	p.sees("beside 1, 3:")
	p.types("and a fourth")
	p.press("Enter")
	p.sees("→ one, three, and a fourth", "Thank you.", "ready")
	if sent := s.read(); !strings.Contains(sent, `- one\n- three\nWritten: and a fourth`) {
		t.Errorf("the agent reads %s", sent)
	}
	p.press("C-d")
	p.ends(0)
}
