package doctor

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// trySync writes a page and has it brought to the disk, in a file that has no name and is gone when
// it is closed.
func trySync(dir string) (time.Duration, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) ||
		errors.Is(err, unix.ENOENT) {
		return 0, errCannotTry
	}
	if err != nil {
		return 0, err
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	if _, err := f.Write(make([]byte, 4096)); err != nil {
		return 0, err
	}
	start := time.Now()
	err = f.Sync()
	return time.Since(start), err
}

// kindOf names a file system that SQLite or a restart does not get along with; empty for others.
func kindOf(stat *unix.Statfs_t) string {
	return map[int64]string{
		unix.NFS_SUPER_MAGIC: "nfs", unix.SMB_SUPER_MAGIC: "smb", unix.SMB2_SUPER_MAGIC: "smb",
		unix.CIFS_SUPER_MAGIC: "cifs", unix.AFS_SUPER_MAGIC: "afs", unix.CEPH_SUPER_MAGIC: "ceph",
		unix.V9FS_MAGIC: "9p", unix.OCFS2_SUPER_MAGIC: "ocfs2", unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "tmpfs",
		unix.OVERLAYFS_SUPER_MAGIC: "overlay",
	}[int64(stat.Type)] //nolint:unconvert // other machines have other types
}
