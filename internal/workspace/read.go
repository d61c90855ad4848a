package workspace

import (
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/regie-run/regie"
)

// OpenFile opens a regular file for reading (spec 8.2), links followed. It never waits for a FIFO
// or a device. It returns CodeFileNotFound, CodeNotAFile, CodeSpecialFile, CodePathOutside,
// CodePathInvalid, CodeNoPermission, or CodePathProtected for a secret. The caller closes the file.
func (r *Root) OpenFile(name string) (f *os.File, info fs.FileInfo, err error) {
	return r.OpenGranted(name, "")
}

// OpenGranted is OpenFile that also opens one file which may hold a secret: that to which granted,
// a path without links, is a person's word.
func (r *Root) OpenGranted(name, granted string) (f *os.File, info fs.FileInfo, err error) {
	err = r.at(name, func(t target, clean string) error {
		if strings.HasSuffix(name, "/") {
			return regie.Errorf(regie.CodeNotAFile, "%s names a directory: name a file", name)
		}
		if err := mayRead(t.found, clean); err != nil && (granted == "" || granted != t.path) {
			return err
		}
		f, info, err = r.open(t.path, clean)
		return err
	})
	return f, info, err
}

// at does something with what a path means, links followed. It repeats that while the path is
// exchanged.
func (r *Root) at(name string, do func(t target, clean string) error) error {
	clean, err := r.Clean(name)
	if err != nil {
		return err
	}
	return r.retry(clean, true, func(t target) error { return do(t, clean) })
}

// Place is where a path leads.
type Place struct {
	Path   string // without links; its last elements need not exist
	Secret bool   // it may hold a secret, or a link on the way to it goes through what may
}

// Place says where a path leads, links followed. It opens nothing, and returns the codes of a path
// that leads out or that nothing can have.
func (r *Root) Place(name string) (p Place, err error) {
	err = r.at(name, func(t target, _ string) error {
		p = Place{Path: t.path, Secret: t.found == Secret}
		return nil
	})
	return p, err
}

// open opens a regular file by its resolved path. A link that stands there is errSwapped.
func (r *Root) open(resolved, name string) (*os.File, fs.FileInfo, error) {
	dir, base, err := r.parent(resolved)
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	seen, err := dir.Lstat(base)
	if err == nil && seen.Mode()&fs.ModeSymlink == 0 {
		err = regular(seen, name)
	}
	if err != nil {
		return nil, nil, err
	}
	return openRegular(dir, base)
}

// openRegular opens a regular file of a directory; anything else is errSwapped.
func openRegular(dir *os.Root, name string) (*os.File, fs.FileInfo, error) {
	h, err := newHandle(dir)
	if err != nil {
		return nil, nil, err
	}
	defer h.close()
	return h.open(name)
}

// regular refuses what is not a file with content.
func regular(info fs.FileInfo, name string) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return regie.Errorf(regie.CodeNotAFile, "%s is a directory", name)
	default:
		return regie.Errorf(regie.CodeSpecialFile, "%s is not a regular file (%s)", name, kind(mode))
	}
}

func kind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "FIFO"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	default:
		return "special"
	}
}

// Dir is an open directory of a workspace (spec 8.2). It is used by one goroutine and closed by its
// caller.
type Dir struct {
	// Path is the directory's path without links, "." for the root.
	Path string
	root *Root
	handle
}

// OpenDir opens a directory, links in its path followed. It returns the codes of OpenFile, and
// CodeNotADirectory.
func (r *Root) OpenDir(name string) (*Dir, error) { return r.openDir(name, false) }

// openDir is OpenDir that refuses a path with a link in it where plain says so.
func (r *Root) openDir(name string, plain bool) (d *Dir, err error) {
	err = r.at(name, func(t target, clean string) error {
		if plain && t.path != clean {
			return throughLink(clean)
		}
		if err := mayList(t.found, clean); err != nil {
			return err
		}
		at, _, err := r.parent(t.path + "/")
		if err != nil {
			return err
		}
		defer func() { _ = at.Close() }() // the handle has its own
		h, err := newHandle(at)
		d = &Dir{t.path, r, h}
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func throughLink(clean string) error {
	return regie.Errorf(regie.CodePathOutside, "%s goes through a link, which is not followed here", clean)
}

// Next returns up to n further entries in no order, and io.EOF after the last one.
func (d *Dir) Next(n int) ([]fs.DirEntry, error) { return d.f.ReadDir(n) }

// Look describes an entry; of a link the link itself.
func (d *Dir) Look(entry string) (SurveyEntry, error) { return d.look(entry) }

// Readlink returns what a link says, wherever that is.
func (d *Dir) Readlink(entry string) (string, error) { return d.readlink(entry) }

// Enter opens a directory in this one. It follows no link: one that has taken the directory's place
// is CodeFileChanged. A directory of secrets is CodePathProtected.
func (d *Dir) Enter(entry string) (*Dir, error) {
	below := path.Join(d.Path, entry)
	if err := mayList(d.root.protection(below, entry), below); err != nil {
		return nil, err
	}
	h, err := d.enter(entry)
	if err != nil {
		if e, failed := d.look(entry); failed == nil && e.Mode.Type() == fs.ModeSymlink {
			return nil, exchanged(below)
		}
		return nil, d.root.explain(err, below)
	}
	return &Dir{below, d.root, h}, nil
}

// Close lets go of the directory.
func (d *Dir) Close() error { return d.f.Close() }
