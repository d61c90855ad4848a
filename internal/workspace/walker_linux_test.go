package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/workspace"
)

// TestWalksAvoidTheSystem is about a workspace that holds file systems which the kernel makes up,
// as --here at / has.
func TestWalksAvoidTheSystem(t *testing.T) {
	root, err := workspace.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	below := func(name string) bool {
		return name == "proc" || strings.HasPrefix(name, "proc/") || name == "sys" || strings.HasPrefix(name, "sys/")
	}
	seen, err := root.Search(t.Context(), workspace.Query{Text: "e", Path: ".", Wanted: below, Holds: below, Most: 10}, func(m workspace.Match) bool {
		t.Errorf("a line of %s", m.Path)
		return false
	})
	if err != nil || seen.Unreadable < 2 || seen.Files != 0 {
		t.Errorf("a search: %+v, %v", seen, err)
	}
	rules := workspace.Rules{2: []byte("/*\n!/proc\n!/sys\n")}
	found, err := root.Survey(t.Context(), workspace.Surveying{Rules: func(dir string) (workspace.Rules, bool) { return rules, dir == "." }})
	var entries []string
	for _, e := range found.Entries {
		entries = append(entries, e.Path)
	}
	if err != nil || !slices.Equal(entries, []string{"proc", "sys"}) || !slices.Equal(found.Left.OtherNames, []string{"proc", "sys"}) {
		t.Errorf("a survey: %.200q, %+v, %v", entries, found.Left, err)
	}
}

// TestWalksAreOne has each kind of walk go through one tree, in which there is something of each
// kind.
func TestWalksAreOne(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"b/two.txt", "a/one.txt", "a/deep/three.txt", "top.txt", "a/.env", ".git/config", "a/gone/x", "zz"} {
		p.file(name, "needle")
	}
	p.file(".gitignore", "gone\n")
	p.file("../outside/secret", "needle")
	p.link("../outside", "out")
	p.link("../../outside/secret", "a/out")
	p.fifo("a/fifo")
	var searched, walked, surveyed, listed []string
	_, err := p.root.Search(t.Context(), workspace.Query{Text: "needle", Path: ".", Most: 100}, func(m workspace.Match) bool {
		searched = append(searched, m.Path)
		return true
	})
	p.must(err)
	_, err = p.root.Walk(t.Context(), ".", func(e *workspace.WalkEntry) bool {
		if !e.Dir && e.Path != ".gitignore" {
			walked = append(walked, e.Path)
		}
		return true
	})
	p.must(err)
	found, err := p.root.Survey(t.Context(), workspace.Surveying{})
	p.must(err)
	for _, e := range found.Entries {
		surveyed = append(surveyed, e.Path)
	}
	tree, err := p.root.Tree(".", workspace.TreeBounds{})
	p.must(err)
	for _, e := range tree {
		listed = append(listed, fmt.Sprint(e.Path, " ", e.Why))
	}
	for what, pair := range map[string][2]string{
		"search": {strings.Join(searched, " "), "top.txt zz a/one.txt a/deep/three.txt b/two.txt"},
		"walk":   {strings.Join(walked, " "), "top.txt zz a/one.txt a/deep/three.txt b/two.txt"},
		"survey": {strings.Join(surveyed, " "), ".gitignore out top.txt zz a a/.env a/one.txt a/out a/deep a/deep/three.txt b b/two.txt"},
		"tree": {
			strings.Join(listed, ", "),
			".git/config , .gitignore , a/.env PATH_PROTECTED, a/deep/three.txt , a/fifo SPECIAL_FILE, a/gone/x , a/one.txt , a/out PATH_OUTSIDE, b/two.txt , out PATH_OUTSIDE, top.txt , zz ",
		},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %s, not %s", what, pair[0], pair[1])
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough of it")
	cancel(why)
	if _, err := p.root.Walk(ctx, ".", func(*workspace.WalkEntry) bool { return true }); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}
