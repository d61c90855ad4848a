package workspace

import "io/fs"

// Look says what stands at a path, links followed: the path as Clean gives it, and whether it is a directory. It opens nothing, so what may
// hold a secret can be looked at, and returns the codes of Place, and CodeFileNotFound also for what is neither a file nor a directory.
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
		return "", false, r.explain(err, clean)
	case !info.IsDir() && !info.Mode().IsRegular():
		return "", false, r.explain(fs.ErrNotExist, clean)
	}
	return clean, info.IsDir(), nil
}
