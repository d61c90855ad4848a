package index

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/regie-run/regie"
)

// markPatience is how long Refresh waits for the watch to report all earlier events; that takes a
// fraction of a millisecond. A variable for the tests.
var markPatience = 200 * time.Millisecond

// watchTrust is for how long Refresh believes a watch: what another machine changes on a network
// file system is not reported to this one.
const watchTrust = time.Minute

// watch watches the directories that one update has walked, and remembers whether anything has
// happened in them since. It does not look at the events: an update that finds nothing new takes
// some microseconds a file. Its goroutine ends with close.
type watch struct {
	root    string // absolute
	marks   string // the directory of the files by which the watch proves that it has no earlier event left
	began   time.Time
	watcher *fsnotify.Watcher // nil where the system cannot watch
	ended   chan struct{}

	mu      sync.Mutex
	failed  regie.Sentence // why not all is watched
	changed bool
	mark    string        // the file whose event settle waits for
	marked  chan struct{} // closed by that event
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
		err := x.using(ctx, false, func(db *database) error {
			generation, err := metaValue(ctx, db.read, "generation")
			fresh = x.isUpdated(generation)
			return err
		})
		if fresh && err == nil {
			return s, true, nil
		}
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
	w := &watch{root: x.root.Dir(), marks: x.config.Path + ".marks", began: time.Now(), ended: make(chan struct{})}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		w.fail(err)
		close(w.ended)
		return w
	}
	w.watcher = watcher
	if err := errors.Join(os.MkdirAll(w.marks, 0o700), watcher.Add(w.marks)); err != nil {
		w.fail(err)
	}
	go w.follow()
	return w
}

// follow takes the events.
func (w *watch) follow() {
	defer close(w.ended)
	for {
		select {
		case event, ok := <-w.watcher.Events:
			if !ok {
				return
			}
			w.observe(event)
		case err, ok := <-w.watcher.Errors:
			if !ok {
				return
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) { // an update finds what was lost
				w.observe(fsnotify.Event{})
			} else {
				w.fail(err)
			}
		}
	}
}

func (w *watch) observe(event fsnotify.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case filepath.Dir(event.Name) != w.marks:
		w.changed = true
	case w.marked != nil && event.Name == w.mark && event.Has(fsnotify.Create):
		close(w.marked)
		w.marked = nil
	}
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

// quiet reports whether nothing has happened since the update began. What happened before the call
// is not missed: events come in their order, and that of the mark is the last of them.
func (w *watch) quiet(ctx context.Context) bool {
	return w != nil && w.unchanged() && w.settle(ctx) && w.unchanged()
}

// settle waits until the watch has reported all that has happened so far.
func (w *watch) settle(ctx context.Context) bool {
	marked := make(chan struct{})
	mark := filepath.Join(w.marks, "mark-"+rand.Text())
	w.mu.Lock()
	if w.marked != nil { // another goroutine asks at this moment
		w.mu.Unlock()
		return false
	}
	w.mark, w.marked = mark, marked
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		if w.marked == marked {
			w.marked = nil
		}
		w.mu.Unlock()
	}()
	if os.WriteFile(mark, nil, 0o600) != nil || os.Remove(mark) != nil { // the directory was deleted
		return false
	}
	patience := time.NewTimer(markPatience)
	defer patience.Stop()
	select {
	case <-marked:
		return true
	case <-patience.C:
	case <-w.ended:
	case <-ctx.Done():
	}
	return false
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
