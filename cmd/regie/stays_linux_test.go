package main

import (
	"bufio"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEngineStays presses Ctrl-Z in programs that are the engine: they say why they do not stop,
// and go on.
func TestEngineStays(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"chat", "--plain"}, {"run", "write"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			s := newStage(t, reply("I write.", wanted{"a", "a.txt", "one\n"}), reply("Written."))
			c := s.regie(args...)
			if args[0] == "chat" {
				c.expect("> ")
				c.press("\x1a")
				c.expect("no Ctrl-Z: runs go on in this program")
				c.expect("> ")
				c.enter("write")
			}
			c.expect("[l] later")
			c.press("\x1a")
			c.expect("no Ctrl-Z: runs go on in this program")
			c.enter("y")
			c.expect("Written.")
			if args[0] == "chat" {
				c.expect("> ")
				c.press("\x04")
			}
			c.ends(exitDone)
			s.holds("a.txt", "one\n")
		})
	}
}

// TestClientStops presses Ctrl-Z in a program that asks the engine of another one: the system stops
// it, as it does any.
func TestClientStops(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		<-goOn
		reply("Done.")(w, r)
	})
	c := s.regie("chat", "--plain")
	c.expect("> ")
	client := exec.CommandContext(t.Context(), "regie", "run", "--json", "work")
	client.Dir, client.Env = c.cmd.Dir, c.cmd.Env
	client.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a job of this process: somebody can continue it
	out, err := client.StdoutPipe()
	if err == nil {
		err = client.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	events := bufio.NewReader(out)
	if line, err := events.ReadString('\n'); err != nil {
		t.Fatalf("%q (%v)", line, err)
	}
	pid, status := client.Process.Pid, syscall.WaitStatus(0)
	if err := syscall.Kill(pid, syscall.SIGTSTP); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(patience, func() { _ = client.Process.Kill() })
	if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it is not stopped: %v (%v)", status, err)
	}
	close(goOn)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(events); err != nil || !strings.Contains(string(rest), "Done.") {
		t.Errorf("%s (%v)", rest, err)
	}
	if err := client.Wait(); err != nil {
		t.Error(err)
	}
	c.press("\x04")
	c.ends(exitDone)
}

// TestHangup closes the terminal of a run: it stays as it is stored, and how to go on with it is
// said to whoever reads it.
func TestHangup(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("I write.", wanted{"a", "a.txt", "one\n"}))
	c := s.regie("run", "write")
	c.expect("[l] later")
	for range 2 { // a shell's, and the system's
		if err := c.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	c.expect("go on with: regie run --resume ")
	c.ends(exitInterrupted)
}

// TestPromptLeft leaves a chat that never began: the shell's prompt stands on a line of its own.
func TestPromptLeft(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"Ctrl-C": "\x03", "Ctrl-D": "\x04"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newStage(t).regie("chat", "--plain")
			c.expect("> ")
			c.press(key)
			c.ends(exitDone)
			if !strings.HasSuffix(c.all(), "\n") {
				t.Errorf("the line is left open: %q", c.all())
			}
		})
	}
}
