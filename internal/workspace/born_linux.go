package workspace

import "golang.org/x/sys/unix"

// born is when an open directory was made, in nanoseconds; 0 where its file system does not say.
func born(fd uintptr) int64 {
	var stat unix.Statx_t
	if unix.Statx(int(fd), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &stat) != nil || stat.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return stat.Btime.Sec*1e9 + int64(stat.Btime.Nsec)
}
