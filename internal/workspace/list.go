package workspace

import (
	"context"
	"errors"
	"io/fs"
	"path"
)

// Listing says what List shows.
type Listing struct {
	// Wanted says of a path below the directory whether it is shown, Holds whether such paths may
	// lie below a directory.
	Wanted, Holds func(relative string) bool
	// Entries and Depth are the most that is looked at; 0 for the bounds of every walk.
	Entries, Depth int
	// Show takes an entry that is wanted, and returns false to end the list.
	Show func(e *SurveyEntry) bool
}

// Listed is the result of a List.
type Listed struct {
	Path   string // the directory, without links
	Wanted int    // entries that were met and are wanted
	// Left is what was left out: what ignore files name, and among the others directories that were
	// not looked into, or not to their end.
	Left
}

// List shows the content of a directory: its files, links and special files by name, then its
// directories, each before its content. It follows no link below the directory. It leaves out .git
// and ignored names, and enters no directory that may hold secrets. It does list a directory that
// is itself ignored. It returns the context's cause and the codes of OpenFile.
func (r *Root) List(ctx context.Context, name string, how Listing) (out Listed, err error) {
	top, err := r.beginWalk(r.openDir(name, false))
	if err != nil {
		return out, err
	}
	out.Path = top.in.path
	show := func(l *level, name string) error {
		e, err := l.in.lookUp(name)
		if err != nil {
			return nil //nolint:nilerr // it is gone
		}
		if e.Path = l.entryPath(name); e.Mode.Type() == fs.ModeSymlink {
			e.Target, _ = l.in.readLink(name) // empty where it is gone
		}
		return enoughUnless(how.Show(&e))
	}
	w := walker{ctx: ctx, entries: how.Entries, depth: how.Depth, prepare: (*level).ownIgnores}
	w.wants = func(l *level, entry fs.DirEntry) bool {
		relative, shown := path.Join(l.relative, entry.Name()), l.entryPath(entry.Name())
		wanted := how.Wanted(relative)
		holds := entry.IsDir() && how.Holds(relative)
		if entry.Name() == ".git" || !wanted && !holds {
			return false
		}
		if l.ignores.Ignored(entry.Name(), entry.IsDir()) {
			if entry.IsDir() {
				shown += "/"
			}
			out.Note(&out.Ignored, &out.IgnoredNames, shown)
			return false
		}
		if wanted {
			out.Wanted++
		}
		return true
	}
	w.take = func(l *level, names []string) error {
		for _, name := range names {
			if err := show(l, name); err != nil {
				return err
			}
		}
		return nil
	}
	w.enter = func(l *level, name string) (bool, error) {
		relative := path.Join(l.relative, name)
		if how.Wanted(relative) {
			if err := show(l, name); err != nil {
				return false, err
			}
		}
		secret := l.protectionOf(name) == Secret
		if secret && how.Holds(relative) {
			out.Note(&out.Other, &out.OtherNames, l.entryPath(name))
		}
		return !secret && how.Holds(relative), nil
	}
	w.omit = func(name string, _ omission, _ error) error {
		out.Note(&out.Other, &out.OtherNames, name)
		return nil
	}
	if err = w.walkDir(top); errors.Is(err, errEnough) {
		err = nil
	}
	return out, err
}
