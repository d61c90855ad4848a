package snapshot

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncAll makes everything safe that was written to the file system of an open directory.
func syncAll(dir *os.File) error { return unix.Syncfs(int(dir.Fd())) }
