//go:build unix

package workspace_test

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

func TestTree(t *testing.T) {
	p := newPlace(t)
	p.file("../outside/SKILL.md", "outside")
	p.file("t/b/x.md", "xx")
	p.file("t/a.md", "a")
	p.file("t/b/.env", "KEY=1")
	p.file("t/.ssh/id", "key")
	p.link("../../outside", "t/out")
	p.link("b", "t/inside")
	p.link(".", "t/b/loop")
	p.fifo("t/fifo")
	p.link("t", "tlink")
	p.file("file", "no directory")
	got, err := p.root.Tree("t", workspace.TreeBounds{Entries: 100, Depth: 5})
	p.must(err)
	var lines []string
	for _, e := range got {
		lines = append(lines, fmt.Sprintf("%s %d %s", e.Path, e.Size, e.Why))
	}
	want := []string{
		"t/.ssh 0 PATH_PROTECTED", "t/a.md 1 ", "t/b/.env 0 PATH_PROTECTED", "t/b/loop 0 PATH_OUTSIDE", "t/b/x.md 2 ", "t/fifo 0 SPECIAL_FILE", "t/inside 0 PATH_OUTSIDE", "t/out 0 PATH_OUTSIDE",
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", lines)
	}
	if none, err := p.root.Tree("gone/deep", workspace.TreeBounds{}); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
	for name, code := range map[string]regie.Code{
		"tlink": regie.CodePathOutside, "tlink/b": regie.CodePathOutside, "t/inside": regie.CodePathOutside, "file": regie.CodeNotADirectory, "../outside": regie.CodePathOutside, "t/fifo": regie.CodeNotADirectory,
	} {
		if _, err := p.root.Tree(name, workspace.TreeBounds{}); regie.CodeOf(err) != code {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bounds := range []workspace.TreeBounds{{Entries: 5}, {Depth: 1}} {
		if _, err := p.root.Tree("t", bounds); regie.CodeOf(err) != regie.CodeFileTooLarge {
			t.Errorf("%+v: %v", bounds, err)
		}
	}
}

func TestReadPlain(t *testing.T) {
	p := newPlace(t)
	p.file("../outside/x", "outside")
	p.file("d/x", "inside")
	p.file("d/.env", "KEY=1")
	p.link("x", "d/link")
	p.link("d", "dlink")
	p.link("../../outside/x", "d/out")
	p.fifo("d/fifo")
	if data, err := p.root.ReadPlain("d/x", 6); err != nil || string(data) != "inside" {
		t.Errorf("%q, %v", data, err)
	}
	for name, code := range map[string]regie.Code{
		"d/link": regie.CodePathOutside, "dlink/x": regie.CodePathOutside, "d/out": regie.CodePathOutside, "d/fifo": regie.CodeSpecialFile, "d/.env": regie.CodePathProtected,
		"d": regie.CodeNotAFile, "d/gone": regie.CodeFileNotFound, "gone/x": regie.CodeFileNotFound, "../outside/x": regie.CodePathOutside, "d/x/y": regie.CodeNotADirectory,
	} {
		if data, err := p.root.ReadPlain(name, 6); regie.CodeOf(err) != code {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if _, err := p.root.ReadPlain("d/x", 5); regie.CodeOf(err) != regie.CodeFileTooLarge {
		t.Errorf("%v", err)
	}
}

func TestIdentity(t *testing.T) {
	p := newPlace(t)
	first, made, err := p.root.Identity()
	p.must(err)
	again, remade, err := p.root.Identity()
	if err != nil || first == 0 || again != first || made != remade {
		t.Errorf("%d %d, then %d %d, %v", first, made, again, remade, err)
	}
	p.must(os.Mkdir(p.abs("other"), 0o755))
	other, err := workspace.Open(p.abs("other"))
	p.must(err)
	defer other.Close()
	if number, _, err := other.Identity(); err != nil || number == first {
		t.Errorf("%d, %v", number, err)
	}
}

// TestDetectMarks is about what makes a workspace, and what only looks like it.
func TestDetectMarks(t *testing.T) {
	p := newPlace(t)
	for _, dir := range []string{
		"outer/.regie", "outer/repo/.git", "outer/repo/a", "outer/nested/.regie", "outer/nested/a", "linked/a", "elsewhere/.regie", "repo/.git", "repo/fifo/a", "repo/text/a", "repo/sub/a", "gone",
	} {
		p.must(os.MkdirAll(p.abs(dir), 0o755))
	}
	p.link("../elsewhere/.regie", "linked/.regie")
	p.fifo("repo/fifo/.git")
	p.file("repo/text/.git", "see https://example.com")
	p.file("repo/sub/.git", "gitdir: ../.git/modules/sub\n")
	for _, row := range []struct{ dir, root, foundBy string }{
		{"outer/repo/a", "outer", "regie"},                  // a .regie directory goes before a repository below it
		{"outer/nested/a", "outer/nested", "regie"},         // the nearest
		{"linked/a", "linked/a", "directory"},               // a link is no mark: nothing behind it would be read
		{"repo/fifo/a", "repo", "git"},                      // and nobody waits for a FIFO
		{"repo/text/a", "repo", "git"},                      // nor takes any file for a work tree's
		{"repo/sub/a", "repo/sub", "git"},                   // a submodule is a repository of its own
		{"outer/repo/../nested/a", "outer/nested", "regie"}, // one place has one name
	} {
		root, foundBy, err := workspace.Detect(p.abs(row.dir), "", false)
		if err != nil || root != p.abs(row.root) || foundBy != row.foundBy {
			t.Errorf("%s: %s %s %v", row.dir, root, foundBy, err)
		}
	}
	t.Chdir(p.abs("gone"))
	p.must(os.Remove(p.abs("gone")))
	if root, _, err := workspace.Detect(".", "", false); regie.CodeOf(err) == "" {
		t.Errorf("a directory that is gone is the workspace %s", root)
	}
}

// TestDetectHome refuses a person's home by whatever name it has: another spelling, or none in the
// environment.
func TestDetectHome(t *testing.T) {
	p := newPlace(t)
	p.must(os.MkdirAll(p.abs("home/me/work"), 0o755))
	p.link("home/me", "alias")
	for _, home := range []string{"alias", "home/me", "home/../home/me"} {
		if root, _, err := workspace.Detect(p.abs("home/me"), p.abs(home), false); regie.CodeOf(err) != regie.CodePathProtected {
			t.Errorf("home is %s: %s, %v", home, root, err)
		}
		if root, _, err := workspace.Detect(p.abs("alias/work"), p.abs(home), false); err != nil || root != p.abs("home/me/work") {
			t.Errorf("home is %s: %s, %v", home, root, err)
		}
	}
	me, err := user.Current()
	p.must(err)
	if root, _, err := workspace.Detect(me.HomeDir, "", false); regie.CodeOf(err) != regie.CodePathProtected {
		t.Errorf("without HOME: %s, %v", root, err)
	}
}

// TestDetectStrangers does not let somebody else's mark in a shared directory take in what lies
// below it.
func TestDetectStrangers(t *testing.T) {
	p := newPlace(t)
	for _, mark := range []string{".regie", ".git"} {
		shared := p.abs("shared" + mark)
		p.must(os.MkdirAll(filepath.Join(shared, "mine"), 0o755))
		p.must(os.Mkdir(filepath.Join(shared, mark), 0o755))
		want := shared
		if os.Chown(filepath.Join(shared, mark), 4242, -1) == nil { // only root can make another's
			want = filepath.Join(shared, "mine")
		}
		if root, _, err := workspace.Detect(filepath.Join(shared, "mine"), "", false); err != nil || root != want {
			t.Errorf("%s: %s, want %s, %v", mark, root, want, err)
		}
		// In a tree of that person's it is theirs to say.
		if os.Chown(filepath.Join(shared, "mine"), 4242, -1) == nil {
			want = shared
		}
		if root, _, err := workspace.Detect(filepath.Join(shared, "mine"), "", false); err != nil || root != want {
			t.Errorf("%s: %s, want %s, %v", mark, root, want, err)
		}
	}
}

// TestTreeReads: what a walk reads is what is there, and it ends before it holds more than it may.
func TestTreeReads(t *testing.T) {
	p := newPlace(t)
	p.file("t/a", "12345")
	p.file("t/b/c", "123")
	p.file("t/.env", "KEY=1")
	p.link("../t/a", "t/link")
	p.fifo("t/fifo")
	got, err := p.root.Tree("t", workspace.TreeBounds{File: 5, Files: 8})
	p.must(err)
	held := map[string]string{}
	for _, e := range got {
		held[e.Path] = string(e.Data)
	}
	if len(held) != 5 || held["t/a"] != "12345" || held["t/b/c"] != "123" || held["t/.env"]+held["t/link"]+held["t/fifo"] != "" {
		t.Errorf("%q", held)
	}
	for _, bounds := range []workspace.TreeBounds{{File: 4, Files: 100}, {File: 5, Files: 7}} {
		if _, err := p.root.Tree("t", bounds); regie.CodeOf(err) != regie.CodeFileTooLarge {
			t.Errorf("%+v: %v", bounds, err)
		}
	}
}
