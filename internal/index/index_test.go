package index

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/regie-run/regie/internal/workspace"
)

// place is a workspace with some files, and where its index lies.
func place(tb testing.TB, files map[string]string) (root *workspace.Root, dir, file string) {
	tb.Helper()
	dir = tb.TempDir()
	for name, text := range files {
		put(tb, dir, name, text)
	}
	root, err := workspace.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = root.Close() })
	return root, dir, filepath.Join(tb.TempDir(), "index", "index.db")
}

func put(tb testing.TB, dir, name, text string) {
	tb.Helper()
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
}

func open(tb testing.TB, root *workspace.Root, file string) *Index {
	tb.Helper()
	x, err := Open(context.Background(), root, Config{Path: file})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = x.Close() })
	return x
}

func refresh(tb testing.TB, x *Index) Summary {
	tb.Helper()
	s, err := x.Update(context.Background(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// paths are the files that a search finds, the best first.
func paths(tb testing.TB, x *Index, text string) []string {
	tb.Helper()
	a, err := x.Search(context.Background(), Query{Text: text})
	if err != nil {
		tb.Fatalf("%q: %v", text, err)
	}
	var out []string
	for _, h := range a.Hits {
		out = append(out, h.Path)
	}
	return out
}

// TestUpdate follows files through their life: new, changed, renamed, deleted.
func TestUpdate(t *testing.T) {
	root, dir, file := place(t, map[string]string{
		"cache.go":       "package a\n\n// ClearCache forgets answers.\nfunc ClearCache() {}\n",
		"docs/guide.md":  "# Guide\n\n## Undo\n\nHow to take back a change.\n",
		".env":           "CACHE_TOKEN=hunter2\n",
		".gitignore":     "build/\n",
		"build/cache.go": "package b\n\nfunc ClearCacheOfBuild() {}\n",
		"logo.png":       "\x89PNG\x00\x00cache",
	})
	x := open(t, root, file)
	s := refresh(t, x)
	if s.Files != 3 || s.Changed != 4 || s.Skipped[SkipBinary] != 1 || s.Skipped[SkipSecret] != 1 || s.Skipped[SkipIgnored] != 1 {
		t.Errorf("summary %+v", s)
	}
	for text, want := range map[string]string{"clear the cache": "cache.go", "ClearCache": "cache.go", "clearing caches": "cache.go", "taking back changes": "docs/guide.md"} {
		if found := paths(t, x, text); len(found) == 0 || found[0] != want {
			t.Errorf("%q finds %q, want %s first", text, found, want)
		}
	}
	for _, found := range paths(t, x, "hunter2 token ClearCacheOfBuild") {
		if found != "cache.go" && found != ".gitignore" {
			t.Errorf("what is secret or ignored is found: %s", found)
		}
	}

	put(t, dir, "cache.go", "package a\n\n// Forget is another one.\nfunc Forget() {}\n")
	if err := os.Rename(filepath.Join(dir, "docs", "guide.md"), filepath.Join(dir, "manual.md")); err != nil {
		t.Fatal(err)
	}
	if s = refresh(t, x); s.Changed != 2 || s.Removed != 1 || s.Files != 3 {
		t.Errorf("summary %+v", s)
	}
	if found := paths(t, x, "ClearCache"); len(found) != 1 || found[0] != "cache.go" { // by its path
		t.Errorf("what was replaced is found: %q", found)
	}
	if found := paths(t, x, "taking back changes"); len(found) != 1 || found[0] != "manual.md" {
		t.Errorf("found %q after a file was renamed", found)
	}
	if err := os.Remove(filepath.Join(dir, "manual.md")); err != nil {
		t.Fatal(err)
	}
	refresh(t, x)
	if found := paths(t, x, "taking back changes"); len(found) != 0 {
		t.Errorf("found %q after a file was deleted", found)
	}
}
