package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// handle is an open directory of a walk. It opens an entry by name and never follows a link, so a
// swapped entry cannot lead elsewhere.
type handle struct{ f *os.File }

func newHandle(at *os.Root) (handle, error) {
	f, err := at.Open(".")
	return handle{f}, err
}

// listEntries returns so many entries at most, in no order.
func (h handle) listEntries(most int) ([]fs.DirEntry, error) { return h.f.ReadDir(most) }

func (h handle) close() { _ = h.f.Close() } // it was only read

// enterDir opens a directory in this one.
func (h handle) enterDir(name string) (handle, error) {
	f, err := h.openAt(name, unix.O_DIRECTORY)
	return handle{f}, err
}

// openFile opens a regular file of this directory; anything else, and a link, is errSwapped. It
// waits for no FIFO.
func (h handle) openFile(name string) (*os.File, fs.FileInfo, error) {
	f, err := h.openAt(name, unix.O_NONBLOCK|unix.O_NOCTTY)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO):
		return nil, nil, errSwapped
	case err != nil:
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil, errors.Join(errSwapped, err, f.Close())
	}
	return f, info, nil
}

func (h handle) openAt(name string, flags int) (*os.File, error) {
	fd, err := retryInterrupted(func() (int, error) {
		return unix.Openat(int(h.f.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path.Join(h.f.Name(), name)), nil
}

// lookUp describes an entry of this directory, of a link the link itself, without opening it.
func (h handle) lookUp(name string) (SurveyEntry, error) {
	return retryInterrupted(func() (SurveyEntry, error) { return lookAt(int(h.f.Fd()), name) })
}

// statAt returns lookAt in the way that every Unix knows, which does not say when an entry was
// made.
func statAt(dir int, name string) (SurveyEntry, error) {
	var stat unix.Stat_t
	err := unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	//nolint:unconvert // the types differ by system
	return SurveyEntry{Mode: modeOf(uint32(stat.Mode)), Stamp: Stamp{
		Size: stat.Size, Mtime: stat.Mtim.Nano(), Ctime: stat.Ctim.Nano(), Ino: stat.Ino, Dev: uint64(stat.Dev),
	}}, err
}

// modeOf returns a mode of the system as SurveyEntry has it.
func modeOf(mode uint32) fs.FileMode {
	out := fs.FileMode(mode & 0o777)
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return out
	case unix.S_IFDIR:
		return out | fs.ModeDir
	case unix.S_IFLNK:
		return out | fs.ModeSymlink
	default:
		return out | fs.ModeIrregular
	}
}

// readLink returns the target of a link in this directory.
func (h handle) readLink(name string) (string, error) {
	buffer := make([]byte, maxLinkText+1)
	n, err := unix.Readlinkat(int(h.f.Fd()), name, buffer)
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

// retryInterrupted calls the system again where a signal came between.
func retryInterrupted[T any](call func() (T, error)) (out T, err error) {
	for {
		if out, err = call(); !errors.Is(err, unix.EINTR) {
			return out, err
		}
	}
}
