package workspace

import (
	"path"
	"slices"
)

// Remove takes a file away (spec 8.2), as Load gave it, whose content is kept elsewhere. If it is
// not what before says, nothing is done and CodeFileChanged returned.
//
// tried tells whether the file may be gone in spite of an error. If not, it is where it was.
func (r *Root) Remove(before Content) (tried bool, err error) {
	dir, base, err := r.openParent(before.Path)
	if err != nil {
		return false, r.explainError(err, before.Path)
	}
	defer func() { _ = dir.Close() }() // what counts is synced
	if err := r.checkUnchanged(before, dir); err != nil {
		return false, r.explainError(err, before.Path)
	}
	if err := dir.Remove(base); err != nil {
		return false, r.explainError(err, before.Path)
	}
	return true, r.explainError(syncDir(dir), before.Path)
}

// RemoveEmpty takes directories away in which nothing is left, given by their resolved paths, the
// topmost first. One that somebody uses, a link and what is no directory stay. It returns those
// that went.
func (r *Root) RemoveEmpty(dirs []string) (gone []string) {
	for _, name := range slices.Backward(dirs) {
		if name == "" || name == "." || Protected(name) != Unprotected {
			continue
		}
		at, base, err := r.openParent(path.Clean(name))
		if err != nil {
			continue
		}
		// fails where it is not empty
		if info, err := at.Lstat(base); err == nil && info.IsDir() && at.Remove(base) == nil {
			gone = append(gone, name)
			_ = syncDir(at) // if the name comes back after a power cut, an empty directory does
		}
		_ = at.Close() // nothing was written through it
	}
	return gone
}
