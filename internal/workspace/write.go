package workspace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/regie-run/regie"
)

// Content is a file as a tool that changes it sees it.
type Content struct {
	Path   string // resolved: what the name means
	Exists bool
	Data   []byte
	Perm   fs.FileMode
}

// Load reads a file that is to be changed; one that does not exist is empty. It refuses protected paths and files over max bytes
// (CodeFileTooLarge).
func (r *Root) Load(name string, max int64) (Content, error) {
	resolved, err := r.lookup(name)
	if err != nil {
		return Content{}, err
	}
	if strings.HasSuffix(name, "/") {
		return Content{}, regie.Errorf(regie.CodeNotAFile, "%s names a directory: name a file", name)
	}
	if err := checkWritable(resolved, name); err != nil {
		return Content{}, err
	}
	c := Content{Path: resolved, Perm: 0o644}
	f, info, err := r.open(resolved, name)
	if regie.CodeOf(err) == regie.CodeFileNotFound {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	defer f.Close()
	if info.Size() > max {
		return c, regie.Errorf(regie.CodeFileTooLarge, "%s has %d bytes, at most %d can be changed", name, info.Size(), max)
	}
	c.Exists, c.Perm = true, info.Mode().Perm()
	c.Data, err = io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(c.Data)) > max {
		err = regie.Errorf(regie.CodeFileTooLarge, "%s grows while it is being read", name)
	}
	return c, explain(err, name)
}

// Replace puts content in place of a file in one step: whoever looks sees the old file or the new one, also after a power cut. The
// file's directories are made. tag makes the name of the temporary file: a crashed attempt with the same tag is replaced.
//
// unchanged is called at the last moment, when the new content is safe on the disk and only the renaming is left; its error keeps
// everything as it was.
func (r *Root) Replace(resolved string, data []byte, perm fs.FileMode, tag string, unchanged func() error) error {
	if err := checkWritable(resolved, resolved); err != nil {
		return err
	}
	if err := r.mkdirs(path.Dir(resolved)); err != nil {
		return explain(err, resolved)
	}
	dir, base, err := r.parent(resolved)
	if err != nil {
		return err
	}
	defer dir.Close()
	temp := ".regie-" + tag + ".tmp"
	if err := writeTemp(dir, temp, data, perm); err != nil {
		return errors.Join(explain(err, resolved), ignoreMissing(dir.Remove(temp)))
	}
	if err := unchanged(); err != nil {
		return errors.Join(err, ignoreMissing(dir.Remove(temp)))
	}
	if err := dir.Rename(temp, base); err != nil {
		return errors.Join(explain(err, resolved), ignoreMissing(dir.Remove(temp)))
	}
	return explain(syncDir(dir), resolved)
}

func writeTemp(dir *os.Root, temp string, data []byte, perm fs.FileMode) error {
	if err := ignoreMissing(dir.Remove(temp)); err != nil {
		return err
	}
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(data))
	if err == nil {
		err = f.Chmod(perm) // the mask may have taken bits away that the file had
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Clear removes what a crashed attempt with this tag left beside a file.
func (r *Root) Clear(resolved, tag string) error {
	dir, _, err := r.parent(resolved)
	if regie.CodeOf(err) == regie.CodeFileNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return ignoreMissing(dir.Remove(".regie-" + tag + ".tmp"))
}

// mkdirs makes the directories of a resolved path, going through no link.
func (r *Root) mkdirs(dir string) error {
	at, err := r.root.OpenRoot(".")
	if err != nil {
		return err
	}
	for _, part := range strings.Split(dir, "/") {
		if part == "." || part == "" {
			continue
		}
		err := at.Mkdir(part, 0o755)
		made := err == nil
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return errors.Join(err, at.Close())
		}
		if made {
			err = syncDir(at)
		} else {
			err = nil
		}
		var next *os.Root
		if err == nil {
			next, err = step(at, part)
		}
		if err = errors.Join(err, at.Close()); err != nil {
			return err
		}
		at = next
	}
	return at.Close()
}

func syncDir(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
