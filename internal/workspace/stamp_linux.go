package workspace

import (
	"errors"

	"golang.org/x/sys/unix"
)

func stampOf(stat *unix.Stat_t) Stamp {
	return Stamp{Size: stat.Size, Mtime: stat.Mtim.Nano(), Ctime: stat.Ctim.Nano(), Ino: stat.Ino, Dev: stat.Dev}
}

// lookAt describes an entry of a directory, of a link the link itself.
func lookAt(dir int, name string) (found, error) {
	var stat unix.Statx_t
	err := unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &stat)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // an old kernel, or a filter of system calls
		return statAt(dir, name)
	}
	out := found{mode: uint32(stat.Mode), links: uint64(stat.Nlink), owner: stat.Uid, stamp: Stamp{
		Size: int64(stat.Size), Mtime: nanos(stat.Mtime), Ctime: nanos(stat.Ctime), Ino: stat.Ino,
		Dev: unix.Mkdev(stat.Dev_major, stat.Dev_minor),
	}}
	if stat.Mask&unix.STATX_BTIME != 0 {
		out.born = nanos(stat.Btime)
	}
	return out, err
}

func nanos(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }
