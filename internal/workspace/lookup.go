package workspace

import (
	"io/fs"

	"github.com/regie-run/regie"
)

// Look follows links and returns the clean path and whether it is a directory. It opens nothing, so
// it also works for a path that may hold a secret. It returns the codes of Place, and
// CodeFileNotFound also for special files.
func (r *Root) Look(name string) (clean string, dir bool, err error) {
	place, err := r.Place(name)
	if err != nil {
		return "", false, err
	}
	if clean, err = r.Clean(name); err != nil {
		return "", false, err
	}
	info, err := r.root.Lstat(place.Path)
	switch {
	case err != nil:
		return "", false, r.explainError(err, clean)
	case !info.IsDir() && !info.Mode().IsRegular():
		return "", false, r.explainError(fs.ErrNotExist, clean)
	}
	return clean, info.IsDir(), nil
}

// Searchable returns where a directory or a file lies that is to be searched, by its path without
// links; "" is the workspace itself. It returns the codes of OpenFile.
func (r *Root) Searchable(name string) (string, error) {
	place, err := r.Place(name)
	if err != nil {
		return "", err
	}
	dir, err := r.openDir(name, false)
	if err == nil {
		dir.in.releaseDir()
		if place.Path == "." {
			place.Path = ""
		}
		return place.Path, nil
	}
	if regie.CodeOf(err) != regie.CodeNotADirectory {
		return "", err
	}
	f, _, err := r.OpenFile(name)
	if err != nil {
		return "", err
	}
	return place.Path, f.Close()
}
