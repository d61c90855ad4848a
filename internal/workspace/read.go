package workspace

import (
	"io/fs"
	"os"
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
	err = r.withTarget(name, func(t target, clean string) error {
		if strings.HasSuffix(name, "/") {
			return regie.Errorf(regie.CodeNotAFile, "%s names a directory: name a file", name)
		}
		if err := mayRead(t.found, clean); err != nil && (granted == "" || granted != t.path) {
			return err
		}
		f, info, err = r.openResolved(t.path, clean)
		return err
	})
	return f, info, err
}

// withTarget calls do with the resolved target of a path. It retries while the path changes.
func (r *Root) withTarget(name string, do func(t target, clean string) error) error {
	clean, err := r.Clean(name)
	if err != nil {
		return err
	}
	return r.retryResolved(clean, true, func(t target) error { return do(t, clean) })
}

// Place is where a path leads.
type Place struct {
	Path   string // without links; its last elements need not exist
	Secret bool   // it may hold a secret, or a link on the way to it goes through what may
}

// Place says where a path leads, links followed. It opens nothing, and returns the codes of a path
// that leads out or that nothing can have.
func (r *Root) Place(name string) (p Place, err error) {
	err = r.withTarget(name, func(t target, _ string) error {
		p = Place{Path: t.path, Secret: t.found == Secret}
		return nil
	})
	return p, err
}

// openResolved opens a regular file by its resolved path. It returns errSwapped for a link.
func (r *Root) openResolved(resolved, name string) (*os.File, fs.FileInfo, error) {
	dir, base, err := openParent(r.root, resolved)
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	seen, err := dir.Lstat(base)
	if err == nil && seen.Mode()&fs.ModeSymlink == 0 {
		err = requireRegular(seen, name)
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
	return h.openFile(name)
}

// requireRegular refuses everything but regular files.
func requireRegular(info fs.FileInfo, name string) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return regie.Errorf(regie.CodeNotAFile, "%s is a directory", name)
	default:
		return regie.Errorf(regie.CodeSpecialFile, "%s is not a regular file (%s)", name, kindName(mode))
	}
}

func kindName(mode fs.FileMode) string {
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

// openDir opens a directory for a walk, links in its path followed unless plain refuses them. It
// returns the codes of OpenFile, and CodeNotADirectory.
func (r *Root) openDir(name string, plain bool) (l level, err error) {
	err = r.withTarget(name, func(t target, clean string) error {
		if plain && t.path != clean {
			return throughLink(clean)
		}
		if err := mayList(t.found, clean); err != nil {
			return err
		}
		at, _, err := openParent(r.root, t.path+"/")
		if err != nil {
			return err
		}
		defer func() { _ = at.Close() }() // the handle has its own
		h, err := newHandle(at)
		l = level{root: r, in: newOpened(h, t.path)}
		return err
	})
	return l, err
}

func throughLink(clean string) error {
	return regie.Errorf(regie.CodePathOutside, "%s goes through a link, which is not followed here", clean)
}
