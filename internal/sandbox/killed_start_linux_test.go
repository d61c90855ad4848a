package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKilledAtStart kills the program that runs a command while bubblewrap is between two
// processes: the first was to tell the second that it may begin. Nothing is left of either.
func TestKilledAtStart(t *testing.T) {
	if root := os.Getenv("SANDBOX_TEST_START"); root != "" {
		b := &box{New(Config{Environ: os.Environ(), Home: os.Getenv("HOME")}), t, Bubblewrap, root}
		b.run(b.command("sh", "-c", "echo begun > begun; while :; do sleep 1; done"))
		return
	}
	b := newBox(t, Bubblewrap)
	for range 10 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=TestKilledAtStart$")
		cmd.Env = append(os.Environ(), "SANDBOX_TEST_START="+b.root, "TMPDIR="+b.temp())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var first, second []int
		for deadline := time.Now().Add(10 * time.Second); len(second) == 0 && time.Now().Before(deadline); {
			if first = children(cmd.Process.Pid); len(first) > 0 {
				second = children(first[0])
			}
		}
		if len(second) == 0 {
			t.Fatal("bubblewrap was never seen")
		}
		_ = syscall.Kill(first[0], syscall.SIGSTOP) // so that the moment lasts
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		_ = syscall.Kill(first[0], syscall.SIGCONT)
		gone(t, b.root) // it stands among bubblewrap's arguments
		for deadline := time.Now().Add(5 * time.Second); alive(second[0]); {
			if time.Now().After(deadline) {
				_ = syscall.Kill(second[0], syscall.SIGKILL)
				t.Fatal("the second process waits for the first one, which was killed")
			}
		}
	}
}

// children are the processes that a process has started, with any of its threads.
func children(of int) (out []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of))
	for _, name := range lists {
		data, _ := os.ReadFile(name)
		for field := range strings.FieldsSeq(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}

// alive reports whether a process runs or waits.
func alive(pid int) bool {
	p, there := readStat(procDir(pid))
	return there && !p.ended
}

// TestKilledHelper kills bubblewrap's first process under a command, as the system does that runs
// out of memory: the command is killed with it.
func TestKilledHelper(t *testing.T) {
	b := newBox(t, Bubblewrap)
	mark := filepath.Base(b.root) + "-helper"
	c := b.command("sh", "-c", "echo ready; while :; do sleep 1; done", "sh", mark)
	c.Output = func([]byte) {
		for _, pid := range children(os.Getpid()) {
			if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(data), b.root) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	began := time.Now()
	if r := b.run(c); r.err == nil && r.Signal != "SIGKILL" || time.Since(began) > 10*time.Second {
		t.Errorf("got %+v, %v after %s", r.Result, r.err, time.Since(began))
	}
	gone(t, mark)
}
