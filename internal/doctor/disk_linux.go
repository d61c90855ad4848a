package doctor

import "golang.org/x/sys/unix"

// kindOf names a file system that SQLite or a restart does not get along with; empty for others.
func kindOf(stat *unix.Statfs_t) string {
	return map[int64]string{
		unix.NFS_SUPER_MAGIC: "nfs", unix.SMB_SUPER_MAGIC: "smb", unix.SMB2_SUPER_MAGIC: "smb",
		unix.CIFS_SUPER_MAGIC: "cifs", unix.AFS_SUPER_MAGIC: "afs", unix.CEPH_SUPER_MAGIC: "ceph",
		unix.V9FS_MAGIC: "9p", unix.OCFS2_SUPER_MAGIC: "ocfs2", unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "tmpfs",
		unix.OVERLAYFS_SUPER_MAGIC: "overlay",
	}[int64(stat.Type)] //nolint:unconvert // other machines have other types
}
