package workspace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/regie-run/regie"
)

// Removal takes a file away.
type Removal struct {
	Before Content // as Load gave it
	// Tag makes the name that the file has while it is looked at: what a crash left under it is
	// recognised.
	Tag string
}

// Remove takes a file away (spec 8.2), whose content is kept elsewhere. It is moved aside first and
// looked at there: what is not the file that Before says goes back, and CodeFileChanged is
// returned. So nothing is lost that nobody has seen, whoever writes at the same moment.
//
// tried tells whether the file may be gone in spite of an error. If not, it is where it was.
func (r *Root) Remove(removal Removal) (tried bool, err error) {
	before := removal.Before
	dir, base, err := r.parent(before.Path)
	if err != nil {
		return false, r.explain(err, before.Path)
	}
	defer func() { _ = dir.Close() }() // what counts is synced
	if err := r.unchanged(before, dir); err != nil {
		return false, r.explain(err, before.Path)
	}
	aside := tempName(removal.Tag)
	if err := dir.Rename(base, aside); err != nil {
		return true, r.explain(err, before.Path)
	}
	if err := sameAside(dir, aside, &before); err != nil {
		return r.takeBack(dir, aside, base, before.Path, err)
	}
	if err := dir.Remove(aside); err != nil {
		return r.takeBack(dir, aside, base, before.Path, r.explain(err, before.Path))
	}
	return true, r.explain(syncDir(dir), before.Path)
}

// sameAside compares what was moved aside with the file that was to be moved.
func sameAside(dir *os.Root, aside string, before *Content) error {
	if before.Link {
		seen, err := dir.Lstat(aside)
		if err == nil && os.SameFile(seen, before.info) {
			if target, err := dir.Readlink(aside); err == nil && bytes.Equal(regie.LinkData(target), before.Data) {
				return nil
			}
		}
		return changed(before.Path)
	}
	f, info, err := openRegular(dir, aside)
	if errors.Is(err, errSwapped) {
		return changed(before.Path)
	} else if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	if !os.SameFile(info, before.info) {
		return changed(before.Path)
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(len(before.Data))+1))
	if err == nil && !bytes.Equal(data, before.Data) {
		err = changed(before.Path)
	}
	return err
}

// takeBack gives what was moved aside its name again, without replacing what has that name by now.
func (r *Root) takeBack(dir *os.Root, aside, base, name string, why error) (tried bool, err error) {
	if err := put(dir, aside, base, false); err != nil {
		return true, regie.Errorf(regie.CodeFileChanged,
			"%s was replaced while it was being deleted: what stood there is in %s now (%v)", name,
			path.Join(path.Dir(name), aside), err)
	}
	return false, r.explain(errors.Join(why, syncDir(dir)), name)
}

// Reappear puts a file back that an attempt with this tag had moved aside when it died. It does
// nothing where there is none, and where something else has the name by now.
func (r *Root) Reappear(resolved, tag string) error {
	dir, base, err := r.parent(resolved)
	if err != nil {
		return r.explain(err, resolved)
	}
	defer func() { _ = dir.Close() }() // what counts is synced
	aside := tempName(tag)
	seen, err := dir.Lstat(aside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return r.explain(err, resolved)
	}
	if there, err := dir.Lstat(base); err == nil && os.SameFile(seen, there) { // it had its name again already
		return r.explain(dir.Remove(aside), resolved)
	}
	if err := put(dir, aside, base, false); err != nil {
		return r.explain(err, resolved)
	}
	return r.explain(syncDir(dir), resolved)
}

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
