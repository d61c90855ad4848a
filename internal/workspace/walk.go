package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
)

// WalkEntry is a file or a directory that a walk comes to. It may be used during the call of visit; a file also afterwards, if Keep is called.
type WalkEntry struct {
	Path  string // without links
	Dir   bool
	Stamp Stamp // of a file, read before its content can be
	name  string
	in    *opened
}

// Keep has the entry stay usable after visit has returned, until Release. It holds its directory open.
func (e *WalkEntry) Keep() { e.in.uses.Add(1) }

// Release ends what Keep began.
func (e *WalkEntry) Release() { e.in.release() }

// Open opens the file of that name in that very directory: no link is followed, no FIFO waited for. The caller closes it.
func (e *WalkEntry) Open() (io.ReadCloser, error) {
	f, _, err := e.in.open(e.name)
	return f, err
}

// Walked says what a walk passed by.
type Walked struct {
	Files      int64 // that were visited
	Secret     int64 // files that may hold a secret, and directories of such
	Ignored    int64 // files and directories that the ignore files name
	Unreadable int64 // files and directories that could not be opened
	TooMany    bool  // more entries, or deeper directories, than a walk looks at
}

// Walk visits the regular files below a directory, and the directories themselves before what they hold. As Search it follows no links, and leaves
// out what is secret or belongs to git or regie, and what ignore files name; the directory itself is walked even if it is ignored. It ends where visit
// returns false, and with the context's error. It starts no goroutine. It returns the codes of OpenDir.
func (r *Root) Walk(ctx context.Context, name string, visit func(*WalkEntry) bool) (Walked, error) {
	dir, err := r.OpenDir(name)
	if err != nil {
		return Walked{}, err
	}
	defer func() { _ = dir.Close() }() // the handle has its own
	ignores := r.Ignores(dir)
	h, err := newHandle(dir.at)
	if err != nil {
		return Walked{}, r.explain(err, dir.Path)
	}
	top := &opened{handle: h, path: dir.Path}
	top.uses.Add(1)
	w := &walk{ctx: ctx, visit: visit}
	err = w.directory(level{in: top, ignores: ignores})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return w.seen, err
}

// errEnough says that a visitor wants no more.
var errEnough = errors.New("enough")

type walk struct {
	ctx     context.Context // it lives as long as the walk
	visit   func(*WalkEntry) bool
	seen    Walked
	visited int
}

// directory visits a directory and all below it. It lets go of it.
func (w *walk) directory(l level) error {
	defer l.in.release()
	if err := w.ctx.Err(); err != nil {
		return context.Cause(w.ctx)
	}
	if !w.visit(&WalkEntry{Path: l.in.path, Dir: true, in: l.in}) {
		return errEnough
	}
	entries, err := l.in.list()
	if err != nil && len(entries) == 0 && !errors.Is(err, io.EOF) {
		w.seen.Unreadable++
		return nil
	}
	if l.depth > 0 {
		l.ignores = l.ignores.below(path.Base(l.in.path), func(file string) []byte { return l.in.ignoreFile(entries, file) })
	}
	w.seen.TooMany = w.seen.TooMany || len(entries) == maxInDirectory || w.visited+len(entries) > maxSearched
	w.visited += len(entries)
	var dirs []string
	for _, entry := range entries {
		switch {
		case !w.wants(&l, entry):
		case entry.IsDir():
			dirs = append(dirs, entry.Name())
		default:
			if err := w.file(&l, entry.Name()); err != nil {
				return err
			}
		}
	}
	slices.Sort(dirs)
	for _, name := range dirs {
		if l.depth == maxSearchDepth || w.visited > maxSearched {
			w.seen.TooMany = true
			return nil
		}
		h, err := l.in.enter(name)
		if err != nil {
			w.seen.Unreadable++
			continue
		}
		next := &opened{handle: h, path: path.Join(l.in.path, name)}
		next.uses.Add(1)
		if err := w.directory(level{in: next, ignores: l.ignores, depth: l.depth + 1}); err != nil {
			return err
		}
	}
	return nil
}

// wants reports whether an entry is visited, and counts it where a rule of the workspace is why not.
func (w *walk) wants(l *level, entry fs.DirEntry) bool {
	name, isDir := entry.Name(), entry.IsDir()
	switch found := protectedName(name, true); {
	case !isDir && !entry.Type().IsRegular(), found == Internal:
	case found == Secret:
		w.seen.Secret++
	case l.ignores.Ignored(name, isDir):
		w.seen.Ignored++
	default:
		return true
	}
	return false
}

func (w *walk) file(l *level, name string) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	stamp, err := l.in.stamp(name)
	if err != nil { // it has gone, or something else has its name
		w.seen.Unreadable++
		return nil //nolint:nilerr // the rest is walked
	}
	w.seen.Files++
	if !w.visit(&WalkEntry{Path: path.Join(l.in.path, name), Stamp: stamp, name: name, in: l.in}) {
		return errEnough
	}
	return nil
}
