package main

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// signal sends the program of a pane a signal.
func (p *pane) signal(s syscall.Signal) {
	p.t.Helper()
	pid, err := strconv.Atoi(child(p.t, strings.TrimSpace(p.tmux("display-message", "-p", "-t", p.name, "#{pane_pid}"))))
	if err != nil {
		p.t.Fatal(err)
	}
	if err := syscall.Kill(pid, s); err != nil {
		p.t.Fatal(err)
	}
}

// TestScreenLeft ends chats by signals and by a second Ctrl-C: whoever started them learns that the
// person did not leave, and the next chat asks again what waits.
func TestScreenLeft(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"chat"}, {"chat", "--plain"}} {
		t.Run(strings.Join(args, ""), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, reply("I write.", wanted{"a", "a.txt", "one\n"}), reply("Written."))
			p := emulator(s, 80, 24, args...)
			p.sees("main in")
			p.signal(syscall.SIGTERM)
			p.ends(exitInterrupted)
			p = emulator(s, 80, 24, args...)
			p.sees("main in")
			p.enter("write")
			p.sees("[l]")
			p.signal(syscall.SIGHUP)
			p.ends(exitInterrupted)
			if !strings.Contains(p.all(), "is left as it is") {
				t.Errorf("it does not say what becomes of the run:\n%s", p.all())
			}
			p = emulator(s, 80, 24, append(args, "-c")...)
			p.sees("[l]")
			p.press("y")
			if len(args) > 1 {
				p.press("Enter")
			}
			p.sees("Written.")
			p.leaves()
			s.holds("a.txt", "one\n")
		})
	}
}

// TestScreenCutOff leaves a run that an interrupt does not end at once: the words on leaving are
// about it, and the exit code says that the person did not wait.
func TestScreenCutOff(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := chatAt(s, 120, 24)
	p.allows("!trap '' TERM; echo begun; while true; do sleep 1; done")
	p.sees("working", "│ begun")
	p.signal(syscall.SIGTERM)
	p.until("the words", func() bool {
		return strings.Contains(p.all(), "waiting at most a minute for a model call or an action in progress")
	})
	p.ends(exitInterrupted)
}

// TestScreenRead reads an answer in chats that stay open: it counts as read.
func TestScreenRead(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"chat"}, {"chat", "--plain"}} {
		t.Run(strings.Join(args, ""), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, reply("An answer."))
			p := emulator(s, 80, 24, args...)
			p.sees("main in")
			p.enter("hello")
			p.until("the end of the run", func() bool {
				return strings.Contains(p.screen(), "An answer.\n>") || strings.Contains(p.screen(), "An answer.") && strings.Contains(p.screen(), "ready")
			})
			p.until("that it is read", func() bool {
				c := exec.CommandContext(t.Context(), "regie", "sessions", "list")
				c.Dir, c.Env = filepath.Join(s.dir, "work"), p.env
				out, err := c.CombinedOutput()
				return err == nil && strings.Contains(string(out), "hello") && !strings.Contains(string(out), "unread")
			})
			p.leaves()
		})
	}
}
