package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestScreenEditorStopped presses Ctrl-Z in the person's editor, below a shell that knows jobs: the
// chat stops with it, and fg brings both back. The chat goes on with what was edited, and the shell
// has its terminal afterwards.
func TestScreenEditorStopped(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("I write.", wanted{"a", "a.txt", "one\n"}), reply("Written."))
	script := filepath.Join(s.dir, "editor")
	if err := os.WriteFile(script, []byte("echo editing\nread line\nsed -i s/one/\"$line\"/ \"$1\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.env = append(s.env, "PS1=shell: ", "EDITOR=sh "+script)
	p := emulatorOf(s, 80, 30, "exec sh -i")
	p.sees("shell:")
	p.enter("regie chat; echo exit=$?")
	p.sees("›", "ready")
	p.enter("write")
	p.sees("[l]")
	p.press("e")
	p.sees("editing")
	p.press("C-z")
	p.sees("+ Stopped", "exit=148")
	p.enter("clear; fg; echo after=$?")
	p.gone("exit=148")
	p.enter("zwei")
	p.sees("│ +zwei", "[y] once, as edited")
	p.press("y")
	p.sees("with edited arguments", "Written.", "ready")
	p.types("still here")
	p.sees("› still here")
	p.press("C-u", "C-d")
	p.sees("after=0")
	p.enter("stty -a | tr ' ;' '\\n\\n' | grep -E '^-?(icanon|isig|echo)$' | tr '\\n' ' '")
	p.sees("isig icanon echo")
	s.holds("a.txt", "zwei\n")
}
