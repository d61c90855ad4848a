package index

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/regie-run/regie"
)

// settleTime is how long Refresh waits for the watch to report all earlier events; that takes a
// fraction of a millisecond. A variable for the tests.
var settleTime = 10 * time.Millisecond

// watchTrust is for how long Refresh believes a watch: what another machine changes on a network
// file system is not reported to this one.
const watchTrust = time.Minute

// watch watches the directories that one update has walked, and remembers whether anything has
// happened in them since. It does not look at the events: an update that finds nothing new takes
// some microseconds a file. Its goroutine ends with close.
type watch struct {
	root    string // absolute
	began   time.Time
	watcher *fsnotify.Watcher // nil where the system cannot watch
	ended   chan struct{}

	mu      sync.Mutex
	failed  regie.Sentence // why not all is watched
	changed bool
}

// Watch has each update watch the workspace's directories from now on, until Close or until ctx
// ends: Refresh then knows, without looking, whether anything has changed.
func (x *Index) Watch(ctx context.Context) {
	x.mu.Lock()
	x.watches = true
	x.mu.Unlock()
	context.AfterFunc(ctx, x.stopWatching)
}

// Unwatched returns why not all changes are noticed, where the system cannot watch because it
// lacks a means or a limit is reached: then each Refresh looks through the workspace.
func (x *Index) Unwatched() regie.Sentence {
	x.mu.Lock()
	w := x.watch
	x.mu.Unlock()
	if w == nil {
		return regie.Sentence{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

func (x *Index) stopWatching() {
	x.mu.Lock()
	w := x.watch
	x.watch, x.watches = nil, false
	x.mu.Unlock()
	w.close()
}

// setWatch puts the watch of an update that worked in the place of the one before.
func (x *Index) setWatch(w *watch, worked bool) {
	if w == nil {
		return
	}
	old := w
	x.mu.Lock()
	if worked && x.watches {
		old, x.watch = x.watch, w
	}
	x.mu.Unlock()
	old.close()
	w.mu.Lock()
	failed := !w.failed.IsZero()
	w.mu.Unlock()
	if failed { // it is no use, and others may need what it holds
		w.close()
	}
}

// Refresh is Update where anything can have changed since the last one: where a watch says that
// nothing has, it does nothing, and fresh is true.
func (x *Index) Refresh(ctx context.Context, progress func(Progress)) (s Summary, fresh bool, err error) {
	x.mu.Lock()
	w := x.watch
	x.mu.Unlock()
	if w.quiet(ctx) {
		return s, true, nil
	}
	s, err = x.Update(ctx, progress)
	return s, false, err
}

// newWatch starts the watch of an update; nil where nothing is watched.
func (x *Index) newWatch() *watch {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.watches {
		return nil
	}
	w := &watch{root: x.root.Dir(), began: time.Now(), ended: make(chan struct{})}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		w.fail(err)
		close(w.ended)
		return w
	}
	w.watcher = watcher
	go w.follow()
	return w
}

// follow takes the events.
func (w *watch) follow() {
	defer close(w.ended)
	for {
		select {
		case _, ok := <-w.watcher.Events:
			if !ok {
				return
			}
			w.observe()
		case err, ok := <-w.watcher.Errors:
			if !ok {
				return
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) { // an update finds what was lost
				w.observe()
			} else {
				w.fail(err)
			}
		}
	}
}

func (w *watch) observe() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = true
}

func (w *watch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.failed.IsZero():
	case errors.Is(err, syscall.ENOSPC):
		w.failed = regie.Say("the system watches no more directories for this user: raise fs.inotify.max_user_watches")
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		w.failed = regie.Say("the system has no more watches or open files for this user: raise fs.inotify.max_user_instances or the limit of open files")
	default:
		w.failed = regie.Say("the system cannot watch the workspace's directories: %s", err.Error())
	}
}

// add watches a directory that the update comes to.
func (w *watch) add(dir string) {
	if w == nil || w.watcher == nil || !w.unchanged() {
		return
	}
	err := w.watcher.Add(filepath.Join(w.root, filepath.FromSlash(dir)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.fail(err)
	}
}

// unchanged reports whether the watch has seen nothing and can be believed.
func (w *watch) unchanged() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed.IsZero() && !w.changed && time.Since(w.began) < watchTrust
}

// quiet reports whether nothing has happened since the update began.
func (w *watch) quiet(ctx context.Context) bool {
	return w != nil && w.unchanged() && rest(ctx, settleTime) == nil && w.unchanged()
}

// close ends the watch.
func (w *watch) close() {
	if w == nil {
		return
	}
	if w.watcher != nil {
		_ = w.watcher.Close() // it holds nothing that could be lost
	}
	<-w.ended
}
