package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestScreenTinyOffers completes, and looks back, in terminals of a few lines: what is picked is
// seen, below what is written.
func TestScreenTinyOffers(t *testing.T) {
	t.Parallel()
	for _, lines := range []int{5, 12} {
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
