package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// statOf returns the system's data of a file.
func statOf(info fs.FileInfo) syscall.Stat_t {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return *stat
	}
	return syscall.Stat_t{}
}

// giveAway gives a new file to the owner of its directory, if the process is root: otherwise the
// workspace's owner could not change the file. The earlier owner of a file that an undo restores is
// not known.
func giveAway(f *os.File, dir *os.Root) {
	if os.Geteuid() != 0 {
		return
	}
	info, err := dir.Stat(".")
	if err != nil {
		return
	}
	if stat := statOf(info); stat.Uid != 0 {
		_ = f.Chown(int(stat.Uid), int(stat.Gid)) // it stays ours where the file system has no owners
	}
}

// giveDirAway is giveAway for a new directory. It skips a directory that another process has put in
// its place: that one has content or another owner.
func giveDirAway(made, dir *os.Root) {
	if os.Geteuid() != 0 {
		return
	}
	f, err := made.Open(".")
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }() // nothing was written through it
	if _, err := f.Readdirnames(1); errors.Is(err, io.EOF) {
		giveAway(f, dir)
	}
}

// keepOwner gives a new file the owner of the file that it will replace, as far as the system
// allows. An unprivileged process can only set the group.
func keepOwner(f *os.File, like fs.FileInfo) {
	stat := statOf(like)
	if int(stat.Uid) == os.Geteuid() && int(stat.Gid) == os.Getegid() {
		return
	}
	if f.Chown(int(stat.Uid), int(stat.Gid)) != nil {
		_ = f.Chown(-1, int(stat.Gid)) // the group at least
	}
}
