package doctor

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/snapshot"
)

// data looks at the data directory: is it there, whose is it, and can it be written.
func (x *exam) data(context.Context) {
	dir := x.Config.DataDir
	if dir == "" {
		x.fail("directory", "it cannot be told where the data directory is").
			fix("set HOME, or name a directory of yours: export REGIE_DATA_DIR=/path/to/it")
		return
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		x.absent(dir)
		return
	case err != nil:
		f := x.fail("directory", "%s cannot be looked at: %s", dir, reason(err)).about(dir)
		f.Code = regie.CodeNoPermission
		elsewhere(f)
		return
	case !info.IsDir():
		f := x.fail("directory", "%s is not a directory", dir).about(dir)
		f.Code = regie.CodeBadRequest
		if !info.Mode().IsRegular() { // a device, a pipe: others use it
			f.fix("name another directory: export REGIE_DATA_DIR=/path/to/it")
			return
		}
		f.run("mv " + quote(dir) + " " + quote(dir+".old"))
		elsewhere(f)
		return
	}
	x.usable, x.present = dir, true
	if origin := x.Config.Origin["data_dir"]; origin == "" || origin == "default" {
		x.fine("directory", "%s (the usual place)", dir).about(dir)
	} else {
		x.fine("directory", "%s (from %s)", dir, origin).about(dir)
	}
	mine := x.owner(dir, info)
	x.private(dir, info)
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		f := x.fail("writable", "%s cannot be written: %s", dir, reason(err)).about(dir)
		f.Code = regie.CodeNoPermission
		switch {
		case errors.Is(err, syscall.EROFS):
			f.Code = regie.CodeReadOnly
		case mine:
			f.run("chmod u+rwx " + quote(dir))
		}
		elsewhere(f)
	}
	for _, name := range []string{"regie.db", "audit.key", "engine.lock"} {
		x.within(filepath.Join(dir, name))
	}
	x.snapshots(dir)
}

// snapshots says what is kept of workspaces so that what commands change can be undone.
func (x *exam) snapshots(dir string) {
	dir = filepath.Join(dir, "snapshots")
	if bytes, workspaces := snapshot.Usage(dir); workspaces > 0 {
		x.fine("snapshots", "%s of %s workspaces are kept, so that what commands change can be undone",
			size(uint64(bytes)), count(workspaces)).about(dir)
	}
}

func elsewhere(f *Finding) {
	f.fix("or name another directory: export REGIE_DATA_DIR=/path/to/it")
}

// reason is the system's word alone, without what was tried.
func reason(err error) string {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	return err.Error()
}

// absent looks whether a directory that is not there can be made.
func (x *exam) absent(dir string) {
	if _, err := os.Lstat(dir); err == nil {
		f := x.fail("directory", "%s is a link to nothing", dir).about(dir).run("rm " + quote(dir))
		f.Code = regie.CodeBadRequest
		elsewhere(f)
		return
	}
	at := nearest(dir)
	info, err := os.Stat(at)
	switch {
	case err != nil || !info.IsDir():
		f := x.fail("directory", "%s cannot be made: %s is not a directory", dir, at).about(dir)
		f.Code = regie.CodeBadRequest
		f.fix("name another directory: export REGIE_DATA_DIR=/path/to/it")
		return
	case unix.Access(at, unix.W_OK|unix.X_OK) != nil:
		err := unix.Access(at, unix.W_OK|unix.X_OK)
		f := x.fail("directory", "%s cannot be made: %s cannot be written (%s)", dir, at, reason(err)).about(dir)
		f.Code = regie.CodeNoPermission
		f.fix("name a directory that you may write: export REGIE_DATA_DIR=/path/to/it")
		return
	}
	x.usable = at
	x.fine("directory", "%s is not there yet: the first run makes it", dir).about(dir)
}

// owner compares the directory's owner with who asks.
func (x *exam) owner(dir string, info fs.FileInfo) (mine bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Geteuid() {
		return true
	}
	f := x.fail("owner", "%s belongs to the user %s, and you are %s", dir, strconv.FormatUint(uint64(stat.Uid), 10),
		strconv.Itoa(os.Geteuid())).about(dir)
	f.Code = regie.CodeNoPermission
	f.run("sudo chown -R " + strconv.Itoa(os.Geteuid()) + " " + quote(dir))
	elsewhere(f)
	return false
}

// private looks at who else may go into the directory.
func (x *exam) private(dir string, info fs.FileInfo) {
	switch mode := info.Mode().Perm(); {
	case mode&0o022 != 0:
		x.fail("private", "%s can be written by others (mode %s)", dir,
			octal(mode)).about(dir).run("chmod 700 " + quote(dir))
	case mode&0o077 != 0:
		x.warn("private", "others can look into %s (mode %s)", dir,
			octal(mode)).about(dir).run("chmod 700 " + quote(dir))
	default:
		x.fine("private", "you alone can enter it (mode %s)", octal(mode))
	}
}

func octal(mode fs.FileMode) string { return "0" + strconv.FormatUint(uint64(mode), 8) }

// within looks at a file of the directory, where it is there.
func (x *exam) within(path string) {
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	foreign := ok && int(stat.Uid) != os.Geteuid()
	switch {
	case info.Mode().Perm()&0o077 != 0 && !foreign:
		x.fail("file", "%s can be read by others (mode %s)", path,
			octal(info.Mode().Perm())).about(path).run("chmod 600 " + quote(path))
	case foreign && unix.Access(path, unix.R_OK|unix.W_OK) != nil:
		f := x.fail("file", "%s belongs to another user, and you may not use it",
			path).about(path).run("sudo chown " + strconv.Itoa(os.Geteuid()) + " " + quote(path))
		f.Code = regie.CodeNoPermission
	case unix.Access(path, unix.R_OK|unix.W_OK) != nil:
		f := x.fail("file", "%s cannot be read and written by you (mode %s)", path,
			octal(info.Mode().Perm())).about(path).run("chmod 600 " + quote(path))
		f.Code = regie.CodeNoPermission
	}
}

// Bounds of the free space, in bytes, and of the time that a synced write may take.
const (
	spaceNeeded = 64 << 20
	spaceWanted = 1 << 30
	slowSync    = 100 * time.Millisecond
)

// disk looks at the disk of the data directory.
func (x *exam) disk(context.Context) {
	if x.usable == "" {
		return
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(x.usable, &stat); err == nil {
		files, free := uint64(stat.Files), uint64(stat.Ffree) //nolint:unconvert // other systems have other types
		x.space(x.usable, saturated(stat.Bavail, uint64(stat.Bsize)), files, free)
	}
	if m, ok := mountOf(x.usable); ok {
		x.fileSystem(x.usable, m)
	}
	took, err := trySync(x.usable)
	switch {
	case errors.Is(err, errCannotTry):
		x.fine("sync", "not tried: this system has no files without a name")
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		f := x.fail("sync", "nothing more can be written on the disk of %s: %s", x.usable, reason(err))
		f.Code = regie.CodeDiskFull
		f.fix("free some space there, or name another directory: export REGIE_DATA_DIR=/path/to/it")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS): // said of the directory
		if x.present && unix.Access(x.usable, unix.W_OK|unix.X_OK) != nil {
			return
		}
		f := x.fail("sync", "no file can be made in %s: %s", x.usable, reason(err))
		f.Code = regie.CodeNoPermission
		f.fix("name a directory that you may write: export REGIE_DATA_DIR=/path/to/it")
	case err != nil:
		f := x.fail("sync", "the disk of %s does not keep what is written (fsync: %s)", x.usable, reason(err))
		f.Code = regie.CodeReadOnly
		f.fix("name a directory on a local disk: export REGIE_DATA_DIR=/path/to/it")
	case took > slowSync:
		x.warn("sync", "the disk keeps what is written, but takes %s: each step of a run waits so long",
			short(took)).fix("a data directory on a faster disk: export REGIE_DATA_DIR=/path/to/it")
	default:
		x.fine("sync", "the disk keeps what is written (fsync in %s)", short(took))
	}
}

// saturated multiplies without running over.
func saturated[A, B uint64 | int64](a A, b B) uint64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	if uint64(a) > math.MaxUint64/uint64(b) {
		return math.MaxUint64
	}
	return uint64(a) * uint64(b)
}

// space judges what is free.
func (x *exam) space(dir string, free, files, freeFiles uint64) {
	switch {
	case free < spaceNeeded:
		f := x.fail("space", "only %s are free on the disk of %s", size(free), dir)
		f.Code = regie.CodeDiskFull
		f.fix("free some space there; what takes most: du -xh %s | sort -h | tail", quote(dir))
	case files > 0 && freeFiles < 100:
		f := x.fail("space", "the disk of %s takes no more files, whatever their size", dir)
		f.Code = regie.CodeDiskFull
		f.fix("remove files there that nobody needs; what is used: df -i %s", quote(dir))
	case free < spaceWanted:
		x.warn("space", "%s are free on the disk of %s", size(free),
			dir).fix("free some space before it is full; what takes most: du -xh %s | sort -h | tail", quote(dir))
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

func count(n int) string { return strconv.Itoa(n) }

// fileSystem judges what the directory lies on.
func (x *exam) fileSystem(dir string, m mount) {
	switch {
	case network(m.kind):
		f := x.fail("filesystem",
			"%s lies on a network file system (%s, %s): its locks cannot be relied on, two engines could write at once",
			dir, m.kind, m.source)
		f.Code = regie.CodeReadOnly
		f.fix("name a directory on a local disk: export REGIE_DATA_DIR=/path/to/it")
	case m.kind == "tmpfs" || m.kind == "ramfs":
		x.warn("filesystem", "%s lies in memory (%s): at a restart of the machine all of it is gone", dir,
			m.kind).fix("name a directory on a disk: export REGIE_DATA_DIR=/path/to/it")
	case m.kind == "overlay":
		x.warn("filesystem", "%s lies in a container's own layer: what is there goes with the container",
			dir).fix("mount a volume there")
	default:
		x.fine("filesystem", "a local file system (%s)", m.kind)
	}
}
