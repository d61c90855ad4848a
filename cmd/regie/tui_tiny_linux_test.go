package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestScreenTiny asks in a terminal of 20 columns and 5 lines: what is picked is seen, and nothing
// of the live part stays in the scrollback.
func TestScreenTiny(t *testing.T) {
	t.Parallel()
	s := newStage(t, asks(`{"question": "Which colour?", "options": ["red", "green", "blue", "yellow", "violet"]}`), reply("Done."))
	p := emulator(s, 20, 5, "chat")
	p.sees("›")
	p.enter("/help")
	p.until("the end of the help", func() bool { return strings.Contains(p.all(), "waits for you") })
	p.enter("ask")
	p.sees("? Which colour?", "▸ 1  red", "[Enter]", "[l]")
	p.press("Down")
	p.sees("▸ 2  green")
	p.press("Enter")
	p.sees("Done.", "ready")
	p.once("ready")
	p.once("→ green")
	p.leaves()
}

// TestScreenTinyPicked makes a terminal smaller and smaller: what Enter would do is seen, and where
// that has no room, Enter does nothing.
func TestScreenTinyPicked(t *testing.T) {
	t.Parallel()
	s := newStage(t, asks(`{"question": "Which colour?", "options": ["red", "green", "blue"]}`), reply("I write.", wanted{"a", "a.txt", "one\n"}), reply("Done."))
	p := chatAt(s, 24, 6)
	p.enter("/model")
	p.sees("▸ openai", "[Enter]")
	p.resize(24, 4)
	p.sees("▸ openai/", "[Enter]")
	p.press("Escape")
	p.sees("›", "ready")
	p.enter("ask")
	p.sees("▸ 1  red", "[Enter]")
	p.resize(20, 3)
	p.sees("▸ 1  red", "[Enter]")
	p.press("Down")
	p.sees("▸ 2  green")
	p.resize(20, 2)
	p.sees("▸ 2  green")
	p.resize(6, 5)
	p.sees("too", "[Esc]")
	p.press("Down", "Enter")
	p.resize(24, 4)
	p.sees("▸ 2  green", "[Enter]")
	p.press("Enter")
	p.sees("[y]", "[r]")
	p.resize(10, 6)
	p.sees("[y]", "[s]", "[a]", "[e]", "[n]", "[r]", "[l]")
	p.resize(24, 4)
	p.sees("[y]", "[r]", "[l]")
	p.press("r")
	p.sees("[Enter]", "[Esc]")
	p.types("not so")
	p.sees("not so", "[Enter]")
	p.press("Enter")
	p.sees("Done.", "ready")
	p.leaves()
	s.holds("a.txt", "")
}

// TestScreenTinyApproval asks for an approval in terminals of a few lines: each key that does
// something is seen.
func TestScreenTinyApproval(t *testing.T) {
	t.Parallel()
	for _, lines := range []int{4, 5, 7, 12} {
		t.Run(fmt.Sprint(lines), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, reply("I write.", wanted{"a", "a.txt", "one\n"}, wanted{"b", "b.txt", "two\n"}), reply("Done."))
			p := emulator(s, 20, lines, "chat")
			p.sees("›")
			p.enter("write")
			p.sees("[y]", "[s]", "[a]", "[e]", "[n]", "[r]", "[Y]", "[N]", "[l]")
			p.press("s")
			if lines < 5 { // the whole of what Enter would allow, and as many keys as fit
				p.sees("▸ files.write_file", "arguments [Enter]")
			} else {
				p.sees("▸ ", "arguments", "[Enter]", "[t]", "[Esc]")
			}
			p.resize(20, 3) // not the whole of it: then nothing can be allowed, and that is said, and what can be done
			p.sees("too small", "[Esc]")
			p.press("Enter", "t")
			p.resize(20, lines)
			p.sees("arguments", "[Enter]")
			p.press("Escape")
			p.sees("[y]", "[l]")
			p.press("r")
			p.sees("[Enter]", "[Esc]")
			p.press("Escape")
			p.sees("[y]", "[l]")
			p.press("Y")
			p.gone("[y]")
			p.sees("Y again", "[Y]")
			p.press("Y")
			p.sees("Done.", "ready")
			p.leaves()
			s.holds("b.txt", "two\n")
		})
	}
}

// TestScreenTinyOffers completes, and looks back, in terminals of a few lines: what is picked is
// seen, below what is written.
func TestScreenTinyOffers(t *testing.T) {
	t.Parallel()
	for _, lines := range []int{2, 3, 4, 5, 12} {
		t.Run(fmt.Sprint(lines), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, reply("Done."), reply("Done again."))
			for _, name := range []string{"bell.txt", "bear.txt", "bean.txt"} {
				if err := os.WriteFile(s.work(name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := emulator(s, 40, lines, "chat")
			p.sees("›", "ready")
			p.enter("first of them")
			p.sees("ready")
			p.until("the answer", func() bool { return strings.Contains(p.all(), "Done.") })
			p.types("/")
			p.sees("› /", "▸ /help")
			for _, name := range []string{"/undo", "/fork", "/resume", "/new", "/clear"} {
				p.press("Down")
				p.sees("› /", "▸ "+name)
			}
			p.press("Tab")
			p.sees("› /clear")
			p.press("C-u")
			p.types("look at @be")
			p.sees("› look at @be", "▸ @be")
			p.press("Down")
			p.sees("› look at @be", "▸ @be")
			p.press("Up", "Enter")
			p.sees("› look at @bea")
			p.press("C-u", "C-r")
			p.types("rst")
			p.sees("search: rst", "first of them")
			p.press("Enter")
			p.sees("› first of them", "ready")
			p.press("C-u", "C-d")
			p.ends(0)
		})
	}
}

// TestScreenPaste sends 10,000 pasted lines: the model gets all of them, and the scrollback the
// first and the last.
func TestScreenPaste(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("Got it."))
	p := chatAt(s, 80, 24)
	var big strings.Builder
	for i := range 10000 {
		fmt.Fprintf(&big, "pasted line %d\n", i)
	}
	file := filepath.Join(s.dir, "big")
	if err := os.WriteFile(file, []byte(big.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	p.tmux("load-buffer", file)
	p.tmux("paste-buffer", "-p", "-t", p.name)
	p.sees("[pasted: 10,000 lines]")
	p.press("Enter")
	p.sees("pasted line 9999", "Got it.", "ready")
	if all := p.all(); strings.Count(all, "pasted line") != 59 || !strings.Contains(all, "more lines") || !strings.Contains(s.read(), `pasted line 5000\n`) {
		t.Errorf("the scrollback has %d lines of it:\n%s", strings.Count(all, "pasted line"), all)
	}
	p.leaves()
}
