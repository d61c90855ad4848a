package workspace

import (
	"context"
	"errors"
	"io/fs"
)

// WalkEntry is a file or a directory that a walk comes to.
type WalkEntry struct {
	Path  string // without links
	Dir   bool
	Stamp Stamp // of a file
}

// Walked says what a walk passed by.
type Walked struct {
	Files      int64 // that were visited
	Secret     int64 // files that may hold a secret, and directories of such
	Ignored    int64 // files and directories that the ignore files name
	System     int64 // directories that the kernel makes up, such as /proc
	Unreadable int64 // files and directories that could not be opened
	TooMany    bool  // more entries, or deeper directories, than a walk looks at
}

// Walk visits the regular files below a directory, and the directories themselves before what they
// hold. As Search it follows no links, and leaves out what is secret or belongs to git or regie,
// and what ignore files name; the directory itself is walked even if it is ignored. It ends where
// visit returns false, and with the context's error. It starts no goroutine. It returns the codes
// of OpenDir.
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
	v := &visits{visit: visit}
	w := walker{ctx: ctx, begin: v.begin, prepare: (*level).prepared, wants: v.wants, take: v.take, omit: v.omit}
	err = w.walk(level{root: r, in: newOpened(h, dir.Path), ignores: ignores})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return v.seen, err
}

// visits is a Walk on its way.
type visits struct {
	visit func(*WalkEntry) bool
	seen  Walked
}

// begin visits a directory.
func (v *visits) begin(l *level) error {
	if !v.visit(&WalkEntry{Path: l.in.path, Dir: true}) {
		return errEnough
	}
	return nil
}

// wants reports whether an entry is visited, and counts it where a rule of the workspace is why
// not.
func (v *visits) wants(l *level, entry fs.DirEntry) bool {
	name, isDir := entry.Name(), entry.IsDir()
	switch found := l.protection(name); {
	case !isDir && !entry.Type().IsRegular(), found == Internal:
	case found == Secret:
		v.seen.Secret++
	case l.ignores.Ignored(name, isDir):
		v.seen.Ignored++
	default:
		return true
	}
	return false
}

// take visits files.
func (v *visits) take(l *level, names []string) error {
	for _, name := range names {
		stamp, err := l.in.stamp(name)
		if err != nil { // it has gone, or something else has its name
			v.seen.Unreadable++
			continue
		}
		v.seen.Files++
		if !v.visit(&WalkEntry{Path: l.below(name), Stamp: stamp}) {
			return errEnough
		}
	}
	return nil
}

func (v *visits) omit(_ string, why omission, _ error) error {
	switch why {
	case omitUnreadable:
		v.seen.Unreadable++
	case omitSystem:
		v.seen.System++
	default:
		v.seen.TooMany = true
	}
	return nil
}
