package main

import "testing"

// TestScreenCleared empties the screen, and what is printed right afterwards stays on it. Ctrl-L
// draws again what another program has wiped out.
func TestScreenCleared(t *testing.T) {
	t.Parallel()
	p := chatAt(newStage(t), 80, 24)
	for range 20 {
		p.types("/clear\r/nothing\r/automations\r/cost\r")
		p.sees("there is no /nothing", "no automations in this workspace", "nothing was spent today", "ready")
		p.types("/clear\r")
		p.gone("there is no /nothing")
	}
	p.types("a draft")
	p.sees("› a draft", "ready")
	p.tmux("send-keys", "-R", "-t", p.name)
	p.gone("› a draft")
	p.press("C-l")
	p.sees("› a draft", "ready")
	p.press("C-u")
	p.leaves()
}
