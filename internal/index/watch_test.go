package index

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"
)

// fresh refreshes and reports whether there was nothing to do.
func fresh(t *testing.T, x *Index) bool {
	t.Helper()
	_, fresh, err := x.Refresh(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

// TestWatch changes files in many ways right before a refresh, which must notice each.
func TestWatch(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	root, dir, file := place(t, map[string]string{"a.txt": "apple\n", "sub/b.txt": "banana\n", ".git/info/exclude": "# nothing\n"})
	x := open(t, root, file)
	defer x.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	x.Watch(ctx)
	if fresh(t, x) {
		t.Fatal("fresh before the first update")
	}
	if !fresh(t, x) {
		t.Error("not fresh, and nothing has happened")
	}
	rename := func(from, to string) func() {
		return func() {
			if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		what       string
		do         func()
		text, want string
	}{
		{"a new file", func() { put(t, dir, "c.txt", "cherry\n") }, "cherry", "c.txt"},
		{"a changed file", func() { put(t, dir, "sub/b.txt", "blueberry\n") }, "blueberry", "sub/b.txt"},
		{"a new directory", func() { put(t, dir, "new/deep/d.txt", "date\n") }, "date", "new/deep/d.txt"},
		{"a file in that", func() { put(t, dir, "new/deep/e.txt", "elderberry\n") }, "elderberry", "new/deep/e.txt"},
		{"a renamed directory", rename("new", "old"), "date", "old/deep/d.txt"},
		{"a file in that", func() { put(t, dir, "old/deep/f.txt", "fig\n") }, "fig", "old/deep/f.txt"},
		{"a deleted file", func() { _ = os.Remove(filepath.Join(dir, "c.txt")) }, "cherry", ""},
		{"a new rule", func() { put(t, dir, ".gitignore", "sub/\n") }, "blueberry", ""},
		{"no more rule", func() { _ = os.Remove(filepath.Join(dir, ".gitignore")) }, "blueberry", "sub/b.txt"},
		{"a rule of git's own", func() { put(t, dir, ".git/info/exclude", "sub/\n") }, "blueberry", ""},
	} {
		step.do()
		if fresh(t, x) {
			t.Errorf("%s is not noticed", step.what)
		}
		found := paths(t, x, step.text)
		if len(found) > 1 || step.want == "" && len(found) != 0 || step.want != "" && (len(found) != 1 || found[0] != step.want) {
			t.Errorf("%s: %q finds %q, want %q", step.what, step.text, found, step.want)
		}
		if !fresh(t, x) {
			t.Errorf("%s: not fresh afterwards", step.what)
		}
	}
	for range 100 { // what comes right before the question is never missed
		n := len(paths(t, x, "grape"))
		put(t, dir, fmt.Sprintf("g%d.txt", n), "grape\n")
		if fresh(t, x) {
			t.Fatal("a change right before is not noticed")
		}
		if n == 9 {
			break
		}
	}
}

// TestWatchLimits has the system lose what it has to tell.
func TestWatchLimits(t *testing.T) {
	root, _, file := place(t, map[string]string{"a.txt": "apple\n"})
	x := open(t, root, file)
	x.Watch(context.Background())
	fresh(t, x)
	if !fresh(t, x) {
		t.Fatal("not fresh")
	}
	x.watch.watcher.Errors <- fsnotify.ErrEventOverflow
	if fresh(t, x) {
		t.Error("an overflow makes no update")
	}
	if !fresh(t, x) {
		t.Error("after an overflow it is never fresh again")
	}
	x.watch.began = x.watch.began.Add(-watchTrust)
	if fresh(t, x) {
		t.Error("a watch is believed forever, which may lie on another machine's file system")
	}
}
