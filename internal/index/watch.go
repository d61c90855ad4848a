package index

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/regie-run/regie"
)

// markPatience is how long Refresh waits for the watch to have told all that happened before. It
// takes a fraction of a millisecond where the system does what it says; else the workspace is
// looked through. A variable for the tests.
var markPatience = 200 * time.Millisecond

// watchAgain is how long a watch that failed is left alone before it is tried again, and twice as
// long each time up to watchSeldom: the system may have given others what it lacked, for a while. A
// variable for the tests.
var watchAgain = 30 * time.Second

const watchSeldom = 15 * time.Minute

// watch tells whether anything has happened in the workspace's directories since the last update.
// What it was is not asked: an update that finds nothing new takes some microseconds a file.
type watch struct {
	root    string // absolute
	marks   string // the directory of the files by which it is known that all earlier events have come
	watcher *fsnotify.Watcher
	ended   chan struct{}
	changes atomic.Int64 // events so far; from 1, so that an update is due at first

	remote bool // no other try will do

	mu      sync.Mutex
	rest    time.Duration   // how long after a failure the next try comes
	again   time.Time       // when that is; zero where nothing failed
	covered int64           // changes that an update has seen to
	failed  regie.Sentence  // why not all is watched
	visited map[string]bool // directories that the update under way has come to
	mark    string          // the file that somebody waits to be told of
	marked  chan struct{}   // closed when that comes; nil: nobody waits
	marking sync.Mutex      // one waits at a time
}

// Watch has the index watch the workspace's directories from now on, until Close or until ctx ends:
// Refresh then knows, without looking, whether anything has changed. Each update adds the
// directories that are new and drops those that are no longer walked. It returns false and why
// where the system cannot watch, because it lacks a means or because a limit is reached: then each
// Refresh looks through the workspace.
func (x *Index) Watch(ctx context.Context) (bool, regie.Sentence) {
	x.watching.Lock()
	defer x.watching.Unlock()
	if x.watch == nil {
		x.watch = newWatch(x.root.Dir(), x.config.Path+".marks", watchAgain)
		context.AfterFunc(ctx, x.unwatch)
	}
	return x.watch.state()
}

// Watching reports whether all changes are noticed; why says what is in the way.
func (x *Index) Watching() (all bool, why regie.Sentence) { return x.watched().state() }

func (x *Index) watched() *watch {
	x.watching.Lock()
	defer x.watching.Unlock()
	return x.watch
}

func (x *Index) unwatch() {
	x.watching.Lock()
	w := x.watch
	x.watch = nil
	x.watching.Unlock()
	w.close()
}

// rewatched is the watch, a new one where the one before failed and its time has come. The update
// that follows has it watch the directories.
func (x *Index) rewatched() *watch {
	x.watching.Lock()
	defer x.watching.Unlock()
	if x.watch.due() {
		old := x.watch
		old.close()
		old.mu.Lock()
		rest := min(2*old.rest, watchSeldom)
		old.mu.Unlock()
		x.watch = newWatch(x.root.Dir(), x.config.Path+".marks", rest)
	}
	return x.watch
}

// due reports whether a watch that failed is to be tried again.
func (w *watch) due() bool {
	if w == nil || w.remote {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.again.IsZero() && !time.Now().Before(w.again)
}

// Refresh is Update where anything can have changed since the last one: where a watch says that
// nothing has, it does nothing, and fresh is true.
func (x *Index) Refresh(ctx context.Context, progress func(Progress)) (s Summary, fresh bool, err error) {
	if x.rewatched().quiet(ctx) && x.inPlace() {
		return s, true, nil
	}
	s, err = x.Update(ctx, progress)
	return s, false, err
}

// inPlace reports whether the file is the one that the last update filled.
func (x *Index) inPlace() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.db != nil && x.db.inPlace() && x.db.filled.Load()
}

// newWatch starts a goroutine, which close ends. Where the system cannot watch it has only the
// reason.
func newWatch(root, marks string, rest time.Duration) *watch {
	w := &watch{root: root, marks: marks, ended: make(chan struct{}), rest: rest}
	w.changes.Store(1)
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		w.fail(err)
		close(w.ended)
		return w
	}
	w.watcher = watcher
	if w.remote = remote(root); w.remote {
		w.failed = regie.Say("the workspace lies on a file system that does not tell what other machines change")
	}
	if err := errors.Join(os.MkdirAll(marks, 0o700), watcher.Add(marks)); err != nil {
		w.fail(err)
	}
	go w.follow()
	return w
}

// follow counts what happens.
func (w *watch) follow() {
	defer close(w.ended)
	for {
		select {
		case event, ok := <-w.watcher.Events:
			switch {
			case !ok:
				return
			case filepath.Dir(event.Name) != w.marks:
				w.changes.Add(1)
			case event.Has(fsnotify.Create):
				w.arrived(event.Name)
			}
		case err, ok := <-w.watcher.Errors:
			if !ok {
				return
			}
			w.changes.Add(1)
			if !errors.Is(err, fsnotify.ErrEventOverflow) { // after that an update finds what was not told
				w.fail(err)
			}
		}
	}
}

func (w *watch) arrived(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.marked != nil && w.mark == name {
		close(w.marked)
		w.marked = nil
	}
}

func (w *watch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.failed.IsZero() {
		return
	}
	w.again = time.Now().Add(w.rest)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		w.failed = regie.Say("the system watches no more directories for this user: raise fs.inotify.max_user_watches")
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		w.failed = regie.Say("the system has no more watches or open files for this user: raise fs.inotify.max_user_instances or the limit of open files")
	default:
		w.failed = regie.Say("the system cannot watch the workspace's directories: %s", err.Error())
	}
}

// state says whether all is watched.
func (w *watch) state() (bool, regie.Sentence) {
	if w == nil {
		return false, regie.Sentence{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed.IsZero(), w.failed
}

// seen is how many changes there were so far. An update that begins now covers them.
func (w *watch) seen() int64 {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.visited = map[string]bool{}
	changes := w.changes.Load()
	if w.watcher != nil {
		// A directory that was renamed is still watched under its old name. When the update comes
		// to it, it is watched anew.
		w.drop(func(dir string) bool {
			_, err := os.Lstat(dir)
			return errors.Is(err, os.ErrNotExist)
		})
	}
	return changes
}

// drop ends the watch of some directories, never that of the marks.
func (w *watch) drop(unwanted func(dir string) bool) {
	for _, dir := range w.watcher.WatchList() {
		if dir != w.marks && unwanted(dir) {
			_ = w.watcher.Remove(dir) // it may have ended by itself
		}
	}
}

// add watches a directory that an update comes to.
func (w *watch) add(relative string) {
	if w == nil || w.watcher == nil {
		return
	}
	dir := filepath.Join(w.root, filepath.FromSlash(relative))
	w.mu.Lock()
	w.visited[dir] = true
	stop := !w.failed.IsZero()
	w.mu.Unlock()
	if stop {
		return
	}
	if err := w.watcher.Add(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		w.fail(err)
	}
}

// covers notes that an update has seen to all changes up to some, and drops the directories that it
// did not come to.
func (w *watch) covers(changes int64) {
	if w == nil || w.watcher == nil {
		return
	}
	w.mu.Lock()
	w.covered = changes
	visited, failed := w.visited, !w.failed.IsZero()
	if !failed { // it has all
		w.rest = watchAgain
	}
	w.mu.Unlock()
	w.drop(func(dir string) bool {
		_, err := os.Lstat(dir)
		return failed || !visited[dir] && err == nil // what has gone since has told so, and is the next update's
	})
}

// quiet reports whether nothing has happened since the last update. What happened before the call
// is not missed: events come in their order, and a mark of our own is the last of them.
func (w *watch) quiet(ctx context.Context) bool {
	if w == nil || w.watcher == nil || !w.settle(ctx) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed.IsZero() && w.changes.Load() == w.covered
}

// settle waits until the watch has told all that has happened so far.
func (w *watch) settle(ctx context.Context) bool {
	w.marking.Lock()
	defer w.marking.Unlock()
	marked := make(chan struct{})
	mark := filepath.Join(w.marks, "mark-"+rand.Text())
	w.mu.Lock()
	failed := !w.failed.IsZero()
	w.mark, w.marked = mark, marked
	w.mu.Unlock()
	if failed {
		return false
	}
	if os.WriteFile(mark, nil, 0o600) != nil || os.Remove(mark) != nil {
		// somebody has removed the directory
		if err := errors.Join(os.MkdirAll(w.marks, 0o700), w.watcher.Add(w.marks)); err != nil {
			w.fail(err)
		}
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
