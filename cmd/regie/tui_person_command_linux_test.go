package main

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// inOrder checks that texts stand below each other, each once at least.
func (p *pane) inOrder(texts ...string) {
	p.t.Helper()
	rest := p.joined()
	for _, text := range texts {
		_, behind, found := strings.Cut(rest, text)
		if !found {
			p.t.Errorf("%q does not stand below what was before it:\n%s", text, p.all())
			return
		}
		rest = behind
	}
}

// TestScreenCommandQueued types a message while the person's own command runs: what came of the
// command stands below the command, and above the message and its answer.
func TestScreenCommandQueued(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("The answer."))
	p := chatAt(s, 80, 50)
	p.allows("!while ! test -e go; do sleep 0.1; done; seq 3")
	p.sees("working", "shell_exec  ")
	p.enter("and a message")
	p.sees("and a message", "working")
	if err := os.WriteFile(s.work("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.sees("The answer.", "ready")
	p.inOrder("› !while", "✓ shell.shell_exec", "│ output:", "│ 1", "│ 2", "│ 3", "› and a message", "The answer.")
	p.leaves()
}

// TestScreenCommandFails gives a command that fails, drawn and in plain lines: its line says so.
// One that is given meanwhile stays in the prompt.
func TestScreenCommandFails(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := chatAt(s, 80, 50)
	p.allows("!while ! test -e go; do sleep 0.1; done; exit 3")
	p.sees("working", "shell_exec  ")
	p.enter("!ls")
	p.sees("› !ls", "a run is open")
	if err := os.WriteFile(s.work("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.sees("✗ shell.shell_exec", "exit code 3  [1]", "ready", "› !ls")
	p.gone("a run is open")
	p.press("Enter")
	p.sees("[l]")
	p.press("y")
	p.sees("✓ shell.shell_exec", "[2]", "ready")
	p.leaves()
	c := s.regie("chat", "--plain")
	c.expect("> ")
	c.enter("!false")
	c.expect("[y]")
	c.enter("y")
	c.expect("✗ shell.shell_exec false")
	c.expect("exit code 1")
	c.expect("> ")
	c.enter("/exit")
	c.ends(0)
}

// TestScreenModels lists the models that the provider has, and chooses one.
func TestScreenModels(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := chatAt(s, 80, 24)
	p.enter("/model")
	p.sees("▸ openai/scripted", "openai/another␛[31m-one", "[Enter] choose")
	p.press("Down", "Enter")
	p.sees("another␛[31m-one answers from the next message on")
	p.press("C-z")
	p.sees("no Ctrl-Z: runs go on in this program")
	p.leaves()
}

// TestScreenHelp writes all of the help in a terminal of 50 columns.
func TestScreenHelp(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := chatAt(s, 50, 24)
	p.enter("/help")
	p.sees("complete; show again", "ready")
	p.inOrder("/undo", "force", "ID]", "/agent", "[NAME]", "Alt-Enter", "Ctrl-J", "!command", "agent's need")
	p.leaves()
}

// TestScreenCommandStopped interrupts the person's own command: what it had put out stays, that it
// was stopped is said, and a chat that is opened later shows the same.
func TestScreenCommandStopped(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := chatAt(s, 80, 50)
	p.allows("!seq 7 9; sleep 60")
	p.sees("working", "│ 9")
	p.press("Escape")
	p.sees("│ 7", "│ 9", "stopped, with everything that it had started", "regie runs resolve", "ready")
	copied := regexp.MustCompile(`(?m)^ +regie runs resolve [0-9a-f-]{36} happened$`) // no bar, and not broken
	p.until("the command to be copied", func() bool { return copied.MatchString(p.screen()) })
	if strings.Contains(p.all(), "nobody knows") {
		t.Errorf("it tells the person who stopped it that nobody knows:\n%s", p.all())
	}
	p.leaves()
	again := emulator(s, 120, 50, "chat", "-c")
	again.sees("stopped, with everything", "ready")
	again.inOrder("› !seq 7 9", "│ 7", "│ 9", "stopped, with everything")
	again.leaves()
}

// TestScreenCommandPast opens a chat again in which the person gave commands: what came of each
// stands below it, also that nobody knows it.
func TestScreenCommandPast(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := chatAt(s, 120, 50)
	p.allows("!seq 7 9")
	p.sees("│ 9", "ready")
	p.enter("!echo denied")
	p.sees("[l]")
	p.press("n")
	p.sees("the command was not run", "ready")
	p.allows("!echo begun; sleep 60")
	p.sees("working", "│ begun")
	pid := strings.TrimSpace(p.tmux("display-message", "-p", "-t", p.name, "#{pane_pid}"))
	kill(t, pid)
	p.sees("exit=137")
	taken := emulator(s, 120, 50, "chat", "-c") // it finds out
	taken.sees("its outcome is unknown", "ready")
	taken.leaves()
	again := emulator(s, 120, 50, "chat", "-c")
	again.sees("its outcome is unknown", "ready")
	again.inOrder("› !seq 7 9", "│ 7", "│ 9", "› !echo denied", "the command was not run", "› !echo begun", "its outcome is unknown", "regie runs resolve")
	if strings.Contains(again.all(), "calls:") {
		t.Errorf("a count stands in place of what came of it:\n%s", again.all())
	}
	again.leaves()
	plain := s.regie("chat", "--plain", "-c")
	for _, want := range []string{"› !seq 7 9", "│ 9", "› !echo denied", "the command was not run", "› !echo begun", "its outcome is unknown", "> "} {
		plain.expect(want)
	}
	plain.enter("/exit")
	plain.ends(0)
}

// TestScreenCommandHidden asks about a command that no answer for longer can cover, and that hides
// a part behind padding: the keys that would do nothing are not offered, and the part is seen.
func TestScreenCommandHidden(t *testing.T) {
	t.Parallel()
	s := newStage(t, shellExec("ls"+strings.Repeat("\n", 100)+strings.Repeat("#a\n", 200)+"rm -rf secret\n"+strings.Repeat("#b\n", 200)), reply("I leave it."))
	p := chatAt(s, 100, 40)
	p.enter("look")
	p.sees("rm -rf secret", "more times", "[y] once", "[e] edit", "[v]", "[l]")
	if screen := p.screen(); strings.Contains(screen, "[s]") || strings.Contains(screen, "[a]") {
		t.Errorf("an answer for longer is offered:\n%s", screen)
	}
	p.press("n")
	p.sees("DENIED", "ready")
	p.leaves()
	c := s.regie("chat", "--plain")
	c.expect("> ")
	c.enter("!echo hello; printf $x")
	c.expect("[y] once  [e] edit  [n] no")
	c.enter("n")
	c.expect("the command was not run")
	c.expect("> ")
	c.enter("/exit")
	c.ends(0)
}

// shellExec has the model run a command.
func shellExec(command string) http.HandlerFunc {
	arguments, _ := json.Marshal(map[string]string{"command": command})
	return calls("", called{"shell", "shell__shell_exec", string(arguments)})
}
