package snapshot

import (
	"os"

	"golang.org/x/sys/unix"
)

// clone makes a new file share the blocks of another one until either is written. It fails where
// the file system cannot.
func clone(to, from *os.File) error { return unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) }

// syncAll makes everything safe that was written to the file system of an open directory.
func syncAll(dir *os.File) error { return unix.Syncfs(int(dir.Fd())) }
