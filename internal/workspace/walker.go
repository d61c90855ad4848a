package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Bounds of every walk (spec 12.5).
const (
	maxInDirectory = 100_000   // entries of one directory
	maxWalked      = 1_000_000 // entries
	maxWalkDepth   = 100       // directories below each other, the top among them
)

// opened is a directory that a walk has opened, and that others may use after the walk has left it.
type opened struct {
	handle
	path string // without links
	uses atomic.Int32
}

func newOpened(h handle, name string) *opened {
	o := &opened{handle: h, path: name}
	o.uses.Add(1)
	return o
}

func (o *opened) releaseDir() {
	if o.uses.Add(-1) == 0 {
		o.close()
	}
}

// level is a directory that is walked.
type level struct {
	root *Root
	in   *opened
	// of the directory above until prepare was called, then of this one; at the top its own from
	// the beginning
	ignores  *ignores
	relative string // its path below the top
	depth    int    // 1 at the top

	repository bool // it is one, by what lies in it
}

// entryPath returns the path of an entry.
func (l *level) entryPath(name string) string { return path.Join(l.in.path, name) }

// ownIgnores returns the ignore rules of a directory, with its own ignore files.
func (l *level) ownIgnores() *ignores {
	if l.depth == 1 {
		return l.ignores
	}
	return l.ignores.inDirectory(path.Base(l.in.path), l.in.ignoreRules())
}

// omission is why a walk passes by a place.
type omission int

const (
	// it could not be opened or read, or the kernel makes up what lies there, as in /proc
	omitUnreadable omission = iota
	omitMany                // there is more than is looked at: of a directory all or the rest of it
	omitDeep                // it lies deeper than is looked at
)

// errEnough ends a walk when its consumer wants no more entries.
var errEnough = errors.New("enough")

// walker is the shared walk of Search, List, Walk, Survey and Tree: they say what it leaves out and
// handle the rest. It opens each directory relative to its parent, follows no link, and enters no
// virtual file system. It handles the files of a directory by name, then enters its directories by
// name. The first error of a function ends it; it starts no goroutine.
type walker struct {
	ctx            context.Context // it lives as long as the walk
	entries, depth int             // the most that is looked at; 0 for the bounds of every walk

	begin   func(l *level) error                   // of each directory, before it is listed; may be nil
	prepare func(l *level) *ignores                // what is ignored in a directory; may be nil
	wants   func(l *level, entry fs.DirEntry) bool // whether an entry is taken, or gone into; nil: as keeps says
	take    func(l *level, names []string) error   // of what is wanted what is no directory
	// whether a directory that is wanted is gone into; nil: each
	enter func(l *level, name string) (bool, error)
	// of each place that is passed by for another reason than wants; err of omitUnreadable; nil: it
	// is counted
	omit func(name string, why omission, err error) error

	passed Passed
	seen   int
	system bool // the walk starts on a virtual file system, so it may stay there
}

// walkDir goes through a directory, which it lets go of.
func (w *walker) walkDir(top level) error {
	if w.entries == 0 {
		w.entries = maxWalked
	}
	if w.depth == 0 {
		w.depth = maxWalkDepth
	}
	if w.wants == nil {
		w.wants = w.keepsEntry
	}
	if w.omit == nil {
		w.omit = w.countOmitted
	}
	w.system, top.depth = top.in.isSystem(), 1
	return w.walkLevel(&top)
}

func (w *walker) walkLevel(l *level) error {
	defer l.in.releaseDir()
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if w.begin != nil {
		if err := w.begin(l); err != nil {
			return err
		}
	}
	entries, err := l.in.listEntries(min(maxInDirectory, w.entries-w.seen+1))
	if err != nil && !errors.Is(err, io.EOF) {
		if err := w.omit(l.in.path, omitUnreadable, err); err != nil {
			return err
		}
	}
	if w.seen += len(entries); len(entries) == maxInDirectory || w.seen > w.entries {
		if err := w.omit(l.in.path, omitMany, nil); err != nil {
			return err
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	l.repository = holdsRepository(entries)
	if w.prepare != nil {
		l.ignores = w.prepare(l)
	}
	files, dirs, err := w.partitionEntries(l, entries)
	if err == nil && len(files) > 0 {
		err = w.take(l, files)
	}
	for _, name := range dirs {
		if err != nil {
			break
		}
		err = w.walkInto(l, name)
	}
	return err
}

// partitionEntries splits the names of the entries that are wanted.
func (w *walker) partitionEntries(l *level, entries []fs.DirEntry) (files, dirs []string, err error) {
	for _, entry := range entries {
		if w.ctx.Err() != nil { // a hostile ignore file makes each of them cost a second
			return nil, nil, context.Cause(w.ctx)
		}
		switch {
		case !w.wants(l, entry):
		case entry.IsDir():
			dirs = append(dirs, entry.Name())
		default:
			files = append(files, entry.Name())
		}
	}
	return files, dirs, nil
}

// walkInto goes into a directory of a directory.
func (w *walker) walkInto(l *level, name string) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if w.enter != nil {
		if ok, err := w.enter(l, name); !ok {
			return err
		}
	}
	full := l.entryPath(name)
	switch {
	case l.depth == w.depth:
		return w.omit(full, omitDeep, nil)
	case w.seen > w.entries:
		return w.omit(full, omitMany, nil)
	}
	h, err := l.in.enterDir(name)
	if err != nil {
		return w.omit(full, omitUnreadable, err)
	}
	if !w.system && h.isSystem() {
		h.close()
		return w.omit(full, omitUnreadable, unix.ENXIO)
	}
	return w.walkLevel(&level{
		root: l.root, in: newOpened(h, full), ignores: l.ignores,
		relative: path.Join(l.relative, name), depth: l.depth + 1,
	})
}

// Passed counts the entries that a walk skipped.
type Passed struct {
	Secret     int64 // files that may hold a secret, and directories of such
	Ignored    int64 // files and directories that the ignore files name
	Unreadable int64 // files and directories that could not be opened or read
	TooMany    bool  // more entries, or deeper directories, than a walk looks at
}

// keepsEntry reports whether a regular file or a directory is open to all who may see the
// workspace. It counts an entry that is not.
func (w *walker) keepsEntry(l *level, entry fs.DirEntry) bool {
	name, isDir := entry.Name(), entry.IsDir()
	switch found := l.protectionOf(name); {
	case !isDir && !entry.Type().IsRegular(), found == Internal:
	case found == Secret:
		w.passed.Secret++
	case l.ignores.Ignored(name, isDir):
		w.passed.Ignored++
	default:
		return true
	}
	return false
}

// countOmitted notes what was passed by.
func (w *walker) countOmitted(_ string, why omission, _ error) error {
	switch why {
	case omitUnreadable:
		w.passed.Unreadable++
	default:
		w.passed.TooMany = true
	}
	return nil
}
