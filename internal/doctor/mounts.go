package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// errCannotTry says that a disk cannot be tried without leaving traces.
var errCannotTry = errors.New("no files without a name")

// mount is a mounted file system.
type mount struct {
	point, kind, source string
}

// mountOf returns what a directory lies on; false where the system does not say.
func mountOf(dir string) (mount, bool) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return mount{}, false
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	return mountAt(string(table), dir)
}

// mountAt looks up a clean, absolute path in a table of mounts as proc(5) describes it: the deepest
// point that the path lies below, and of several at one point the last, which hides the others.
func mountAt(table, dir string) (best mount, found bool) {
	for line := range strings.SplitSeq(table, "\n") {
		before, after, ok := strings.Cut(line, " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(rest) < 2 {
			continue
		}
		point := unescape(fields[4])
		if (dir == point || point == "/" || strings.HasPrefix(dir, point+"/")) && len(point) >= len(best.point) {
			best, found = mount{point: point, kind: rest[0], source: unescape(rest[1])}, true
		}
	}
	return best, found
}

// unescape turns the \040 of the table into what it stands for.
func unescape(field string) string {
	var out strings.Builder
	for i := 0; i < len(field); i++ {
		if field[i] == '\\' && i+3 < len(field) {
			if b, err := strconv.ParseUint(field[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(b))
				i += 3
				continue
			}
		}
		out.WriteByte(field[i])
	}
	return out.String()
}

// network reports whether a kind of file system is another machine's: SQLite's journal needs locks
// and memory that both sides share.
func network(kind string) bool {
	switch kind {
	case "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph",
		"9p", "lustre", "glusterfs", "gpfs", "beegfs", "ncpfs", "coda", "ocfs2",
		"orangefs", "vboxsf", "prl_fs", "drvfs":
		return true
	}
	sub, isFuse := strings.CutPrefix(kind, "fuse.")
	switch sub {
	case "sshfs", "s3fs", "rclone", "glusterfs", "davfs2", "gcsfuse", "goofys", "curlftpfs",
		"ceph", "gvfsd-fuse", "juicefs":
		return isFuse
	}
	return false
}
