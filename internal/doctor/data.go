package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/regie-run/regie"
)

// checkDataDir looks at the data directory: is it there, who may enter it, and can it be written.
func (x *exam) checkDataDir(context.Context) {
	dir := x.Config.DataDir
	if dir == "" {
		x.addFailure("directory", "the data directory cannot be determined").
			addFix("set HOME, or name a directory of yours: export REGIE_DATA_DIR=/path/to/it")
		return
	}
	at := nearestDir(dir)
	info, err := os.Stat(at)
	switch {
	case err != nil || !info.IsDir():
		f := x.addFailure("directory", "%s is not a directory", at).setSubject(dir).setCode(regie.CodeBadRequest)
		if at == dir && info != nil && info.Mode().IsRegular() { // a device or a pipe is used by others
			f.addCommand("mv " + Quote(dir) + " " + Quote(dir+".old"))
		}
		f.adviseDataDir()
		return
	case unix.Access(at, unix.W_OK|unix.X_OK) != nil:
		x.addFailure("writable", "%s cannot be written: %s", at,
			systemReason(unix.Access(at, unix.W_OK|unix.X_OK))).setSubject(dir).
			setCode(regie.CodeNoPermission).adviseDataDir()
	}
	if x.usable, x.present = at, at == dir; !x.present {
		x.addFine("directory", "%s does not exist yet: the first run creates it", dir).setSubject(dir)
		return
	}
	x.addFine("directory", "%s (from %s)", dir, x.Config.Origin["data_dir"]).setSubject(dir)
	mode := formatMode(info.Mode().Perm())
	switch {
	case info.Mode().Perm()&0o022 != 0:
		x.addFailure("private", "%s can be written by others (mode %s)", dir,
			mode).setSubject(dir).addCommand("chmod 700 " + Quote(dir))
	case info.Mode().Perm()&0o077 != 0:
		x.addWarning("private", "others can read %s (mode %s)", dir,
			mode).setSubject(dir).addCommand("chmod 700 " + Quote(dir))
	default:
		x.addFine("private", "you alone can enter it (mode %s)", mode)
	}
	for _, name := range []string{"regie.db", "audit.key", "engine.lock"} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
			x.addFailure("file", "%s can be read by others (mode %s)", path,
				formatMode(info.Mode().Perm())).setSubject(path).addCommand("chmod 600 " + Quote(path))
		}
	}
}

// systemReason returns the system's word alone, without what was tried.
func systemReason(err error) string {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	return err.Error()
}

func formatMode(mode fs.FileMode) string { return "0" + strconv.FormatUint(uint64(mode), 8) }

// Bounds of the free space, in bytes.
const (
	spaceNeeded = 64 << 20
	spaceWanted = 1 << 30
)

// checkDisk looks at the disk of the data directory.
func (x *exam) checkDisk(context.Context) {
	if x.usable == "" || unix.Access(x.usable, unix.W_OK|unix.X_OK) != nil {
		return
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(x.usable, &stat); err == nil {
		x.judgeSpace(x.usable, uint64(stat.Bavail)*uint64(stat.Bsize)) //nolint:unconvert // other systems have other types
		x.fileSystem(x.usable, kindOf(&stat))
	}
}

// judgeSpace judges the free bytes.
func (x *exam) judgeSpace(dir string, free uint64) {
	switch {
	case free < spaceNeeded:
		x.addFailure("space", "only %s are free on the disk of %s", formatSize(free), dir).setCode(regie.CodeDiskFull).
			addFix("free some space there; what takes most: du -xh %s | sort -h | tail", Quote(dir))
	case free < spaceWanted:
		x.addWarning("space", "%s are free on the disk of %s", formatSize(free), dir).
			addFix("free some space there; what takes most: du -xh %s | sort -h | tail", Quote(dir))
	default:
		x.addFine("space", "%s are free", formatSize(free))
	}
}

// formatSize writes bytes for people.
func formatSize(n uint64) string {
	for _, unit := range []struct {
		bytes uint64
		name  string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes {
			return strings.TrimSuffix(strconv.FormatFloat(float64(n)/float64(unit.bytes), 'f', 1, 64), ".0") + " " +
				unit.name
		}
	}
	return strconv.FormatUint(n, 10) + " B"
}

// fileSystem judges the file system of the directory; kind is empty for an ordinary one.
func (x *exam) fileSystem(dir, kind string) {
	switch kind {
	case "":
	case "tmpfs", "overlay":
		x.addWarning("filesystem", "%s is in memory or in a container's own layer (%s): it disappears with a restart or with the container",
			dir, kind).adviseDataDir()
	default:
		x.addFailure("filesystem",
			"%s is on a network file system (%s): its locks are unreliable, and two engines could write at once",
			dir, kind).setCode(regie.CodeReadOnly).adviseDataDir()
	}
}
