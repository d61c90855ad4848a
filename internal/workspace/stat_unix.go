//go:build unix

package workspace

import (
	"io/fs"
	"os"
	"syscall"
)

// links returns how many names a file has.
func links(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink) //nolint:unconvert // it is narrower on other systems
	}
	return 1
}

// keepOwner gives a new file the owner of the one that it will replace, as far as the system allows it: a user who may write
// somebody else's file cannot give a file away.
func keepOwner(f *os.File, like fs.FileInfo) {
	stat, ok := like.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Geteuid() && int(stat.Gid) == os.Getegid() {
		return
	}
	if f.Chown(int(stat.Uid), int(stat.Gid)) != nil {
		_ = f.Chown(-1, int(stat.Gid)) // the group at least
	}
}
