package workspace

import (
	"path"
	"slices"
)

// RemoveEmpty takes directories away in which nothing is left, given by their resolved paths, the
// topmost first. One that somebody uses, a link and what is no directory stay. It returns those
// that went.
func (r *Root) RemoveEmpty(dirs []string) (gone []string) {
	for _, name := range slices.Backward(dirs) {
		if name == "" || name == "." || Protected(name) != Unprotected {
			continue
		}
		at, base, err := r.parent(path.Clean(name))
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
