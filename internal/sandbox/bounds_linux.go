package sandbox

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/regie-run/regie"
)

// Intervals of the supervisor's checks. A check reads one line of /proc with the number of
// processes that the machine has started. It reads the tree only if that could have grown beyond a
// bound.
const (
	quickLook = 5 * time.Millisecond   // while processes are being started
	calmLook  = 100 * time.Millisecond // while hardly any is
	// between two readings of the memory while there is room, and while it is in use
	memoryLook  = 200 * time.Millisecond
	idleLook    = 500 * time.Millisecond // while it stays the same
	leastMemory = 10 * time.Millisecond  // while there is hardly any
	readShare   = 10                     // what was spent on reading the tree is a tenth of the time at most
)

// threadsEach is how many threads a process may have on average.
const threadsEach = 8

// supervisor holds a command's tree to its bounds (decision 70) and ends it.
type supervisor struct {
	processes int
	memory    int64

	halt, over chan struct{} // closed to end the tree, and once the command's own process has ended
	ended      chan struct{} // closed by supervise, with the results set
	left       int           // processes that the command had left behind
	exceeded   regie.Code    // PROCESS_LIMIT, MEMORY_LIMIT or empty
}

// usage counts the resources of a tree.
type usage struct {
	processes, threads int
	resident           int64
}

func startSupervisor(j *job) *supervisor {
	s := &supervisor{
		processes: j.Processes, memory: j.Memory,
		halt: make(chan struct{}), over: make(chan struct{}), ended: make(chan struct{}),
	}
	go s.superviseTree()
	return s
}

// superviseTree watches the tree until the command ends or exceeds a bound, then ends the rest.
func (s *supervisor) superviseTree() {
	defer close(s.ended)
	runtime.LockOSThread() // its thread goes before those of the command
	beFirst()
	if s.watchTree() {
		haltTree(s.over)
	}
	<-s.over
	if s.left = endTree(); s.left > s.processes && s.exceeded == "" { // they came too fast to be seen before
		s.exceeded = regie.CodeProcessLimit
	}
}

// watchTree checks until the command is over, and returns true if it must be halted.
func (s *supervisor) watchTree() bool {
	load, err := os.Open("/proc/loadavg")
	if err != nil {
		s.exceeded = regie.CodeProcessLimit // nothing can be counted here
		return true
	}
	defer load.Close()
	var last usage
	_, lastPID := readLoad(load)
	due, memoryWait := time.Now(), memoryLook
	for wait, lately := quickLook, lastPID; ; {
		pause := unix.NsecToTimespec(wait.Nanoseconds())
		_ = unix.Nanosleep(&pause, nil) // on this very thread, without the scheduler of Go
		select {
		case <-s.over:
			return false
		case <-s.halt:
			return true
		default:
		}
		_, newest := readLoad(load)
		if wait = min(2*wait, calmLook); newest-lately > s.processes/16 {
			wait = quickLook
		}
		lately = newest
		began, started := time.Now(), newest-lastPID
		fits := started >= 0 && last.processes+started <= s.processes && last.threads+started <= s.processes*threadsEach
		if fits && began.Before(due) {
			continue
		}
		if !fits && moreThan(s.processes) {
			s.exceeded = regie.CodeProcessLimit
			return true
		}
		before := last
		last, lastPID = s.readUsage(), newest
		if s.exceeded = s.judgeUsage(last); s.exceeded != "" {
			return true
		}
		took := time.Since(began)
		if memoryWait = min(2*memoryWait, idleLook); last != before {
			memoryWait = memoryLook
		}
		room := 1 - float64(last.resident)/float64(s.memory)
		due = time.Now().Add(max(leastMemory, readShare*took, time.Duration(room*float64(memoryWait))))
		wait = max(wait, took)
	}
}

func (s *supervisor) judgeUsage(u usage) regie.Code {
	switch {
	case u.processes > s.processes || u.threads > s.processes*threadsEach:
		return regie.CodeProcessLimit
	case u.resident > s.memory:
		return regie.CodeMemoryLimit
	default:
		return ""
	}
}

// readUsage sums up the tree. If the mapped memory exceeds the bound, shared memory counts once and
// mapped files do not count: the kernel can reclaim them.
func (s *supervisor) readUsage() (u usage) {
	tree := readTree(os.Getpid())
	for _, p := range tree {
		u.processes, u.threads, u.resident = u.processes+1, u.threads+p.threads, u.resident+p.resident
	}
	if u.resident <= s.memory {
		return u
	}
	u.resident = 0
	for _, p := range tree {
		u.resident += p.ownMemory()
	}
	return u
}

// ownMemory returns a process's memory with its share of shared memory. An unreadable process
// counts in full.
func (p *process) ownMemory() (own int64) {
	data, err := os.ReadFile(procDir(p.pid) + "/smaps_rollup")
	switch {
	case errors.Is(err, fs.ErrPermission):
		return p.resident
	case err != nil: // it has ended
		return 0
	}
	for line := range bytes.Lines(data) {
		fields := bytes.Fields(line)
		if len(fields) == 3 && (string(fields[0]) == "Pss_Anon:" || string(fields[0]) == "Pss_Shmem:") {
			kilobytes, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			own += kilobytes << 10
		}
	}
	return own
}

// readLoad reads /proc/loadavg: how many threads the machine has, and the number of the process
// that it started last.
func readLoad(file *os.File) (threads, newest int) {
	data := make([]byte, 128)
	n, _ := file.ReadAt(data, 0)
	if fields := bytes.Fields(data[:n]); len(fields) == 5 {
		_, all, _ := bytes.Cut(fields[3], []byte("/"))
		threads, _ = strconv.Atoi(string(all))
		newest, _ = strconv.Atoi(string(fields[4]))
	}
	return threads, newest
}

// beFirst has this thread run before the command's, as far as this process may: a flood must not
// keep it from running.
func beFirst() {
	realtime := unix.SchedAttr{Policy: unix.SCHED_RR, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	if unix.SchedSetAttr(0, &realtime, 0) == nil {
		return
	}
	short := unix.SchedAttr{Runtime: uint64(100 * time.Microsecond)} // an early turn, from Linux 6.12 on
	_ = unix.SchedSetAttr(0, &short, 0)
}

// limitThreads is a second line behind the supervisor: the kernel refuses a fork far beyond the
// bound. It does not bind root, and counts all of a user's threads, so there is room for those
// that the machine has.
func (j *job) limitThreads() error {
	load, err := os.Open("/proc/loadavg")
	if err != nil {
		return err
	}
	defer load.Close()
	threads, _ := readLoad(load)
	limit := unix.Rlimit{}
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return err
	}
	limit.Max = min(limit.Max, uint64(threads+threadsEach*j.Processes))
	limit.Cur = min(limit.Cur, limit.Max)
	return unix.Setrlimit(unix.RLIMIT_NPROC, &limit)
}
