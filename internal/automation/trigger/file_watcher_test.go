package trigger_test

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/automation/trigger"
	"github.com/regie-run/regie/internal/dispatch"
)

// watched is a workspace with patterns, which notes what changes.
type watched struct {
	t       *testing.T
	watcher *trigger.FileWatcher

	mu       sync.Mutex // guards those below
	watch    dispatch.FileWatch
	changes  []string
	readings int
}

func (w *watched) FileWatches(context.Context) ([]dispatch.FileWatch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readings++
	return []dispatch.FileWatch{w.watch}, nil
}

func (w *watched) FilesChanged(_ context.Context, in dispatch.FileChanges) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = append(w.changes, slices.Sorted(maps.Keys(in.Paths))...)
	return false, nil
}

// patterns has one more automation watch files.
func (w *watched) patterns(patterns ...string) {
	w.mu.Lock()
	w.watch.Automations = maps.Clone(w.watch.Automations)
	w.watch.Automations[regie.NewID()] = patterns
	readings := w.readings
	w.mu.Unlock()
	w.watcher.Changed()
	w.until("the watches are read", func() bool { return w.readings > readings })
}

func (w *watched) until(what string, done func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		w.mu.Lock()
		is := done()
		w.mu.Unlock()
		if is {
			return
		}
	}
	w.t.Fatalf("in vain: %s; changed are %q", what, w.changes)
}

func (w *watched) write(path string) {
	path = filepath.Join(w.watch.Workspace.Root, path)
	if err := os.WriteFile(path, []byte(time.Now().String()), 0o600); err != nil {
		w.t.Error(err)
	}
}

func newWatched(t *testing.T, root string) *watched {
	t.Helper()
	w := &watched{t: t, watch: dispatch.FileWatch{
		Workspace: regie.Workspace{ID: regie.NewID(), Root: root}, Automations: map[regie.ID][]string{regie.NewID(): {"*.txt"}},
	}}
	w.watcher = trigger.NewFileWatcher(w, slog.New(slog.DiscardHandler))
	var open sync.WaitGroup
	open.Go(func() { w.watcher.Run(t.Context()) })
	t.Cleanup(open.Wait)
	w.patterns("*.md") // so that what was there has been looked at
	return w
}

// TestFileWatcher_Noise finds a change although another file is written without a pause.
func TestFileWatcher_Noise(t *testing.T) {
	t.Parallel()
	w := newWatched(t, t.TempDir())
	w.write("noise.log")
	w.write("a.txt")
	w.until("a.txt", func() bool {
		w.write("noise.log")
		return slices.Equal(w.changes, []string{"a.txt"})
	})
}

// TestFileWatcher_Edit keeps a change for which it has not looked yet when what is watched changes.
func TestFileWatcher_Edit(t *testing.T) {
	t.Parallel()
	w := newWatched(t, t.TempDir())
	w.write("a.txt")
	w.write("b.csv")
	w.patterns("*.csv")
	w.until("a.txt", func() bool { return slices.Equal(w.changes, []string{"a.txt"}) })
}

// TestFileWatcher_NoRoot takes no file for new that was there when its workspace was first read.
func TestFileWatcher_NoRoot(t *testing.T) {
	t.Parallel()
	w := newWatched(t, filepath.Join(t.TempDir(), "mounted later"))
	if err := os.Mkdir(w.watch.Workspace.Root, 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("old.txt")
	w.patterns("*.csv")
	w.patterns("*.tsv") // read behind the first one
	w.write("new.txt")
	w.until("new.txt", func() bool { return slices.Equal(w.changes, []string{"new.txt"}) })
}
