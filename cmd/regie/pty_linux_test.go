package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is the program at a terminal of its own, as a person sees and types it.
type screen struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	done   chan struct{} // closed when the program has ended and all was read

	mu    sync.Mutex
	grown chan struct{} // closed and made anew when more was written
	text  bytes.Buffer
	seen  int // up to here expect has looked
}

// patience is how long something may take to appear on a screen of a machine that is busy.
const patience = 30 * time.Second

// terminal runs the program at a new terminal.
func terminal(t *testing.T, dir string, env []string, args ...string) *screen {
	t.Helper()
	master, slave := openPTY(t)
	s := &screen{t: t, master: master, grown: make(chan struct{}), done: make(chan struct{})}
	s.cmd = exec.CommandContext(t.Context(), "regie", args...)
	s.cmd.Dir, s.cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(filepath.Dir(dir), "home"), "REGIE_LANG=en", "TERM=dumb"}, env...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	go func() {
		defer close(s.done)
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer) // EIO once the program has ended
			s.mu.Lock()
			s.text.Write(bytes.ReplaceAll(buffer[:n], []byte("\r"), nil))
			close(s.grown)
			s.grown = make(chan struct{})
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.done
		_ = s.master.Close()
	})
	return s
}

func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "ptmx"), slave
}

// expect waits until a text appears behind what was expected before.
func (s *screen) expect(want string) {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		s.mu.Lock()
		rest, grown := s.text.String()[s.seen:], s.grown
		at := strings.Index(rest, want)
		if at >= 0 {
			s.seen += at + len(want)
		}
		s.mu.Unlock()
		if at >= 0 {
			return
		}
		select {
		case <-grown:
		case <-s.done:
			s.mu.Lock()
			rest = s.text.String()[s.seen:]
			s.mu.Unlock()
			if !strings.Contains(rest, want) {
				s.t.Fatalf("the program ended without %q:\n%s", want, s.all())
			}
		case <-deadline:
			s.t.Fatalf("%q does not appear:\n%s", want, s.all())
		}
	}
}

// enter types a line; press types as it is.
func (s *screen) enter(line string) { s.press(line + "\n") }

func (s *screen) press(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// all is everything that was written so far.
func (s *screen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// ends waits for the end of the program and expects its exit code.
func (s *screen) ends(code int) {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		s.t.Fatalf("the program does not end:\n%s", s.all())
	}
	_ = s.cmd.Wait() // the state has the code
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Fatalf("it exited %d, want %d:\n%s", got, code, s.all())
	}
}
