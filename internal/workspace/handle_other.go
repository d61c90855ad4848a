//go:build !unix

package workspace

import (
	"io"
	"io/fs"
	"os"
)

// handle is an open directory of a walk.
type handle struct {
	at *os.Root
	f  *os.File
}

func newHandle(at *os.Root) (handle, error) {
	own, err := at.OpenRoot(".")
	if err != nil {
		return handle{}, err
	}
	f, err := own.Open(".")
	if err != nil {
		_ = own.Close() // nothing was written through it
	}
	return handle{own, f}, err
}

// list returns so many entries at most, in no order.
func (h handle) list(most int) ([]fs.DirEntry, error) { return h.f.ReadDir(most) }

func (h handle) close() { _, _ = h.f.Close(), h.at.Close() } // they were only read

// enter opens a directory in this one.
func (h handle) enter(name string) (handle, error) {
	next, err := step(h.at, name)
	if err != nil {
		return handle{}, err
	}
	defer func() { _ = next.Close() }() // the handle has its own
	return newHandle(next)
}

// stamp describes a regular file in this directory.
func (h handle) stamp(name string) (Stamp, error) {
	info, err := h.at.Lstat(name)
	if err != nil {
		return Stamp{}, err
	}
	if !info.Mode().IsRegular() {
		return Stamp{}, errSwapped
	}
	return Stamp{Size: info.Size(), Mtime: info.ModTime().UnixNano()}, nil
}

// open opens a regular file in this directory, and tells its size.
func (h handle) open(name string) (io.ReadCloser, int64, error) {
	seen, err := h.at.Lstat(name)
	if err != nil || !seen.Mode().IsRegular() {
		return nil, 0, errSwapped
	}
	f, info, err := openSeen(h.at, name, seen)
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// look describes an entry of this directory, of a link the link itself, without opening it.
func (h handle) look(name string) (SurveyEntry, error) {
	info, err := h.at.Lstat(name)
	if err != nil {
		return SurveyEntry{}, err
	}
	return SurveyEntry{
		Mode: info.Mode().Type() | info.Mode().Perm(), Links: 1,
		Stamp: Stamp{Size: info.Size(), Mtime: info.ModTime().UnixNano()},
	}, nil
}

// readlink returns what a link of this directory says.
func (h handle) readlink(name string) (string, error) { return h.at.Readlink(name) }

// file opens a regular file of this directory.
func (h handle) file(name string) (*os.File, error) {
	seen, err := h.at.Lstat(name)
	if err != nil || !seen.Mode().IsRegular() {
		return nil, errSwapped
	}
	f, _, err := openSeen(h.at, name, seen)
	return f, err
}
