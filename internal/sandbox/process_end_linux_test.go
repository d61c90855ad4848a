package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// leavesBehind starts a tree of processes that do all they can to outlive their parent: in the
// background, in a session of their own, forked twice, deaf to signals. Each carries the mark in
// its name.
const leavesBehind = `
mark=$1
sh -c 'trap "" TERM HUP INT; while :; do sleep 1; done' "$mark" &
setsid sh -c 'while :; do sleep 1; done' "$mark" &
( ( setsid sh -c 'trap "" TERM HUP; while :; do sleep 1; done' "$mark" & ) & )
nohup sh -c 'while :; do sleep 1; done' "$mark" >/dev/null 2>&1 &
sleep 0.3
echo ready
`

// marked counts the processes of the machine with a mark among their arguments.
func marked(t *testing.T, mark string) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		data, err := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if err == nil && entry.Name() != strconv.Itoa(os.Getpid()) && bytes.Contains(data, []byte("\x00"+mark+"\x00")) {
			n++
		}
	}
	return n
}

// gone waits until no process has the mark: what has just been killed may still be listed.
func gone(t *testing.T, mark string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; runtime.Gosched() {
		n := marked(t, mark)
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%d processes of the command are alive", n)
			return
		}
	}
}

func TestNothingOutlives(t *testing.T) {
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		t.Run("its end", func(t *testing.T) {
			mark := filepath.Base(b.root) + "-end-" + string(b.tier)
			r := b.run(b.command("sh", "-c", leavesBehind+"exit 7", "sh", mark))
			if r.err != nil || r.Exit != 7 || !strings.Contains(r.text(), "ready") || r.Left == 0 {
				t.Errorf("got %+v, %q, %v", r.Result, r.text(), r.err)
			}
			gone(t, mark)
		})
		t.Run("its time", func(t *testing.T) {
			mark := filepath.Base(b.root) + "-time-" + string(b.tier)
			c := b.command("sh", "-c", leavesBehind+"trap '' TERM; while :; do sleep 1; done", "sh", mark)
			c.Timeout = 3 * time.Second
			r := b.run(c)
			if r.err != nil || !r.TimedOut || r.Signal != "SIGKILL" || r.Duration > 20*time.Second || !strings.Contains(r.text(), "ready") {
				t.Errorf("got %+v, %q, %v", r.Result, r.text(), r.err)
			}
			gone(t, mark)
		})
		t.Run("a stop", func(t *testing.T) {
			mark := filepath.Base(b.root) + "-stop-" + string(b.tier)
			c := b.command("sh", "-c", leavesBehind+"while :; do sleep 1; done", "sh", mark)
			ctx, cancel := context.WithCancel(t.Context())
			c.Output = func(p []byte) {
				if bytes.Contains(p, []byte("ready")) {
					cancel()
				}
			}
			result, err := b.Run(ctx, c)
			if err != nil || !result.Stopped || result.Duration > 20*time.Second {
				t.Errorf("got %+v, %v", result, err)
			}
			gone(t, mark)
		})
		t.Run("a stop before the start", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			result, err := b.Run(ctx, b.command("sh", "-c", "sleep 60"))
			if err == nil && !result.Stopped || err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("got %+v, %v", result, err)
			}
		})
	})
}

// TestPoliteEnd gives a command the time to clean up.
func TestPoliteEnd(t *testing.T) {
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		c := b.command("bash", "-c", "trap 'echo cleaned; exit 0' TERM; echo begun; while :; do sleep 0.05; done")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		out := NewExcerpt(16 << 10)
		c.Output = func(p []byte) {
			_, _ = out.Write(p)
			cancel() // it has begun, with its trap set
		}
		result, err := b.Run(ctx, c)
		if r := (&ran{result, out, err}); err != nil || !r.Stopped || r.Signal != "" || !strings.HasSuffix(r.text(), "cleaned\n") {
			t.Errorf("got %+v, %v, %q", r.Result, err, r.text())
		}
	})
}

// temp is a directory for temporary ones, in which there is nothing.
func (b *box) temp() string {
	b.t.Helper()
	dir := filepath.Join(filepath.Dir(b.root), "temp-"+string(b.tier))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	return dir
}

// cleared waits until nothing is left there.
func (b *box) cleared() {
	b.t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; runtime.Gosched() {
		left, err := os.ReadDir(b.temp())
		if err == nil && len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.t.Errorf("left behind: %v, %v", left, err)
			return
		}
	}
}

// TestKilledStarter kills the program that runs the command, as a crash does: the command dies with
// it.
func TestKilledStarter(t *testing.T) {
	if root := os.Getenv("SANDBOX_TEST_ROOT"); root != "" {
		b := &box{New(Config{Environ: os.Environ(), Home: os.Getenv("HOME")}), t, Tier(os.Getenv("SANDBOX_TEST_TIER")), root}
		c := b.command("sh", "-c", leavesBehind+"while :; do sleep 1; done", "sh", os.Getenv("SANDBOX_TEST_MARK"))
		c.Output = func(p []byte) { _, _ = os.Stdout.Write(p) }
		_, _ = b.Run(t.Context(), c)
		return
	}
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		mark := filepath.Base(b.root) + "-killed-" + string(b.tier)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=TestKilledStarter")
		cmd.Env = append(os.Environ(), "SANDBOX_TEST_ROOT="+b.root, "SANDBOX_TEST_TIER="+string(b.tier), "SANDBOX_TEST_MARK="+mark, "TMPDIR="+b.temp())
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
			continue
		}
		if marked(t, mark) == 0 {
			t.Error("the command had left nothing to be killed")
		}
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		gone(t, mark)
		b.cleared()
	})
}

// TestEndless bounds what an endless output costs.
func TestEndless(t *testing.T) {
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		size := 20_000_000
		if b.tier == Bubblewrap && os.Getenv("REGIE_CI") != "" {
			size = 1_000_000_000
		}
		r := b.run(b.command("sh", "-c", "yes 'a line of some letters' | head -c "+strconv.Itoa(size)+"; echo; echo the end"))
		runtime.GC()
		runtime.ReadMemStats(&after)
		if r.err != nil || r.out.Total() != int64(size)+9 || !strings.HasSuffix(r.text(), "the end\n") || r.out.Omitted() != r.out.Total()-32<<10 {
			t.Errorf("got %d bytes, %d left out, %+v, %v", r.out.Total(), r.out.Omitted(), r.Result, r.err)
		}
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
			t.Errorf("%d bytes are held", grown)
		}
		t.Logf("%d bytes in %s", size, r.Duration)
	})
}

func TestEnvironment(t *testing.T) {
	environ := []string{
		"PATH=/usr/bin:.:bin:/tmp/ws/node_modules/.bin:/bin", "HOME=/home/ann", "LANG=fr_FR.UTF-8", "ANTHROPIC_API_KEY=sk-ant-1", "REGIE_API_KEY=x", "AWS_SECRET_ACCESS_KEY=x",
		"GITHUB_TOKEN=ghp_x", "DATABASE_URL=postgres://u:p@h/d", "SSH_AUTH_SOCK=/run/x", "LD_PRELOAD=./x.so", "BASH_ENV=./x", "BASH_FUNC_ls%%=() { id; }", "GOFLAGS=-toolexec=id",
		"TZ=sk-live-canary_", "LC_ALL=postgres://u:secret@h", "MY_VAR=1", "OTHER=2", "PYTHONPATH=.", "PERL5OPT=-Mx", "GIT_SSH_COMMAND=id", "no pair", "=x", "TERM=() { id; }", "LANG=twice",
	}
	got := strings.Join(Environment(environ, []string{"MY_VAR"}, "/tmp/ws"), " ")
	if want := "PATH=/usr/bin:/bin LANG=fr_FR.UTF-8 TZ=sk-live-canary_ MY_VAR=1"; got != strings.Replace(want, " TZ=sk-live-canary_", "", 1) {
		t.Errorf("got %q", got)
	}
	if got := Environment(nil, nil, "/x"); len(got) != 1 || !strings.HasPrefix(got[0], "PATH=/") {
		t.Errorf("of nothing: %q", got)
	}
}

// FuzzExcerpt compares the excerpt of an output with the whole.
func FuzzExcerpt(f *testing.F) {
	f.Add([]byte("a longer text than fits"), uint8(3), uint8(5))
	f.Fuzz(func(t *testing.T, data []byte, limit, step uint8) {
		if limit == 0 || step == 0 {
			return
		}
		e := NewExcerpt(int(limit))
		for rest := data; len(rest) > 0; rest = rest[min(int(step), len(rest)):] {
			_, _ = e.Write(rest[:min(int(step), len(rest))])
		}
		head := data[:min(len(data), int(limit))]
		tail := data[len(head):]
		tail = tail[max(0, len(tail)-int(limit)):]
		if !bytes.Equal(e.Head(), head) || !bytes.Equal(e.Tail(), tail) || e.Total() != int64(len(data)) || e.Omitted() != int64(len(data)-len(head)-len(tail)) {
			t.Errorf("of %q: %q and %q, %d, %d", data, e.Head(), e.Tail(), e.Total(), e.Omitted())
		}
	})
}
