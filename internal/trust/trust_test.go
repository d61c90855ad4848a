//go:build unix

package trust_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/trust"
	"github.com/regie-run/regie/internal/workspace"
)

// ground is a workspace beside a data directory.
type ground struct {
	t          testing.TB
	root, data string
	store      *trust.Store
}

func newGround(tb testing.TB) *ground {
	tb.Helper()
	base, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	g := &ground{t: tb, root: filepath.Join(base, "work"), data: filepath.Join(base, "data")}
	g.must(os.MkdirAll(g.root, 0o755))
	g.store = trust.NewStore(g.data)
	return g
}

func (g *ground) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) file(name, text string) {
	g.t.Helper()
	at := filepath.Join(g.root, name)
	g.must(os.MkdirAll(filepath.Dir(at), 0o755))
	g.must(os.WriteFile(at, []byte(text), 0o644))
}

func (g *ground) at(name string) string { return filepath.Join(g.root, filepath.FromSlash(name)) }

func (g *ground) look() trust.Content {
	g.t.Helper()
	root, err := workspace.Open(g.root)
	g.must(err)
	defer root.Close()
	return trust.Look(root)
}

func (g *ground) standing() trust.Standing {
	content := g.look()
	return g.store.Standing(g.root, &content)
}

func (g *ground) trust() {
	g.t.Helper()
	content := g.look()
	g.must(g.store.Trust(g.root, &content, "me", time.Now()))
}

func changes(s trust.Standing) string {
	var out []string
	for _, c := range s.Changes {
		out = append(out, c.What.Mark()+c.Path)
	}
	return strings.Join(out, " ")
}

func TestTrustIsBoundToContent(t *testing.T) {
	base := func(g *ground) {
		g.file(".regie/regie.yaml", "limits: {chat: {max_tool_calls: 3}}\n")
		g.file(".regie/skills/a/SKILL.md", "one")
		g.file(".agents/skills/b/SKILL.md", "two")
		g.file(".agents/other.md", "nothing of ours")
		g.file("AGENTS.md", "nothing that is trusted")
	}
	for _, row := range []struct {
		name   string
		change func(g *ground)
		state  trust.State
		shows  string
	}{
		{"nothing", func(*ground) {}, trust.Trusted, ""},
		{"what is not ours", func(g *ground) { g.file(".agents/other.md", "x"); g.file("AGENTS.md", "x"); g.file("src/x", "x") }, trust.Trusted, ""},
		{"times and modes", func(g *ground) {
			g.must(os.Chtimes(g.at(".regie/regie.yaml"), time.Time{}, time.Unix(1, 0)))
			g.must(os.Chmod(g.at(".regie/regie.yaml"), 0o600))
		}, trust.Trusted, ""},
		{"the same bytes again", func(g *ground) { base(g) }, trust.Trusted, ""},
		{"one byte", func(g *ground) { g.file(".regie/skills/a/SKILL.md", "onE") }, trust.Outdated, "~.regie/skills/a/SKILL.md"},
		{"a file of a skill", func(g *ground) { g.file(".regie/skills/a/scripts/x.sh", "rm") }, trust.Outdated, "+.regie/skills/a/scripts/x.sh"},
		{"a file that is gone", func(g *ground) { g.must(os.Remove(g.at(".agents/skills/b/SKILL.md"))) }, trust.Outdated, "-.agents/skills/b/SKILL.md"},
		{"another name", func(g *ground) {
			g.must(os.Rename(g.at(".regie/skills/a"), g.at(".regie/skills/z")))
		}, trust.Outdated, "-.regie/skills/a/SKILL.md +.regie/skills/z/SKILL.md"},
		{"a link in a file's place", func(g *ground) {
			g.must(os.Remove(g.at(".regie/skills/a/SKILL.md")))
			g.must(os.Symlink("../../regie.yaml", g.at(".regie/skills/a/SKILL.md")))
		}, trust.Outdated, "-.regie/skills/a/SKILL.md"},
		{"a link in the directory's place", func(g *ground) {
			g.must(os.Rename(g.at(".regie"), filepath.Join(g.root, "other")))
			g.must(os.Symlink("other", g.at(".regie")))
		}, trust.Outdated, "-.regie/regie.yaml -.regie/skills/a/SKILL.md"},
		{"more than anybody reads", func(g *ground) {
			for i := range 2100 {
				g.file(fmt.Sprintf(".regie/skills/s%d", i), "")
			}
		}, trust.Outdated, ""},
		{"another directory of the same content", func(g *ground) {
			g.must(os.Rename(g.root, g.root+"-moved"))
			g.must(os.Mkdir(g.root, 0o755))
			base(g)
		}, trust.Elsewhere, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := newGround(t)
			base(g)
			if s := g.standing(); s.State != trust.Untrusted || s.Err != nil {
				t.Fatalf("before: %+v", s)
			}
			g.trust()
			row.change(g)
			s := g.standing()
			if s.State != row.state || row.shows != "" && changes(s) != row.shows {
				t.Errorf("%s: %s", s.State, changes(s))
			}
		})
	}
}

func TestTrustOfAMovedWorkspace(t *testing.T) {
	g := newGround(t)
	g.file(".regie/skills/a/SKILL.md", "one")
	g.trust()
	g.must(os.Rename(g.root, g.root+"2"))
	moved := *g
	moved.root += "2"
	if s := moved.standing(); s.State != trust.Untrusted {
		t.Errorf("%s", s.State)
	}
	g.must(os.Rename(moved.root, g.root)) // the very directory is back
	if s := g.standing(); s.State != trust.Trusted {
		t.Errorf("%s", s.State)
	}
}

func TestLookIsNotLedAstray(t *testing.T) {
	g := newGround(t)
	outside := filepath.Join(filepath.Dir(g.root), "secret")
	g.must(os.WriteFile(outside, []byte("secret"), 0o600))
	g.file(".regie/skills/a/SKILL.md", "one")
	for name, aim := range map[string]string{"out": outside, "dir": filepath.Dir(g.root), "loop": ".", "up": "../../..", "gone": "nowhere"} {
		g.must(os.Symlink(aim, g.at(".regie/skills/a/"+name)))
	}
	g.must(syscall.Mkfifo(g.at(".regie/skills/a/fifo"), 0o600))
	g.must(syscall.Mkfifo(g.at(".regie/regie.yaml"), 0o600))
	g.file(".regie/skills/a/.env", "KEY=1")
	c := g.look()
	if len(c.Files) != 1 || c.Err != nil {
		t.Errorf("%+v", c)
	}
	want := map[string]regie.Code{
		".regie/regie.yaml": regie.CodeSpecialFile, ".regie/skills/a/fifo": regie.CodeSpecialFile, ".regie/skills/a/.env": regie.CodePathProtected,
		".regie/skills/a/out": regie.CodePathOutside, ".regie/skills/a/dir": regie.CodePathOutside, ".regie/skills/a/loop": regie.CodePathOutside,
		".regie/skills/a/up": regie.CodePathOutside, ".regie/skills/a/gone": regie.CodePathOutside,
	}
	if fmt.Sprint(c.Odd) != fmt.Sprint(want) {
		t.Errorf("%v", c.Odd)
	}
	if _, ok := c.Data(".regie/skills/a/out"); ok {
		t.Error("a link was read")
	}
	g.file(".regie/big", strings.Repeat("x", 5<<20))
	if c := g.look(); regie.CodeOf(c.Err) != regie.CodeFileTooLarge || len(c.Files) != 0 {
		t.Errorf("%v", c.Err)
	}
	if c := g.look(); regie.CodeOf(g.store.Trust(g.root, &c, "me", time.Now())) != regie.CodeFileTooLarge {
		t.Error("what nobody reads is trusted")
	}
	g.must(os.Remove(g.at(".regie/big")))
	g.file(".regie/"+strings.Repeat("d/", 20)+"x", "deep")
	if c := g.look(); regie.CodeOf(c.Err) != regie.CodeFileTooLarge {
		t.Errorf("%v", c.Err)
	}
}

func TestRecord(t *testing.T) {
	g := newGround(t)
	g.file(".regie/skills/a/SKILL.md", "one")
	if err := g.store.Revoke(g.root); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("%v", err)
	}
	g.trust()
	files, err := os.ReadDir(filepath.Join(g.data, "trust"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	name := filepath.Join(g.data, "trust", files[0].Name())
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if dir, err := os.Stat(filepath.Dir(name)); err != nil || dir.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", dir.Mode(), err)
	}
	whole, err := os.ReadFile(name)
	g.must(err)
	for what, data := range map[string]string{
		"empty": "", "half": string(whole[:len(whole)/2]), "other": "{}", "text": "yes", "another file added by hand": strings.Replace(string(whole), "SKILL.md", "OTHER.md", 1),
		"unknown": strings.Replace(string(whole), `"root"`, `"all": true, "root"`, 1), "twice": strings.Replace(string(whole), `"root"`, `"root": "/", "root"`, 1),
	} {
		g.must(os.WriteFile(name, []byte(data), 0o600))
		if s := g.standing(); s.State != trust.Untrusted || regie.CodeOf(s.Err) != regie.CodeCorrupt {
			t.Errorf("%s: %+v", what, s)
		}
		if records, damaged, err := g.store.List(); err != nil || len(records) != 0 || damaged != 1 {
			t.Errorf("%s: %v %d %v", what, records, damaged, err)
		}
	}
	g.must(os.WriteFile(name, []byte(strings.Replace(string(whole), g.root, "/elsewhere", 1)), 0o600))
	if s := g.standing(); s.State != trust.Untrusted {
		t.Errorf("another workspace's record: %+v", s)
	}
	g.trust()
	if records, damaged, err := g.store.List(); err != nil || len(records) != 1 || damaged != 0 || records[0].Root != g.root || records[0].By != "me" {
		t.Errorf("%v %d %v", records, damaged, err)
	}
	g.must(g.store.Revoke(g.root))
	if s := g.standing(); s.State != trust.Untrusted {
		t.Errorf("%+v", s)
	}
}

func TestDataInTheWorkspace(t *testing.T) {
	g := newGround(t)
	g.file(".regie/skills/a/SKILL.md", "one")
	for _, data := range []string{g.root, filepath.Join(g.root, "data")} {
		g.must(os.MkdirAll(data, 0o700))
		store, content := trust.NewStore(data), g.look()
		if err := store.Trust(g.root, &content, "me", time.Now()); regie.CodeOf(err) != regie.CodeConflict {
			t.Errorf("%v", err)
		}
	}
	g.trust() // a record from when the data lay elsewhere
	g.must(os.Rename(filepath.Join(g.data, "trust"), filepath.Join(g.root, "data", "trust")))
	content := g.look()
	if s := trust.NewStore(filepath.Join(g.root, "data")).Standing(g.root, &content); s.State != trust.Untrusted {
		t.Errorf("a record that the workspace's files hold counts: %s", s.State)
	}
}

// TestTogether has many decide at once: each look finds a whole record or none.
func TestTogether(t *testing.T) {
	g := newGround(t)
	g.file(".regie/skills/a/SKILL.md", "one")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 20 {
				content := g.look()
				if err := g.store.Trust(g.root, &content, "me", time.Now()); err != nil {
					t.Error(err)
				}
				if s := g.standing(); s.Err != nil {
					t.Error(s.Err)
				}
				if err := g.store.Revoke(g.root); i%2 == 0 && err != nil && regie.CodeOf(err) != regie.CodeNotFound {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	g.trust()
	if files, err := os.ReadDir(filepath.Join(g.data, "trust")); err != nil || len(files) != 1 {
		t.Errorf("something is left: %v, %v", files, err)
	}
}

// TestKilled kills a process that decides again and again: what is there afterwards is whole.
func TestKilled(t *testing.T) {
	if root := os.Getenv("TRUST_TEST_ROOT"); root != "" {
		g := &ground{t: t, root: root, store: trust.NewStore(os.Getenv("TRUST_TEST_DATA"))}
		fmt.Println("ready")
		for {
			g.trust()
		}
	}
	g := newGround(t)
	g.file(".regie/skills/a/SKILL.md", strings.Repeat("one", 1000))
	g.trust()
	for range 5 {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
		child.Env = append(os.Environ(), "TRUST_TEST_ROOT="+g.root, "TRUST_TEST_DATA="+g.data)
		out, err := child.StdoutPipe()
		g.must(err)
		g.must(child.Start())
		if _, err := out.Read(make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		g.must(child.Process.Kill())
		_ = child.Wait() // it was killed
		if s := g.standing(); s.State != trust.Trusted || s.Err != nil {
			t.Errorf("%+v", s)
		}
	}
}
