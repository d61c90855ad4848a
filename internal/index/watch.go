package index

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleTime is how long Refresh waits for the watch to report all earlier events; that takes a
// fraction of a millisecond.
const settleTime = 10 * time.Millisecond

// watchTrust is for how long Refresh believes a watch: what another machine changes on a network
// file system is not reported to this one.
const watchTrust = time.Minute

// watch watches the directories that one update has walked, and remembers whether anything has
// happened in them since, or could not be watched. It does not look at the events: an update that
// finds nothing new takes some microseconds a file. Its goroutine ends with close.
type watch struct {
	root    string // absolute
	began   time.Time
	watcher *fsnotify.Watcher
	changed atomic.Bool
	ended   chan struct{}
}

// Watch has each update watch the workspace's directories from now on, until Close or until ctx
// ends: Refresh then knows, without looking, whether anything has changed.
func (x *Index) Watch(ctx context.Context) {
	x.mu.Lock()
	x.watches = true
	x.mu.Unlock()
	context.AfterFunc(ctx, x.stopWatching)
}

func (x *Index) stopWatching() {
	x.mu.Lock()
	w := x.watch
	x.watch, x.watches = nil, false
	x.mu.Unlock()
	w.close()
}

// setWatch puts the watch of an update that worked in the place of the one before. One that has
// seen something already is no use.
func (x *Index) setWatch(w *watch, worked bool) {
	if w == nil {
		return
	}
	old := w
	x.mu.Lock()
	if worked && x.watches && !w.changed.Load() {
		old, x.watch = x.watch, w
	}
	x.mu.Unlock()
	old.close()
}

// Refresh is Update where anything can have changed since the last one: where a watch says that
// nothing has, it does nothing, and fresh is true.
func (x *Index) Refresh(ctx context.Context, progress func(Progress)) (s Summary, fresh bool, err error) {
	x.mu.Lock()
	w := x.watch
	x.mu.Unlock()
	if w.isQuiet() && waitFor(ctx, settleTime) == nil && w.isQuiet() {
		return s, true, nil
	}
	s, err = x.Update(ctx, progress)
	return s, false, err
}

// newWatch starts the watch of an update; nil where nothing is watched, or the system cannot.
func (x *Index) newWatch() *watch {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.watches {
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil
	}
	w := &watch{root: x.root.Dir(), began: time.Now(), watcher: watcher, ended: make(chan struct{})}
	go w.followEvents()
	return w
}

// followEvents takes the events, and errors, after which an update finds what was lost.
func (w *watch) followEvents() {
	defer close(w.ended)
	for {
		select {
		case _, ok := <-w.watcher.Events:
			if !ok {
				return
			}
		case _, ok := <-w.watcher.Errors:
			if !ok {
				return
			}
		}
		w.changed.Store(true)
	}
}

// addDir watches a directory that the update comes to.
func (w *watch) addDir(dir string) {
	if !w.isQuiet() {
		return
	}
	err := w.watcher.Add(filepath.Join(w.root, filepath.FromSlash(dir)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.changed.Store(true)
	}
}

// isQuiet reports whether the watch has seen nothing since the update began, and can be believed.
func (w *watch) isQuiet() bool {
	return w != nil && !w.changed.Load() && time.Since(w.began) < watchTrust
}

// close ends the watch.
func (w *watch) close() {
	if w == nil {
		return
	}
	_ = w.watcher.Close() // it holds nothing that could be lost
	<-w.ended
}
