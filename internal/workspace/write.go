package workspace

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/regie-run/regie"
)

// Content is a file as a tool that changes it sees it (spec 8.2).
type Content struct {
	Path   string // without links in the directories before it
	Exists bool
	Data   []byte
	Perm   fs.FileMode // of a file that exists
	Links  uint64      // how many names it has
	// Secret says that the file may hold a secret: the caller needs a person's approval before it
	// changes the file.
	Secret bool
	// Link says that it is a symbolic link and Data holds regie.LinkData; only LoadEntry returns
	// one.
	Link bool
	Size int64
	info fs.FileInfo
	// entry says that LoadEntry gave it.
	entry bool
}

// Identity is the SHA-256 of the content; zero where there is no file.
func (c *Content) Identity() regie.Hash {
	if !c.Exists {
		return regie.Hash{}
	}
	return regie.HashOf(c.Data)
}

// Load reads a file before a change; a missing file is empty. It does not refuse a possible secret:
// the caller asks a person. It returns the codes of OpenFile except CodeFileNotFound. It returns
// CodePathProtected for a path that cannot be written and CodeReadOnly for a file without write
// permission. It returns CodeFileTooLarge for more than most bytes, and CodeNotAFile for a link.
func (r *Root) Load(name string, most int64) (Content, error) {
	return r.loadNamed(name, most, false)
}

// LoadEntry is Load that also accepts a file without write permission, and a link in the last
// place, which it returns as a link. An undo needs both.
func (r *Root) LoadEntry(name string, most int64) (Content, error) {
	return r.loadNamed(name, most, true)
}

func (r *Root) loadNamed(name string, most int64, entry bool) (Content, error) {
	clean, err := r.Clean(name)
	if err != nil {
		return Content{}, err
	}
	if strings.HasSuffix(name, "/") || clean == "." {
		return Content{}, regie.Errorf(regie.CodeNotAFile, "%s names a directory: name a file", name)
	}
	return r.loadClean(clean, most, entry)
}

func (r *Root) loadClean(clean string, most int64, entry bool) (c Content, err error) {
	err = r.retryResolved(clean, false, func(t target) error {
		if err := r.mayWrite(t, clean); err != nil {
			return err
		}
		c, err = r.loadContent(t.path, clean, most, entry)
		c.Secret = t.found == Secret
		return err
	})
	return c, err
}

func (r *Root) loadContent(resolved, name string, most int64, entry bool) (Content, error) {
	c := Content{Path: resolved, entry: entry}
	f, info, err := r.openResolved(resolved, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case errors.Is(err, errSwapped) && entry:
		return loadLink(r.root, c)
	case errors.Is(err, errSwapped):
		return c, r.whyLink(resolved, name)
	case err != nil:
		return c, err
	}
	defer f.Close()
	c.Exists, c.Perm, c.Size, c.info = true, info.Mode().Perm(), info.Size(), info
	c.Links = uint64(statOf(info).Nlink) //nolint:unconvert // it is narrower on other systems
	switch {
	case c.Perm&0o222 == 0 && !entry:
		return c, regie.Errorf(regie.CodeReadOnly, "%s is read-only by its permissions", name)
	case info.Size() > most:
		return c, regie.Errorf(regie.CodeFileTooLarge, "%s has %d bytes, at most %d can be changed", name, info.Size(),
			most)
	}
	c.Data, err = readMost(f, most, name)
	return c, err
}

// loadLink reads a link's target as its content.
func loadLink(root *os.Root, c Content) (Content, error) {
	dir, base, err := openParent(root, c.Path)
	if err != nil {
		return c, err
	}
	defer func() { _ = dir.Close() }() // nothing was written through it
	info, err := dir.Lstat(base)
	if err != nil || info.Mode().Type() != fs.ModeSymlink {
		return c, errSwapped
	}
	target, err := dir.Readlink(base)
	if err != nil {
		return c, errSwapped
	}
	c.Exists, c.Link, c.Perm, c.Links, c.info = true, true, fs.ModeSymlink, 1, info
	c.Data, c.Size = regie.LinkData(target), int64(len(target))
	return c, nil
}

// whyLink returns the error for a write through a link, or nil if the path is no link.
func (r *Root) whyLink(resolved, name string) error {
	dir, base, err := openParent(r.root, resolved)
	if err != nil {
		return err
	}
	defer dir.Close()
	if !isLink(dir, base) {
		return errSwapped
	}
	if t, err := r.resolvePath(resolved, true); err != nil {
		return err // it leads out, or round in a circle
	} else if t.found == Secret {
		return mayRead(Secret, name)
	}
	return regie.Errorf(regie.CodeNotAFile, "%s is a symbolic link: name the file that it leads to", name)
}

func isLink(at *os.Root, name string) bool {
	info, err := at.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// Change is a new content for a file.
type Change struct {
	Before Content // as Load gave it
	Data   []byte
	// Perm is the file's mode; 0 keeps the mode, and gives a new file the default of the process's
	// mask. With fs.ModeSymlink Replace makes a link from Data in the form of regie.LinkData.
	Perm fs.FileMode
	// DirPerm is what directories get that have to be made; 0 leaves them to the process's mask.
	DirPerm fs.FileMode
	// Tag makes the name of the temporary file: a crashed attempt with the same tag is recognised
	// and replaced.
	Tag string
}

// Replace replaces a file's content in one step: readers see the old file or the new one, also
// after a power cut (spec 8.2). It makes missing directories. It syncs the new content to disk and
// then reads the file once more. If the file does not match Before, Replace does nothing and
// returns CodeFileChanged. It creates a file that did not exist without replacing another. It keeps
// permissions; a new file gets those of the process's mask.
//
// tried says that the file may have changed in spite of an error. If false, everything is
// unchanged.
func (r *Root) Replace(change Change) (tried bool, err error) {
	name := change.Before.Path
	dir, made, err := r.makeDirs(path.Dir(name), change.DirPerm)
	if err != nil {
		return false, r.explainError(err, name)
	}
	defer dir.Close()
	base, temp := path.Base(name), tempName(change.Tag)
	err = writeTemp(dir, temp, change)
	if err == nil {
		err = r.checkUnchanged(change.Before, dir)
	}
	if err == nil {
		tried = true
		err = putInPlace(dir, temp, base, change.Before.Exists)
	}
	if errors.Is(err, fs.ErrExist) && !change.Before.Exists {
		tried, err = false, changedError(name)
	}
	if err != nil {
		_ = dir.Remove(temp) // it may not be there; what counts is the first failure
		if !tried {
			r.RemoveEmpty(made)
		}
		return tried, r.explainError(err, name)
	}
	return true, r.explainError(syncDir(dir), name)
}

func tempName(tag string) string { return ".regie-" + tag + ".tmp" }

func changedError(name string) error {
	return regie.Errorf(regie.CodeFileChanged, "%s has changed since the write was prepared: read it again", name)
}

// checkUnchanged compares the file with before, and its open directory with the one that the path
// leads to now.
func (r *Root) checkUnchanged(before Content, dir *os.Root) error {
	now, err := r.loadClean(before.Path, int64(len(before.Data)), before.entry)
	switch code := regie.CodeOf(err); {
	case code == regie.CodeFileTooLarge, code == regie.CodeNotAFile, code == regie.CodeReadOnly:
		return changedError(before.Path)
	case err != nil:
		return err
	case now.Path != before.Path, now.Exists != before.Exists, now.Perm != before.Perm,
		now.Secret && !before.Secret, !bytes.Equal(now.Data, before.Data):
		return changedError(before.Path)
	}
	there, _, err := openParent(r.root, before.Path)
	if err != nil {
		return changedError(before.Path)
	}
	defer there.Close()
	held, err := dir.Stat(".")
	if err != nil {
		return err
	}
	if found, err := there.Stat("."); err != nil || !os.SameFile(held, found) {
		return changedError(before.Path)
	}
	return nil
}

// writeTemp writes the new content to a temporary file in the same directory and syncs it to disk.
func writeTemp(dir *os.Root, temp string, change Change) error {
	if err := dir.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if change.Perm.Type() == fs.ModeSymlink {
		target, err := regie.LinkTarget(change.Data)
		if err != nil {
			return err
		}
		return dir.Symlink(target, temp)
	}
	perm := fs.FileMode(0o666) // less the mask
	if change.Before.Exists || change.Perm != 0 {
		perm = 0o600 // until it has its owner
	}
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	switch {
	case !change.Before.Exists:
		giveAway(f, dir)
		if change.Perm != 0 {
			err = f.Chmod(change.Perm.Perm())
		}
	case !change.Before.Link:
		keepOwner(f, change.Before.info)
		err = f.Chmod(cmp.Or(change.Perm.Perm(), change.Before.Perm))
	case change.Perm != 0:
		err = f.Chmod(change.Perm.Perm())
	}
	if err == nil {
		_, err = f.Write(change.Data)
	}
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}

// putInPlace gives the temporary file its name. A new name is made by a link, which never replaces
// anything, where the file system has links.
func putInPlace(dir *os.Root, temp, base string, replace bool) error {
	if !replace {
		err := dir.Link(temp, base)
		switch {
		case err == nil:
			return dir.Remove(temp)
		case errors.Is(err, fs.ErrExist):
			return err
		}
		if _, err := dir.Lstat(base); err == nil {
			return fs.ErrExist
		}
	}
	return dir.Rename(temp, base)
}

// Clear removes the temporary file that a crashed attempt with this tag left in the file's
// directory.
func (r *Root) Clear(resolved, tag string) error {
	dir, _, err := openParent(r.root, resolved)
	if err == nil {
		err = dir.Remove(tempName(tag))
		_ = dir.Close() // nothing was written through it
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return r.explainError(err, resolved)
}

// Missing returns the directories before a resolved path that do not exist, the topmost first.
func (r *Root) Missing(resolved string) ([]string, error) {
	var out []string
	for dir := path.Dir(resolved); dir != "."; dir = path.Dir(dir) {
		_, err := r.root.Lstat(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, r.explainError(err, dir)
		}
		out = append([]string{dir}, out...)
	}
	return out, nil
}

// makeDirs opens a directory by its resolved path, without following links, and makes the missing
// parts with the permissions or, for 0, those of the mask. It returns the directories that it made.
func (r *Root) makeDirs(dir string, perm fs.FileMode) (at *os.Root, made []string, err error) {
	if at, err = r.root.OpenRoot("."); err != nil {
		return nil, nil, err
	}
	done := "."
	for _, part := range splitPath(dir) {
		done = path.Join(done, part)
		err = at.Mkdir(part, cmp.Or(perm, 0o777)) // less the mask
		switch {
		case err == nil:
			made = append(made, done)
			if perm != 0 {
				err = at.Chmod(part, perm)
			}
			err = errors.Join(err, syncDir(at))
		case errors.Is(err, fs.ErrExist):
			err = nil
		}
		var next *os.Root
		if err == nil {
			ours := len(made) > 0 && made[len(made)-1] == done
			if next, err = stepDown(at, part); err == nil && ours {
				giveDirAway(next, at)
			}
		}
		_ = at.Close() // directories are not written through it
		if err != nil {
			r.RemoveEmpty(made)
			if errors.Is(err, errSwapped) {
				err = changedError(dir)
			}
			return nil, nil, err
		}
		at = next
	}
	return at, made, nil
}

// syncDir makes the names in a directory safe. Some file systems cannot, and need not.
func syncDir(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
