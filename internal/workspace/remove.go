package workspace

import (
	"path"
	"slices"
)

// Remove removes a file that Load returned (spec 8.2). The caller keeps its content. If the file no
// longer matches before, Remove does nothing and returns CodeFileChanged.
//
// tried says that the file may be gone in spite of an error. If false, the file is unchanged.
func (r *Root) Remove(before Content) (tried bool, err error) {
	dir, base, err := openParent(r.root, before.Path)
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

// RemoveEmpty removes empty directories, given by their resolved paths, parents first. It skips
// directories in use, links and files. It returns the paths that it removed.
func (r *Root) RemoveEmpty(dirs []string) (gone []string) {
	for _, name := range slices.Backward(dirs) {
		if name == "" || name == "." || Protected(name) != Unprotected {
			continue
		}
		at, base, err := openParent(r.root, path.Clean(name))
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
