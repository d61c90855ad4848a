package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestScreenUndo takes a run back after a look at it, and shows a call; golden files show the whole
// of it.
func TestScreenUndo(t *testing.T) {
	t.Parallel()
	for _, row := range screens {
		t.Run(fmt.Sprintf("%s-%d", row.lang, row.columns), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, reply("I write a file.", wanted{"a", "a.txt", "one\ntwo\n"}), reply("Done."))
			s.env = append(s.env, "REGIE_LANG="+row.lang)
			p := emulator(s, row.columns, 40, "chat", "--allow", "files.write_file")
			p.sees("›", "/help")
			p.enter("write")
			p.sees("Done.", "/help")
			p.press("C-o")
			p.sees(`"content": "one\ntwo\n"`)
			p.types("/un")
			p.sees("▸ /undo")
			p.press("Enter")
			p.sees("-two", "[n]")
			p.press("n")
			p.gone("[n]")
			p.enter("/undo")
			p.sees("[n]")
			p.types("y")
			p.sees(": /undo ", "✓ a.txt")
			p.gone("[n]")
			p.leaves()
			s.holds("a.txt", "")
			p.golden(fmt.Sprintf("undo-%s-%d", row.lang, row.columns))
		})
	}
}

// TestScreenWords goes through what can be typed and pressed.
func TestScreenWords(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("First."), reply("Second."), reply("Third."))
	if err := os.WriteFile(s.work("plan one.txt"), []byte("the plan\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := chatAt(s, 100, 60) // the help, and below it the rows that the list of commands needed while it was typed
	p.enter("/help")
	p.sees("/undo", "/cost", "Ctrl-R", "@path")
	p.types("see @pla")
	p.sees(`▸ @"plan one.txt"`)
	p.press("Tab")
	p.sees(`see @"plan one.txt"`) // Tab or Enter takes what is offered
	p.press("Enter")
	p.sees(`read for the model: @"plan one.txt"`, "First.", "ready")
	p.enter("/fork the other way")
	p.sees("forked from")
	p.enter("in the fork")
	p.sees("Second.", "ready")
	p.enter("/new")
	p.sees("a new chat")
	p.enter("one more chat") // the model's steps count the replies of its thread
	p.sees("› one more chat", "First.", "ready")
	p.enter("/resume")
	p.sees("which chat:", "the other way")
	p.types("other")
	p.sees("which chat: other")
	p.press("Enter")
	p.sees("› in the fork", "Second.", "ready")
	p.press("Up")
	p.sees("› in the fork\n")
	p.press("C-u")
	p.press("C-r")
	p.sees("search:")
	p.types("one mo")
	p.sees("search: one mo", "  one more chat")
	p.press("Enter")
	p.sees("› one more chat\n  ready")
	p.press("C-c")
	p.enter("/model other-model")
	p.sees("other-model answers from the next message on", "· other-model")
	p.enter("/cost")
	p.sees("this chat: ")
	p.enter("/nothing")
	p.sees("there is no /nothing")
	p.enter("/rules")
	p.sees("no standing rules")
	p.tmux("set-buffer", strings.Repeat("a pasted line\n", 30))
	p.tmux("paste-buffer", "-p", "-t", p.name)
	p.sees("[pasted: 30 lines]")
	p.press("C-c")
	p.gone("[pasted")
	p.types("one")
	p.press("M-Enter")
	p.types("two")
	p.sees("› one\n  two")
	p.press("Escape")
	p.sees("Esc once more")
	p.press("Escape")
	p.sees("›\n  ready")
	p.enter("/quit")
	p.sees("continue this chat")
	p.ends(0)
}

// TestScreenEnds has each exit code, and a terminal without colours.
func TestScreenEnds(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("It is `code` and **bold**.\n\n```go\nfunc f() {}\n```"))
	s.env = append(s.env, "NO_COLOR=1")
	p := chatAt(s, 80, 24)
	p.enter("hello")
	p.sees("func f() {}", "ready")
	for _, colour := range []string{"\x1b[3", "\x1b[9", "38;5"} {
		if strings.Contains(strings.ReplaceAll(p.coloured(), "\x1b[39m", ""), colour) {
			t.Errorf("there are colours in spite of NO_COLOR: %q", p.coloured())
		}
	}
	p.signal(syscall.SIGTERM)
	p.ends(exitInterrupted)
	unknown := emulator(s, 80, 24, "chat", "-r", "ffffffff")
	unknown.ends(1)
	if !strings.Contains(unknown.joined(), "there is no chat ffffffff") {
		t.Errorf("it says\n%s", unknown.joined())
	}
	usage := emulator(s, 80, 24, "chat", "--bell", "loud")
	usage.ends(2)
	without := &stage{t: t, dir: s.dir, env: []string{"REGIE_DATA_DIR=" + s.dir + "/none", "REGIE_PROVIDER=nobody"}}
	emulator(without, 80, 24, "chat").ends(2)
	dumb := emulator(&stage{t: t, dir: s.dir, env: append(s.env, "TERM=dumb")}, 80, 24, "chat")
	dumb.sees("\n>")
	dumb.once("Ctrl-D leaves.") // the line is broken wherever the directory's name has it end
	dumb.leaves()
	plain := emulator(s, 80, 24, "chat", "--plain", "-c")
	plain.sees("› hello", "\n>")
	plain.once("Ctrl-D leaves.")
	plain.leaves()
}

// TestScreenCommand gives commands without a model: denied, allowed, refused, and taken back;
// golden files show the whole of it.
func TestScreenCommand(t *testing.T) {
	t.Parallel()
	for _, row := range screens {
		t.Run(fmt.Sprintf("%s-%d", row.lang, row.columns), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, reply("You made a file."))
			s.env = append(s.env, "REGIE_LANG="+row.lang)
			p := emulator(s, row.columns, 60, "chat")
			p.sees("›", "/help")
			p.enter("!")
			p.sees("!git status")
			p.enter("!!")
			p.sees("!! ")
			p.press("C-u")
			p.enter("!echo no > b.txt")
			p.sees("[l]")
			p.press("n")
			p.sees("DENIED  [1]", "/help")
			p.allows("!echo one | tee a.txt")
			p.sees("│ one", "A a.txt", "/help")
			p.enter("what did I do?")
			p.sees("You made a file.", "/help")
			p.enter("/undo")
			p.sees("[n]")
			p.types("y")
			p.sees(": /undo ")
			p.gone("[n]")
			p.enter("/undo")
			p.sees("[n]")
			p.types("y")
			p.sees("✓ a.txt")
			p.gone("[n]")
			p.leaves()
			s.holds("a.txt", "")
			s.holds("b.txt", "")
			p.golden(fmt.Sprintf("command-%s-%d", row.lang, row.columns))
		})
	}
}
