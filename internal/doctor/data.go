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

// data looks at the data directory: is it there, who may enter it, and can it be written.
func (x *exam) data(context.Context) {
	dir := x.Config.DataDir
	if dir == "" {
		x.fail("directory", "it cannot be told where the data directory is").
			fix("set HOME, or name a directory of yours: export REGIE_DATA_DIR=/path/to/it")
		return
	}
	at := nearest(dir)
	info, err := os.Stat(at)
	switch {
	case err != nil || !info.IsDir():
		f := x.fail("directory", "%s is not a directory", at).about(dir).code(regie.CodeBadRequest)
		if at == dir && info != nil && info.Mode().IsRegular() { // a device or a pipe is used by others
			f.run("mv " + Quote(dir) + " " + Quote(dir+".old"))
		}
		f.elsewhere()
		return
	case unix.Access(at, unix.W_OK|unix.X_OK) != nil:
		x.fail("writable", "%s cannot be written: %s", at, reason(unix.Access(at, unix.W_OK|unix.X_OK))).about(dir).
			code(regie.CodeNoPermission).elsewhere()
	}
	if x.usable, x.present = at, at == dir; !x.present {
		x.fine("directory", "%s is not there yet: the first run makes it", dir).about(dir)
		return
	}
	x.fine("directory", "%s (from %s)", dir, x.Config.Origin["data_dir"]).about(dir)
	mode := octal(info.Mode().Perm())
	switch {
	case info.Mode().Perm()&0o022 != 0:
		x.fail("private", "%s can be written by others (mode %s)", dir, mode).about(dir).run("chmod 700 " + Quote(dir))
	case info.Mode().Perm()&0o077 != 0:
		x.warn("private", "others can look into %s (mode %s)", dir, mode).about(dir).run("chmod 700 " + Quote(dir))
	default:
		x.fine("private", "you alone can enter it (mode %s)", mode)
	}
	for _, name := range []string{"regie.db", "audit.key", "engine.lock"} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
			x.fail("file", "%s can be read by others (mode %s)", path,
				octal(info.Mode().Perm())).about(path).run("chmod 600 " + Quote(path))
		}
	}
}

// reason is the system's word alone, without what was tried.
func reason(err error) string {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	return err.Error()
}

func octal(mode fs.FileMode) string { return "0" + strconv.FormatUint(uint64(mode), 8) }

// Bounds of the free space, in bytes.
const (
	spaceNeeded = 64 << 20
	spaceWanted = 1 << 30
)

// disk looks at the disk of the data directory.
func (x *exam) disk(context.Context) {
	if x.usable == "" || unix.Access(x.usable, unix.W_OK|unix.X_OK) != nil {
		return
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(x.usable, &stat); err == nil {
		x.space(x.usable, uint64(stat.Bavail)*uint64(stat.Bsize)) //nolint:unconvert // other systems have other types
		x.fileSystem(x.usable, kindOf(&stat))
	}
}

// space judges the free bytes.
func (x *exam) space(dir string, free uint64) {
	switch {
	case free < spaceNeeded:
		x.fail("space", "only %s are free on the disk of %s", size(free), dir).code(regie.CodeDiskFull).
			fix("free some space there; what takes most: du -xh %s | sort -h | tail", Quote(dir))
	case free < spaceWanted:
		x.warn("space", "%s are free on the disk of %s", size(free), dir).
			fix("free some space there; what takes most: du -xh %s | sort -h | tail", Quote(dir))
	default:
		x.fine("space", "%s are free", size(free))
	}
}

// size writes bytes for people.
func size(n uint64) string {
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
		x.warn("filesystem", "%s lies in memory or in a container's own layer (%s): it goes with a restart or with the container",
			dir, kind).elsewhere()
	default:
		x.fail("filesystem",
			"%s lies on a network file system (%s): its locks cannot be relied on, two engines could write at once",
			dir, kind).code(regie.CodeReadOnly).elsewhere()
	}
}
