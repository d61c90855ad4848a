package index

import "golang.org/x/sys/unix"

// remote reports whether a directory lies on a file system of which other machines may change files
// without this one's kernel being told.
func remote(dir string) bool {
	var stat unix.Statfs_t
	if unix.Statfs(dir, &stat) != nil {
		return false
	}
	switch uint32(stat.Type) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, 0xff534d42, 0xfe534d42, unix.V9FS_MAGIC, unix.FUSE_SUPER_MAGIC,
		unix.AFS_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC,
		unix.CODA_SUPER_MAGIC, 0x786f4256: // cifs, smb2, VirtualBox
		return true
	}
	return false
}
