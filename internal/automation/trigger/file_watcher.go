package trigger

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/automation"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/workspace"
)

const (
	// debounce is the quiet after which changed files are looked at.
	debounce = 2 * time.Second
	// longestWait is how long after its first event a workspace is looked at, quiet or not.
	longestWait = 30 * time.Second
	// lookEvery is how often all watched files are read without an event: a network file system
	// reports none.
	lookEvery = 5 * time.Minute
)

// FileRunner says which files fire automations, and fires them.
type FileRunner interface {
	FileWatches(ctx context.Context) ([]dispatch.FileWatch, error)
	FilesChanged(ctx context.Context, in dispatch.FileChanges) (busy bool, err error)
}

// FileWatcher fires automations when their files change while it runs. Its goroutine is Run.
type FileWatcher struct {
	runner  FileRunner
	log     *slog.Logger
	changed chan struct{}     // holds one token at most
	notify  *fsnotify.Watcher // nil where the system has none
	roots   map[regie.ID]*watchedRoot
}

// watchedRoot is a workspace with its files as they were at the last look.
type watchedRoot struct {
	dispatch.FileWatch
	files map[string]workspace.Stamp // that a pattern matches
	at    time.Time                  // of the look
	first time.Time                  // of the events since; zero for none
	last  time.Time
}

// nextLook is when a workspace with events is looked at.
func (r *watchedRoot) nextLook() time.Time {
	return automation.Earlier(r.first.Add(longestWait), r.last.Add(debounce))
}

func (r *watchedRoot) noteEvent() {
	if r.last = time.Now(); r.first.IsZero() {
		r.first = r.last
	}
}

func (r *watchedRoot) matches(path string) bool {
	for _, patterns := range r.Automations {
		if automation.Matches(patterns, path) {
			return true
		}
	}
	return false
}

// NewFileWatcher returns a watcher.
func NewFileWatcher(runner FileRunner, log *slog.Logger) *FileWatcher {
	return &FileWatcher{runner: runner, log: log, changed: make(chan struct{}, 1), roots: map[regie.ID]*watchedRoot{}}
}

// Changed says that an automation has changed. It never blocks.
func (w *FileWatcher) Changed() { put(w.changed) }

// Run watches until ctx ends.
func (w *FileWatcher) Run(ctx context.Context) {
	var events chan fsnotify.Event // nil ones never deliver
	var lost chan error
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		w.log.Warn("files cannot be watched: they are looked at every 5 minutes", "error", err)
	} else {
		w.notify, events, lost = notify, notify.Events, notify.Errors
		defer func() { _ = notify.Close() }()
	}
	w.readWatches(ctx)
	sweep := time.NewTicker(lookEvery)
	defer sweep.Stop()
	for {
		timer := time.NewTimer(w.untilQuiet())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case event := <-events:
			w.markDirty(event.Name, event.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename))
		case <-lost: //nolint:errcheck // it says that events were lost, whatever the reason
			w.markDirty("", true)
		case <-w.changed:
			w.readWatches(ctx)
		case <-sweep.C:
			w.readWatches(ctx) // another process may have changed an automation
			w.markDirty("", true)
		case <-timer.C:
			w.lookAtDirty(ctx)
		}
		timer.Stop()
	}
}

// markDirty notes an event in the workspace of a path, or in all for "". A path that comes or goes
// counts always, because it may be a directory; others count where a pattern matches.
func (w *FileWatcher) markDirty(path string, comesOrGoes bool) {
	for _, root := range w.roots {
		within, inside := strings.CutPrefix(path, root.Workspace.Root+string(filepath.Separator))
		if path == "" || inside && (comesOrGoes || root.matches(filepath.ToSlash(within))) {
			root.noteEvent()
		}
	}
}

// untilQuiet is how long it takes until a workspace with events has been quiet for long enough.
func (w *FileWatcher) untilQuiet() time.Duration {
	wait := lookEvery
	for _, root := range w.roots {
		if !root.first.IsZero() {
			wait = min(wait, max(0, time.Until(root.nextLook())))
		}
	}
	return wait
}

// readWatches reads which workspaces are watched. Paths that are newly watched are looked at: what
// changed before fires nothing. Where that fails, the next call tries again.
func (w *FileWatcher) readWatches(ctx context.Context) {
	watches, err := w.runner.FileWatches(ctx)
	if err != nil {
		w.warn(ctx, err)
		return
	}
	now := map[regie.ID]*watchedRoot{}
	for _, watch := range watches {
		root := w.roots[watch.Workspace.ID]
		if root == nil || !samePatterns(root.Automations, watch.Automations) {
			fresh := &watchedRoot{FileWatch: watch, at: time.Now()}
			if fresh.files, err = w.readFiles(ctx, fresh); err != nil {
				w.warn(ctx, err)
			} else {
				fresh.keepPending(root)
				root = fresh
			}
		}
		if root != nil {
			now[watch.Workspace.ID] = root
		}
	}
	w.roots = now
}

// keepPending takes over what was watched before, so that its changes are still found.
func (r *watchedRoot) keepPending(before *watchedRoot) {
	if before == nil {
		return
	}
	r.at, r.first, r.last = before.at, before.first, before.last
	maps.DeleteFunc(r.files, func(path string, _ workspace.Stamp) bool { return before.matches(path) })
	for path, stamp := range before.files {
		if r.matches(path) {
			r.files[path] = stamp
		}
	}
}

func samePatterns(a, b map[regie.ID][]string) bool {
	for id, patterns := range a {
		if !slices.Equal(patterns, b[id]) {
			return false
		}
	}
	return len(a) == len(b)
}

// readFiles reads the stamps of the files that a pattern matches, and watches their directories.
func (w *FileWatcher) readFiles(ctx context.Context, in *watchedRoot) (map[string]workspace.Stamp, error) {
	out := map[string]workspace.Stamp{}
	root, err := workspace.Open(in.Workspace.Root)
	if err != nil {
		return out, err
	}
	defer func() { _ = root.Close() }()
	_, err = root.Walk(ctx, ".", func(e *workspace.WalkEntry) bool {
		if e.Dir && w.notify != nil { // one that cannot be watched is looked at every few minutes
			_ = w.notify.Add(filepath.Join(in.Workspace.Root, filepath.FromSlash(e.Path)))
		}
		if e.Dir {
			return true
		}
		if in.matches(e.Path) {
			out[e.Path] = e.Stamp
		}
		return true
	})
	return out, err
}

// lookAtDirty fires the automations of workspaces that have been quiet since their events.
func (w *FileWatcher) lookAtDirty(ctx context.Context) {
	for _, root := range w.roots {
		at := time.Now()
		if root.first.IsZero() || at.Before(root.nextLook()) {
			continue
		}
		root.first = time.Time{}
		files, err := w.readFiles(ctx, root)
		if err != nil {
			w.warn(ctx, err)
			continue
		}
		changed := diffStamps(root.files, files)
		busy := false
		if len(changed) > 0 {
			busy, err = w.runner.FilesChanged(ctx, dispatch.FileChanges{
				FileWatch: root.FileWatch, Since: root.at, Paths: changed,
			})
			w.warn(ctx, err)
		}
		if busy || err != nil { // they are compared again a little later
			root.noteEvent()
			continue
		}
		root.files, root.at = files, at
	}
}

// diffStamps returns the paths that are new, gone or different, with what they were and are.
func diffStamps(before, after map[string]workspace.Stamp) map[string]string {
	changed := map[string]string{}
	for _, all := range []map[string]workspace.Stamp{before, after} {
		for path := range all {
			old, was := before[path]
			stamp, is := after[path]
			if was != is || old != stamp {
				changed[path] = formatStamp(old) + ">" + formatStamp(stamp)
			}
		}
	}
	return changed
}

// formatStamp leaves out what two machines with one network file system may see differently.
func formatStamp(s workspace.Stamp) string { return fmt.Sprint(s.Size, s.Mtime, s.Ctime) }

func (w *FileWatcher) warn(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		w.log.Warn("changed files could not be looked at", "code", string(regie.CodeOf(err)), "error", err)
	}
}
