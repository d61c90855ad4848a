package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
)

// everyTier runs a test under each tier that there is. In CI all have to be there.
func everyTier(t *testing.T, run func(t *testing.T, b *box)) {
	t.Helper()
	for _, tier := range []Tier{Bubblewrap, Landlock, None} {
		t.Run(string(tier), func(t *testing.T) {
			b := newBox(t, tier)
			run(t, b)
		})
	}
}

// box is a workspace with a sandbox of one tier.
type box struct {
	*Sandbox
	t    *testing.T
	tier Tier
	root string
}

func newBox(t *testing.T, tier Tier) *box {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &box{New(Config{Tier: tier, Environ: os.Environ(), Home: os.Getenv("HOME")}), t, tier, root}
	if found := b.For(t.Context(), root); found.Err != nil || found.Tier != tier {
		if os.Getenv("REGIE_CI") != "" {
			t.Fatalf("CI runs every tier, and %s does not work: %+v", tier, found)
		}
		t.Skipf("the tier %s does not work here", tier)
	}
	for _, dir := range []string{".git/hooks", ".regie", "sub"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, ".git", "config"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// ran is a command that was run.
type ran struct {
	Result
	out *Excerpt
	err error
}

func (r *ran) text() string { return string(r.out.Head()) + string(r.out.Tail()) }

func (b *box) command(argv ...string) Command {
	return Command{Argv: argv, Root: b.root, Dir: b.root, Tier: b.tier, Timeout: 20 * time.Second}
}

func (b *box) run(c Command) *ran {
	b.t.Helper()
	out := NewExcerpt(16 << 10)
	also := c.Output
	c.Output = func(p []byte) {
		_, _ = out.Write(p)
		if also != nil {
			also(p)
		}
	}
	result, err := b.Run(b.t.Context(), c)
	return &ran{result, out, err}
}

func (b *box) sh(script string) *ran {
	b.t.Helper()
	r := b.run(b.command("sh", "-c", script))
	if r.err != nil {
		b.t.Fatal(r.err)
	}
	return r
}

func TestCommand(t *testing.T) {
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		r := b.sh(`echo out; echo err >&2; pwd; echo hello > sub/new; exit 3`)
		if r.Exit != 3 || r.Signal != "" || r.text() != "out\nerr\n"+b.root+"\n" {
			t.Errorf("got exit %d, signal %q, output %q", r.Exit, r.Signal, r.text())
		}
		data, err := os.ReadFile(filepath.Join(b.root, "sub", "new"))
		if string(data) != "hello\n" {
			t.Errorf("the file holds %q, %v", data, err)
		}
		if r := b.sh(`kill -SEGV $$`); r.Signal != "SIGSEGV" || r.Exit != 139 {
			t.Errorf("got exit %d and signal %q", r.Exit, r.Signal)
		}
		if r := b.run(b.command("no-such-program-here")); r.err == nil || !strings.Contains(r.err.Error(), "no-such-program-here") {
			t.Errorf("got %v", r.err)
		}
	})
}

// TestTooLate has commands begin after the time that their engine may act in: they are not run, and
// the error says so.
func TestTooLate(t *testing.T) {
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		for _, c := range []struct {
			left time.Duration
			ran  bool
		}{{time.Hour, true}, {time.Nanosecond, false}, {0, false}, {-time.Hour, false}} {
			// a nanosecond is over while the helper starts
			command := b.command("touch", "sub/begun")
			command.Left = func() time.Duration { return c.left }
			r := b.run(command)
			_, err := os.Stat(filepath.Join(b.root, "sub", "begun"))
			if ran := err == nil; ran != c.ran || (r.err == nil) != c.ran || r.err != nil && regie.CodeOf(r.err) != regie.CodeStale {
				t.Errorf("%s left: it ran %t, %v", c.left, ran, r.err)
			}
			_ = os.Remove(filepath.Join(b.root, "sub", "begun"))
		}
	})
}
