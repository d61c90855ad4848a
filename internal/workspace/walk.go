package workspace

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/regie-run/regie"
)

// WalkEntry is a file or a directory that a walk comes to.
type WalkEntry struct {
	Path  string // without links
	Dir   bool
	Stamp Stamp // of a file
}

// Walked is the result of a walk.
type Walked struct {
	Files int64 // that were visited
	Passed
}

// Walk visits the regular files below a directory, and the directories themselves before their
// content. As Search it follows no links and leaves out secrets, files of git or Regie, and ignored
// names. It walks a directory that is itself ignored. It ends when visit returns false, and with
// the context's error. It starts no goroutine. It returns the codes of OpenFile.
func (r *Root) Walk(ctx context.Context, name string, visit func(*WalkEntry) bool) (Walked, error) {
	top, err := r.beginWalk(r.openDir(name, false))
	if err != nil {
		return Walked{}, err
	}
	var out Walked
	w := walker{ctx: ctx, prepare: (*level).ownIgnores}
	w.begin = func(l *level) error {
		return enoughUnless(visit(&WalkEntry{Path: l.in.path, Dir: true}))
	}
	w.take = func(l *level, names []string) error {
		for _, name := range names {
			e, err := l.in.lookUp(name)
			if err != nil || !e.Mode.IsRegular() { // it has gone, or something else has its name
				w.passed.Unreadable++
				continue
			}
			out.Files++
			if !visit(&WalkEntry{Path: l.entryPath(name), Stamp: e.Stamp}) {
				return errEnough
			}
		}
		return nil
	}
	err = w.walkDir(top)
	if errors.Is(err, errEnough) {
		err = nil
	}
	out.Passed = w.passed
	return out, err
}

// beginWalk starts a walk at the directory that openDir returned. If the directory or one above it
// is ignored, only its own ignore files and those below count: the caller named it.
func (r *Root) beginWalk(top level, err error) (level, error) {
	if err != nil {
		return level{}, err
	}
	var ignored bool
	if top.ignores, ignored = r.ignoresAt(top.in.path); ignored {
		top.ignores = (*ignores)(nil).inDirectory("", top.in.ignoreRules())
	}
	return top, nil
}

func enoughUnless(more bool) error {
	if more {
		return nil
	}
	return errEnough
}

// maxSecretWalk bounds how many entries HoldsSecret looks at.
const maxSecretWalk = 200_000

// HoldsSecret reports whether a command in the workspace at root may read a secret there. It looks
// at ignored files too, and counts what it cannot look at as one.
func HoldsSecret(ctx context.Context, root string) bool {
	found, err := secretPaths(ctx, root, 1)
	return err != nil || len(found) > 0
}

// maxSecretPaths bounds what SecretPaths returns.
const maxSecretPaths = 1000

// SecretPaths returns the files and directories of the workspace at root that may hold a secret, as
// absolute paths without links, ignored ones too. It fails where it cannot look at everything.
func SecretPaths(ctx context.Context, root string) ([]string, error) {
	found, err := secretPaths(ctx, root, maxSecretPaths+1)
	if err == nil && len(found) > maxSecretPaths {
		err = regie.Errorf(regie.CodeTooLarge, "the workspace has more than %d files that may hold a secret", maxSecretPaths)
	}
	return found, err
}

// secretPaths looks for secret files until it has found some of them.
func secretPaths(ctx context.Context, root string, enough int) (found []string, err error) {
	r, err := Open(root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it was only read
	top, err := r.openDir(".", false)
	if err != nil {
		return nil, err
	}
	w := walker{ctx: ctx, entries: maxSecretWalk, take: func(*level, []string) error { return nil }}
	w.wants = func(l *level, entry fs.DirEntry) bool {
		protection := l.protectionOf(entry.Name())
		if protection == Secret && len(found) < enough {
			found = append(found, Resolved(filepath.Join(root, filepath.FromSlash(l.entryPath(entry.Name())))))
		}
		return protection != Internal && protection != Secret && entry.IsDir()
	}
	w.enter = func(*level, string) (bool, error) {
		more := len(found) < enough
		return more, enoughUnless(more)
	}
	if err = w.walkDir(top); len(found) >= enough {
		return found, nil
	}
	if err == nil && (w.passed.TooMany || w.passed.Unreadable > 0) {
		err = regie.Errorf(regie.CodeTooLarge,
			"the workspace cannot be searched for secret files: it has more than %d entries, or unreadable ones", maxSecretWalk)
	}
	return found, err
}
