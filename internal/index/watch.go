package index

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleTime bounds how long Refresh waits for the watch to report all earlier events; that takes
// a fraction of a millisecond, but on a busy machine.
const settleTime = time.Second

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

	settling sync.Mutex
	mark     string        // a file of its own, whose events follow all earlier ones
	marked   chan struct{} // such an event came
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
	if w.isQuiet() && w.settle(ctx) && w.isQuiet() {
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
	w := &watch{
		root: x.root.Dir(), began: time.Now(), watcher: watcher,
		ended: make(chan struct{}), marked: make(chan struct{}, 1),
	}
	mark, err := os.CreateTemp("", "regie-watch-*")
	if err == nil {
		w.mark = mark.Name()
		err = errors.Join(mark.Close(), watcher.Add(w.mark))
	}
	w.changed.Store(err != nil)
	go w.followEvents()
	return w
}

// settle waits until all earlier events are taken, and reports whether they are: the system reports
// in order, so it changes a file of its own and waits for that. A watch that does not report in
// time is no use any more.
func (w *watch) settle(ctx context.Context) bool {
	w.settling.Lock()
	defer w.settling.Unlock()
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if now := time.Now(); w.changed.Load() || os.Chtimes(w.mark, now, now) != nil {
		w.changed.Store(true)
		return false
	}
	select {
	case <-w.marked:
		return true
	case <-ctx.Done():
		w.changed.Store(true)
		return false
	}
}

// followEvents takes the events, and errors, after which an update finds what was lost.
func (w *watch) followEvents() {
	defer close(w.ended)
	for {
		select {
		case event, ok := <-w.watcher.Events:
			if !ok {
				return
			}
			if event.Name == w.mark && event.Has(fsnotify.Chmod) {
				select {
				case w.marked <- struct{}{}:
				default:
				}
				continue
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
	_ = os.Remove(w.mark) // the system cleans up what stays
}
