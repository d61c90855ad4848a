package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// statOf returns what the system says of a file.
func statOf(info fs.FileInfo) syscall.Stat_t {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return *stat
	}
	return syscall.Stat_t{}
}

// giveAway gives a file that was made anew in a directory to that one's owner, where we are root:
// else the person whose workspace it is could not change it. Who it belonged to before, where it
// comes back by an undo, nobody knows.
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

// giveDirAway is giveAway for a directory that was just made. What somebody has put in its place
// meanwhile is not given away: it has something in it, or is theirs already.
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

// keepOwner gives a new file the owner of the one that it will replace, as far as the system allows
// it: a user who may write somebody else's file cannot give a file away.
func keepOwner(f *os.File, like fs.FileInfo) {
	stat := statOf(like)
	if int(stat.Uid) == os.Geteuid() && int(stat.Gid) == os.Getegid() {
		return
	}
	if f.Chown(int(stat.Uid), int(stat.Gid)) != nil {
		_ = f.Chown(-1, int(stat.Gid)) // the group at least
	}
}
