package doctor

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Where SQLite locks a database: one byte that a writer takes first, and a range that readers share
// (its file format, "Pending byte").
const (
	pendingByte = 0x40000000
	sharedFirst = pendingByte + 2
)

// lockHolder is a process with a lock on a file.
type lockHolder struct {
	pid       int
	name      string
	exclusive bool // nobody else can even read
}

// holders are the processes that have a database open, as far as the system says.
func holders(path string) []lockHolder {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	table, err := os.ReadFile("/proc/locks")
	if !ok || err != nil {
		return nil
	}
	found := lockedBy(string(table), stat.Ino)
	for i := range found {
		name, _ := os.ReadFile("/proc/" + strconv.Itoa(found[i].pid) + "/comm")
		found[i].name = strings.TrimSpace(string(name))
		if found[i].name == "" {
			found[i].name = "?"
		}
	}
	return found
}

// lockedBy reads a table of locks as proc(5) describes it. Files are told apart by their inode
// alone, because the device that stands there is not always the one that stat(2) says; the ranges
// are SQLite's own, so another file's lock is hardly taken for one.
func lockedBy(table string, inode uint64) (out []lockHolder) {
	seen := map[int]int{} // process → its place in out
	for line := range strings.SplitSeq(table, "\n") {
		fields := strings.Fields(line)
		if len(fields) != 8 || fields[1] != "POSIX" && fields[1] != "OFDLCK" { // 9: somebody who waits
			continue
		}
		_, file, _ := strings.Cut(fields[5], ":")
		_, file, _ = strings.Cut(file, ":")
		pid, err := strconv.Atoi(fields[4])
		from, fromErr := strconv.ParseInt(fields[6], 10, 64)
		if err != nil || fromErr != nil || file != strconv.FormatUint(inode, 10) || pid <= 0 {
			continue
		}
		upto, err := strconv.ParseInt(fields[7], 10, 64)
		if err != nil { // EOF
			upto = 1<<63 - 1
		}
		if upto < pendingByte || from > sharedFirst+510 {
			continue
		}
		exclusive := fields[3] == "WRITE" && from <= sharedFirst && upto >= sharedFirst
		if at, known := seen[pid]; known {
			out[at].exclusive = out[at].exclusive || exclusive
			continue
		}
		seen[pid] = len(out)
		out = append(out, lockHolder{pid: pid, exclusive: exclusive})
	}
	return out
}
