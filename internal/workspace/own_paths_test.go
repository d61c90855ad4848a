package workspace_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// TestOwn: where a workspace holds Regie's own directories, no way leads to what is in them: not by
// name, not by another spelling of it or a link, not by a search, a walk, a list or a survey. A
// directory of that name elsewhere is one like any other.
func TestOwn(t *testing.T) {
	home := t.TempDir()
	put := func(name string) {
		t.Helper()
		full := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte("canary\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".config/regie/setup.yaml", ".config/regie/sub/x", ".config/other/setup.yaml", "dots/regie/regie.yaml", "named.yaml", "project/.regie/regie.yaml"} {
		put(name)
	}
	for name, aim := range map[string]string{"config": ".config/regie", "setup": ".config/regie/setup.yaml", "linked": "dots/regie"} {
		if err := os.Symlink(filepath.FromSlash(aim), filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	workspace.Keep(filepath.Join(home, ".config", "regie"), filepath.Join(home, "linked"), filepath.Join(home, "named.yaml"), filepath.Join(home, "later"), "")
	put("later/x")
	root, err := workspace.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{
		".config/regie/setup.yaml", ".Config/REGIE/setup.yaml", ".config/regie./setup.yaml", ".config/regie/none", "config/setup.yaml", "setup", ".config/other/../regie/setup.yaml",
		".config/regie/sub/x", "dots/regie/regie.yaml", "linked/regie.yaml", "named.yaml", "later/x",
	} {
		if _, _, err := root.OpenFile(name); err == nil || regie.CodeOf(err) != regie.CodePathProtected && (regie.CodeOf(err) != regie.CodeFileNotFound || name == strings.ToLower(name)) {
			t.Errorf("reading %s: %v", name, err)
		}
		if _, err := root.Load(name, 100); err == nil || regie.CodeOf(err) != regie.CodePathProtected && (regie.CodeOf(err) != regie.CodeFileNotFound || name == strings.ToLower(name)) {
			t.Errorf("writing %s with a person's word: %v", name, err)
		}
	}
	for _, name := range []string{".config/regie", "config", "linked", "later", ".config/regie/sub"} {
		if _, err := root.Walk(t.Context(), name, func(*workspace.WalkEntry) bool { return true }); regie.CodeOf(err) != regie.CodePathProtected {
			t.Errorf("listing %s: %v", name, err)
		}
	}
	want := ".config/other/setup.yaml project/.regie/regie.yaml"
	var found []string
	for _, under := range []string{".", "project/.regie"} {
		if _, err := root.Search(t.Context(), workspace.Query{Text: "canary", Path: under, Most: 100, Clip: 100}, func(m workspace.Match) bool {
			found = append(found, m.Path)
			return true
		}); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(found, " "); got != want {
		t.Errorf("a search finds %s", got)
	}
	found = nil
	if _, err := root.Walk(context.Background(), ".", func(e *workspace.WalkEntry) bool {
		if !e.Dir {
			found = append(found, e.Path)
		}
		return true
	}); err != nil || strings.Join(found, " ") != ".config/other/setup.yaml" {
		t.Errorf("a walk finds %s, %v", found, err)
	}
	entries, err := root.Tree(".", workspace.TreeBounds{File: 100, Files: 1000})
	for _, e := range entries {
		if len(e.Data) > 0 && !strings.Contains(want, e.Path) {
			t.Errorf("a tree reads %s", e.Path)
		}
	}
	if err != nil || len(entries) == 0 {
		t.Errorf("%v, %v", entries, err)
	}
	surveyed, err := root.Survey(t.Context(), workspace.Surveying{})
	if err != nil || len(surveyed.Entries) == 0 {
		t.Fatal(surveyed, err)
	}
	for i := range surveyed.Entries {
		if name := surveyed.Entries[i].Path; strings.HasPrefix(name, ".config/regie") || strings.HasPrefix(name, "dots/regie") || name == "named.yaml" || name == "later" {
			t.Errorf("a survey has %s", name)
		}
	}
	project, err := workspace.Open(filepath.Join(home, "project"))
	if err != nil {
		t.Fatal(err)
	}
	defer project.Close()
	if f, _, err := project.OpenFile(".regie/regie.yaml"); err != nil {
		t.Errorf("a project's own settings: %v", err)
	} else {
		_ = f.Close()
	}
}
