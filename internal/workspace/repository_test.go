package workspace_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// TestRepositories: what is a repository by what lies in it is git's, whatever it is called: no
// walk shows its parts, a survey names it, and nothing of it is written. What lies beside its
// parts, as a work tree does, and what is not quite one are files like any other.
func TestRepositories(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{
		"x.git/HEAD", "x.git/config", "x.git/objects/o", "x.git/refs/r", "x.git/hooks/update", "x.git/tree/file", "x.git/tree/config", "linked/HEAD", "linked/commondir", "linked/file",
		"lib/.git/config", "half/HEAD", "half/objects/o", "half/config", "docs/config", "docs/hooks/a",
	} {
		p.file(name, "word")
	}
	want := []string{"docs/config", "docs/hooks/a", "half/HEAD", "half/config", "half/objects/o", "linked/file", "x.git/tree/config", "x.git/tree/file"}
	var walked []string
	_, err := p.root.Walk(t.Context(), ".", func(e *workspace.WalkEntry) bool {
		if !e.Dir {
			walked = append(walked, e.Path)
		}
		return true
	})
	p.must(err)
	if slices.Sort(walked); !slices.Equal(walked, want) {
		t.Errorf("walked %q", walked)
	}
	found, err := p.root.Survey(context.Background(), workspace.Surveying{})
	p.must(err)
	var surveyed []string
	for _, e := range found.Entries {
		if e.Mode.IsRegular() {
			surveyed = append(surveyed, e.Path)
		}
	}
	if slices.Sort(surveyed); !slices.Equal(surveyed, want) || !slices.Equal(found.Repositories, []string{"lib/.git", "linked", "x.git"}) {
		t.Errorf("surveyed %q, repositories %q", surveyed, found.Repositories)
	}
	for name, refused := range map[string]bool{
		"x.git/config": true, "x.git/new": false, "x.git/rebase-merge/git-rebase-todo": true, "x.git/rebase-apply/next": true, "x.git/sequencer/todo": true,
		"x.git/tree/config": false, "half/config": false, "half/refs/r": true, "half/commondir": true, "docs/HEAD": false, "docs/objects/o": false,
	} {
		if _, err := p.root.Load(name, 100); (regie.CodeOf(err) == regie.CodePathProtected) != refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.must(os.RemoveAll(filepath.Join(p.dir, "x.git", "HEAD")))
	if _, err := p.root.Load("x.git/config", 100); err != nil {
		t.Errorf("what is no repository any more: %v", err)
	}
}

// TestNamedByGit: what git runs because its configuration names it can be read, and is not written,
// there or not.
func TestNamedByGit(t *testing.T) {
	p := newPlace(t)
	home := filepath.Join(p.outside, "home")
	t.Setenv("HOME", home)
	p.file("../outside/home/.gitconfig", "[core]\n\thooksPath = .githooks\n")
	p.file(".git/config", "[core]\n\thooksPath = .Husky/_\n\tfsmonitor = tools/watch\n[include]\n\tpath = ../.gitconfig\n")
	p.file(".husky/pre-commit", "word")
	p.file("tools/watch", "word")
	p.file("tools/other", "word")
	p.file("lib/.git/config", "[core]\n\thooksPath = h\n")
	p.file("lib/h/pre-push", "word")
	p.link("tools", "through")
	for name, refused := range map[string]bool{
		".husky/_/pre-commit": true, ".husky/pre-commit": true, ".husky/pre-push": true, ".husky": true, ".HUSKY/pre-commit": true, ".huskyrc": false, "tools/watch": true, "through/watch": true, "tools/Watch": true,
		"tools/other": false, "tools/watch2": false, ".gitconfig": true, "sub/.gitconfig": false, ".githooks/update": true, "lib/h/pre-push": true, "lib/h/new": true, "h/new": false, "lib/i": false, "lib/.githooks/a": true,
	} {
		if _, err := p.root.Load(name, 100); (regie.CodeOf(err) == regie.CodePathProtected) != refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	f, _, err := p.root.OpenFile(".husky/pre-commit")
	p.must(err)
	p.must(f.Close())
}
