//go:build unix

package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// handle is an open directory of a walk. What it opens is the very entry of that name: no link is
// followed, at any moment, so nothing can be put into a name's place that leads elsewhere.
type handle struct{ f *os.File }

func newHandle(at *os.Root) (handle, error) {
	f, err := at.Open(".")
	return handle{f}, err
}

// list returns so many entries at most, in no order.
func (h handle) list(most int) ([]fs.DirEntry, error) { return h.f.ReadDir(most) }

func (h handle) close() { _ = h.f.Close() } // it was only read

// enter opens a directory in this one.
func (h handle) enter(name string) (handle, error) {
	fd, err := openAt(h.f, name, unix.O_DIRECTORY)
	if err != nil {
		return handle{}, err
	}
	return handle{os.NewFile(uintptr(fd), name)}, nil
}

// stamp describes a regular file in this directory.
func (h handle) stamp(name string) (Stamp, error) {
	var stat unix.Stat_t
	for {
		err := unix.Fstatat(int(h.f.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return Stamp{}, err
		case stat.Mode&unix.S_IFMT != unix.S_IFREG:
			return Stamp{}, errSwapped
		}
		return stampOf(&stat), nil
	}
}

// open opens a regular file in this directory, and tells its size. It waits for no FIFO.
func (h handle) open(name string) (io.ReadCloser, int64, error) {
	fd, err := openAt(h.f, name, unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, 0, err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, 0, errors.Join(errSwapped, err, unix.Close(fd))
	}
	return rawFile(fd), stat.Size, nil
}

// look describes an entry of this directory, of a link the link itself, without opening it.
func (h handle) look(name string) (SurveyEntry, error) {
	var seen found
	for {
		var err error
		if seen, err = lookAt(int(h.f.Fd()), name); errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return SurveyEntry{}, err
		}
		break
	}
	mode := fs.FileMode(seen.mode & 0o777)
	switch seen.mode & unix.S_IFMT {
	case unix.S_IFREG:
		mode |= special(seen.mode)
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	default:
		mode |= fs.ModeIrregular
	}
	return SurveyEntry{Mode: mode, Links: seen.links, Owner: seen.owner, Stamp: seen.stamp, Born: seen.born}, nil
}

// special are the system's set-user-ID, set-group-ID and sticky bits.
func special(mode uint32) (out fs.FileMode) {
	for bit, is := range map[uint32]fs.FileMode{
		unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid,
		unix.S_ISVTX: fs.ModeSticky,
	} {
		if mode&bit != 0 {
			out |= is
		}
	}
	return out
}

// found is what the system says of an entry.
type found struct {
	mode  uint32
	links uint64
	owner uint32
	stamp Stamp
	born  int64
}

// statAt asks in the way that every Unix knows, which does not say when an entry was made.
func statAt(dir int, name string) (found, error) {
	var stat unix.Stat_t
	err := unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	return found{mode: uint32(stat.Mode), links: uint64(stat.Nlink), owner: stat.Uid, stamp: stampOf(&stat)}, //nolint:unconvert // they differ by system
		err
}

// readlink returns what a link of this directory says.
func (h handle) readlink(name string) (string, error) {
	buffer := make([]byte, maxLinkText+1)
	n, err := unix.Readlinkat(int(h.f.Fd()), name, buffer)
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

// file opens a regular file of this directory. It waits for no FIFO.
func (h handle) file(name string) (*os.File, error) {
	fd, err := openAt(h.f, name, unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.Join(errSwapped, err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

func openAt(dir *os.File, name string, flags int) (fd int, err error) {
	for {
		fd, err = unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// rawFile is a regular file that is read from its beginning to its end, without what package os
// does for files that are waited for.
type rawFile int

// Read implements io.Reader.
func (f rawFile) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(f), p)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// Close implements io.Closer.
func (f rawFile) Close() error { return unix.Close(int(f)) }
