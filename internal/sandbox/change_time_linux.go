package sandbox

import (
	"io/fs"
	"syscall"
)

// changedAt returns when a file's inode changed last, in nanoseconds: unlike its time of
// modification, no command sets it.
func changedAt(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ctim.Nano()
	}
	return 0
}
