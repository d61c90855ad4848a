package workspace

import (
	"errors"

	"golang.org/x/sys/unix"
)

// lookAt describes an entry of a directory, of a link the link itself.
func lookAt(dir int, name string) (SurveyEntry, error) {
	var stat unix.Statx_t
	err := unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &stat)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // an old kernel, or a filter of system calls
		return statAt(dir, name)
	}
	return SurveyEntry{
		Mode: modeOf(uint32(stat.Mode)), Born: toNanos(stat.Btime),
		Stamp: Stamp{
			Size: int64(stat.Size), Mtime: toNanos(stat.Mtime), Ctime: toNanos(stat.Ctime), Ino: stat.Ino,
			Dev: unix.Mkdev(stat.Dev_major, stat.Dev_minor),
		},
	}, err
}

func toNanos(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// systemMagic lists the virtual file systems. The kernel generates their content; some reads never
// end, others have side effects.
var systemMagic = map[uint32]bool{
	unix.PROC_SUPER_MAGIC: true, unix.SYSFS_MAGIC: true, unix.CGROUP_SUPER_MAGIC: true, unix.CGROUP2_SUPER_MAGIC: true,
	unix.DEBUGFS_MAGIC: true, unix.TRACEFS_MAGIC: true, unix.SECURITYFS_MAGIC: true, unix.SELINUX_MAGIC: true,
	unix.SMACK_MAGIC: true, unix.BPF_FS_MAGIC: true, unix.PSTOREFS_MAGIC: true, unix.EFIVARFS_MAGIC: true,
	unix.DEVPTS_SUPER_MAGIC: true, unix.BINFMTFS_MAGIC: true, unix.NSFS_MAGIC: true, unix.RDTGROUP_SUPER_MAGIC: true,
	unix.XENFS_SUPER_MAGIC: true,
	// configfs, fusectl, mqueue
	unix.OPENPROM_SUPER_MAGIC: true, unix.USBDEVICE_SUPER_MAGIC: true, 0x62656570: true, 0x65735543: true,
	0x19800202: true,
}

// isSystem reports whether the directory lies in such a file system.
func (h handle) isSystem() bool {
	var stat unix.Statfs_t
	return unix.Fstatfs(int(h.f.Fd()), &stat) == nil && systemMagic[uint32(stat.Type)]
}
