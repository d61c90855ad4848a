package sandbox

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/regie-run/regie"
)

// floods start at most 600 processes each, counted over their whole life, and each of those ends
// by itself after a minute. $1 is the time that a sleeper sleeps, in which the test finds it
// again.
var floods = []struct{ name, script string }{
	{"children", `for i in $(seq 600); do sleep $1 & done; wait`},
	{"children left behind", `for i in $(seq 400); do sleep $1 & done`},
	{"sessions", `for i in $(seq 600); do setsid sleep $1 & done; wait`},
	{"double forks", `for i in $(seq 300); do ( setsid sleep $1 & ); done; sleep $1`},
	{"restarted children", `for i in $(seq 150); do ( for j in 1 2 3; do sleep $1; done ) & done; wait`},
	{"deaf to SIGTERM", `trap "" TERM; for i in $(seq 600); do sleep $1 & done; while :; do sleep $1; done`},
}

// sleepMark returns a time of about a minute that no other test sleeps.
func sleepMark() string {
	var n uint32
	for _, b := range []byte(rand.Text()[:6]) {
		n = n*31 + uint32(b)
	}
	return fmt.Sprintf("60.%010d", n)
}

// otherProcess runs beside a test and counts its steps.
func otherProcess(t *testing.T) *atomic.Int64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "while echo; do sleep 0.05; done")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var steps atomic.Int64
	lines := bufio.NewReader(out)
	if _, err := lines.ReadByte(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			if _, err := lines.ReadByte(); err != nil {
				return
			}
			steps.Add(1)
		}
	}()
	return &steps
}

func (b *box) testExceeded(t *testing.T, want regie.Code, argv ...string) {
	t.Helper()
	mark, steps := sleepMark(), otherProcess(t)
	c := b.command(append(argv, "sh", mark)...)
	c.Timeout = 55 * time.Second // the sleepers end by themselves a little later
	r := b.run(c)
	if r.err != nil || r.Exceeded != want || r.TimedOut {
		t.Errorf("got %+v, %q, %v", r.Result, r.text(), r.err)
	}
	gone(t, mark)
	if r.Duration > 2*time.Second && steps.Load() == 0 { // it makes one each 50 ms
		t.Error("another process made no step meanwhile")
	}
	t.Logf("ended after %s", r.Duration)
}

func TestBounds_Processes(t *testing.T) {
	asOrdinaryUserToo(t)
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		b.config.Processes = 100
		for _, flood := range floods {
			t.Run(flood.name, func(t *testing.T) { b.testExceeded(t, regie.CodeProcessLimit, "sh", "-c", flood.script) })
		}
	})
}

// TestBounds_Probe has the flood of the probes fail where the bound is higher: it would show
// nothing else.
func TestBounds_Probe(t *testing.T) {
	asOrdinaryUserToo(t)
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		if p, err := b.probeBounds(t.Context(), b.tier); err != nil || !p.Held {
			t.Errorf("got %+v, %v", p, err)
		}
		c := b.command(probeName)
		c.probe, c.Timeout = floodProbe, time.Second
		b.config.Processes = floodProcesses + 1
		if r := b.run(c); r.err != nil || r.Exceeded != "" || !r.TimedOut {
			t.Errorf("within the bound: %+v, %v", r.Result, r.err)
		}
	})
}

// threadsName starts this program with 200 threads, for a minute at most.
const threadsName = "regie-test-threads"

var _ = addTestProgram(threadsName, func() {
	for range 200 {
		go func() {
			runtime.LockOSThread()
			_ = unix.Nanosleep(&unix.Timespec{Sec: 60}, nil)
		}()
	}
	time.Sleep(time.Minute)
})

func TestBounds_Threads(t *testing.T) {
	asOrdinaryUserToo(t)
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		copyProgram(t, filepath.Join(b.root, "program"))
		b.config.Processes = 10
		b.testExceeded(t, regie.CodeProcessLimit, "bash", "-c", "exec -a "+threadsName+" ./program $1")
	})
}

func TestBounds_Memory(t *testing.T) {
	asOrdinaryUserToo(t)
	const fill = `fill() { x=$(head -c $1 /dev/zero | tr '\0' a); }; `
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		b.config.Memory = 64 << 20
		t.Run("one process", func(t *testing.T) {
			b.testExceeded(t, regie.CodeMemoryLimit, "bash", "-c", fill+"fill 100000000; sleep $1")
		})
		t.Run("sum", func(t *testing.T) {
			b.testExceeded(t, regie.CodeMemoryLimit, "bash", "-c", fill+"for i in 1 2 3 4 5; do ( fill 20000000; sleep $1; : ) & done; wait")
		})
		t.Run("shared", func(t *testing.T) { // 16 MB, of which the shell holds up to three copies while it reads
			r := b.run(b.command("bash", "-c", fill+"fill 16000000; for i in 1 2 3 4 5; do ( sleep 1; : ) & done; wait"))
			if r.err != nil || r.Exceeded != "" || r.Exit != 0 {
				t.Errorf("memory that six processes share counts six times: %+v, %v", r.Result, r.err)
			}
		})
	})
}

// TestOwnMemory_Ended reads a process that ended meanwhile: it has no memory, as a zombie or gone.
func TestOwnMemory_Ended(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	p := &process{pid: cmd.Process.Pid, resident: 1 << 30}
	if own := p.ownMemory(); own != 0 {
		t.Errorf("a zombie has %d bytes", own)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if own := p.ownMemory(); own != 0 {
		t.Errorf("an ended process has %d bytes", own)
	}
}

// TestBounds_Time ends what is in sessions of its own with the command's time.
func TestBounds_Time(t *testing.T) {
	asOrdinaryUserToo(t)
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		mark := sleepMark()
		c := b.command("sh", "-c", `for i in $(seq 300); do setsid sleep $1 & done; trap "" TERM; while :; do sleep $1; done`, "sh", mark)
		c.Timeout = 2 * time.Second
		if r := b.run(c); r.err != nil || !r.TimedOut || r.Exceeded != "" {
			t.Errorf("got %+v, %q, %v", r.Result, r.text(), r.err)
		}
		gone(t, mark)
	})
}

// TestBounds_Build runs an ordinary build within the default bounds.
func TestBounds_Build(t *testing.T) {
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		makefile := "all: $(patsubst %,sub/%.o,$(shell seq 40))\nsub/%.o:\n\techo 'int f$*(void) { return $*; }' | cc -x c -c -o $@ -\n"
		if err := os.WriteFile(filepath.Join(b.root, "sub", "Makefile"), []byte(makefile), 0o600); err != nil {
			t.Fatal(err)
		}
		c := b.command("make", "-j8", "-f", "sub/Makefile")
		c.Timeout = 2 * time.Minute
		if r := b.run(c); r.err != nil || r.Exit != 0 || r.Exceeded != "" {
			t.Errorf("got %+v, %q, %v", r.Result, r.text(), r.err)
		}
	})
}

// TestEndHelper kills what a helper that stands still has below it, and the helper last.
func TestEndHelper(t *testing.T) {
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		mark := sleepMark()
		c := b.command("sh", "-c", `for i in $(seq 20); do setsid sleep $1 & done; echo ready; wait`, "sh", mark)
		c.Timeout = 4 * time.Second // enough for the helper to be stopped before
		c.Output = func([]byte) {
			walkTree(os.Getpid(), func(pid int) bool {
				if name, _ := os.ReadFile(procDir(pid) + "/cmdline"); bytes.HasSuffix(name, []byte(watchName+"\x00")) {
					_ = syscall.Kill(pid, syscall.SIGSTOP)
				}
				return true
			})
		}
		if r := b.run(c); r.err != nil || !r.TimedOut || r.Signal != "SIGKILL" {
			t.Errorf("got %+v, %v", r.Result, r.err)
		}
		gone(t, mark)
	})
}

// ordinaryUser says that this is the test's program again, as an ordinary user.
const ordinaryUser = "SANDBOX_TEST_ORDINARY"

// asOrdinaryUserToo runs a test once more as a user without any rights, where this one is root.
func asOrdinaryUserToo(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 || os.Getenv(ordinaryUser) != "" {
		return
	}
	name := t.Name()
	t.Run("ordinary user", func(t *testing.T) {
		dir, err := os.MkdirTemp("/var/tmp", "regie-sandbox-") //nolint:usetesting // others must get there, and the test's own directory is closed to them
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		program, temp := filepath.Join(dir, "sandbox.test"), filepath.Join(dir, "temp")
		copyProgram(t, program)
		if err := errorsJoin(os.Chmod(dir, 0o755), os.Mkdir(temp, 0o700), os.Chown(temp, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+name+"$", "-test.v")
		cmd.Env = append(os.Environ(), ordinaryUser+"=1", "TMPDIR="+temp, "HOME=/nonexistent")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		cmd.Dir = "/"
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: "+name+"/none") {
			t.Errorf("%v\n%s", err, out)
		}
		t.Logf("%s", out)
	})
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	from, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(f, from)
	if err := errorsJoin(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
