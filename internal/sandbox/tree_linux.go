package sandbox

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// freezeTime bounds how long freezeTree looks for processes that still run: one in the kernel
// stops late.
const freezeTime = 3 * time.Second

// process is one entry of the tree below a helper.
type process struct {
	pid, parent, group, threads int
	resident                    int64 // bytes, of files that are mapped too
	running                     bool  // neither stopped, nor in the kernel for a while, nor ended
	ended                       bool  // all of it: only its parent has not asked for its exit code
}

// Fields of /proc/PID/stat, counted from the state, which follows the name.
const (
	statParent   = 1
	statGroup    = 2
	statThreads  = 17
	statResident = 21
)

// readStat reads one process or thread; ok is false if it is gone.
func readStat(dir string) (p process, ok bool) {
	data := readAll(dir + "/stat")
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:]) // the name before it may hold anything
	if len(fields) <= statResident {
		return p, false
	}
	number := func(at int) int {
		n, _ := strconv.Atoi(string(fields[at]))
		return n
	}
	p = process{parent: number(statParent), group: number(statGroup), threads: number(statThreads)}
	p.resident = int64(number(statResident)) * int64(os.Getpagesize())
	p.running = fields[0][0] == 'R' || fields[0][0] == 'S'
	p.ended = (fields[0][0] == 'Z' || fields[0][0] == 'X') && p.threads <= 1
	return p, true
}

// readProcess reads a process. If its first thread ended before the others, it reads state and
// memory from one of those.
func readProcess(pid int) (process, bool) {
	dir := procDir(pid)
	p, ok := readStat(dir)
	p.pid = pid
	if !ok || p.ended || p.resident > 0 || p.threads <= 1 {
		return p, ok
	}
	for _, thread := range numbersIn(dir + "/task") {
		if t, there := readStat(procDir(thread)); there && t.resident > 0 {
			p.resident, p.running = t.resident, t.running
			break
		}
	}
	return p, true
}

func procDir(pid int) string { return "/proc/" + strconv.Itoa(pid) }

// numbersIn lists the entries of a directory that are numbers: processes, or threads of one.
func numbersIn(dir string) (out []int) {
	entries, _ := os.ReadDir(dir) // none where the process is gone
	for _, entry := range entries {
		if n, err := strconv.Atoi(entry.Name()); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// childrenListed says whether the kernel lists the children of a thread (CONFIG_PROC_CHILDREN).
var childrenListed = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
})

// childrenOf lists the processes that any thread of a process has started, or adopted. It makes
// few system calls: in a flood this process gets a small part of the processors.
func childrenOf(pid int) (out []int) {
	dir := procDir(pid) + "/task"
	var stat unix.Stat_t
	if unix.Stat(dir, &stat) != nil {
		return nil
	}
	threads := []int{pid}
	if stat.Nlink != 3 { // itself, its parent, and one for each thread
		threads = numbersIn(dir)
	}
	for _, thread := range threads {
		for field := range bytes.FieldsSeq(readAll(dir + "/" + strconv.Itoa(thread) + "/children")) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				out = append(out, child)
			}
		}
	}
	return out
}

// readAll reads a file of /proc, as os.ReadFile with half the system calls. It returns nothing if
// the process is gone.
func readAll(path string) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	data := make([]byte, 0, 1024)
	for {
		n, err := unix.Read(fd, data[len(data):cap(data)])
		if err != nil || n == 0 {
			return data
		}
		if data = data[:len(data)+n]; len(data) == cap(data) {
			data = slices.Grow(data, len(data))
		}
	}
}

// walkTree visits the processes below root, each right after its parent, so that visit can stop it
// before it forks, until visit returns false. It may miss a process if its parent ends meanwhile:
// callers repeat.
func walkTree(root int, visit func(pid int) bool) {
	children := childrenOf
	if !childrenListed() {
		table := map[int][]int{}
		for _, pid := range numbersIn("/proc") {
			if p, ok := readStat(procDir(pid)); ok {
				table[p.parent] = append(table[p.parent], pid)
			}
		}
		children = func(pid int) []int { return table[pid] }
	}
	seen := map[int]bool{root: true}
	for next := []int{root}; len(next) > 0; {
		pid := next[len(next)-1]
		next = next[:len(next)-1]
		for _, child := range children(pid) {
			if seen[child] {
				continue
			}
			if seen[child] = true; !visit(child) {
				return
			}
			next = append(next, child)
		}
	}
}

// moreThan reports whether there are more processes below this one than a number, in as little
// time as possible.
func moreThan(processes int) bool {
	found := 0
	if os.Getpid() == 1 {
		found = len(numbersIn("/proc")) - 1
	} else {
		walkTree(os.Getpid(), func(int) bool {
			found++
			return found <= processes
		})
	}
	return found > processes
}

// readTree reads every process below root that has not ended and been adopted: that one is the
// helper's to collect.
func readTree(root int) (out []process) {
	var pids []int
	walkTree(root, func(pid int) bool {
		pids = append(pids, pid)
		return true
	})
	for _, pid := range pids {
		if p, ok := readProcess(pid); ok && (!p.ended || p.parent != root) {
			out = append(out, p)
		}
	}
	return out
}

// signalTree sends a signal to everything below this process. The first process of a namespace
// reaches all of it at once.
func signalTree(signal syscall.Signal) {
	if os.Getpid() == 1 {
		_ = syscall.Kill(-1, signal)
		return
	}
	signalBelow(os.Getpid(), signal)
}

func signalBelow(root int, signal syscall.Signal) {
	walkTree(root, func(pid int) bool {
		_ = syscall.Kill(pid, signal)
		return true
	})
}

// freezeTree stops everything below this process and returns how many processes it found. It
// repeats until two passes in a row find nothing that still runs: a process can fork between being
// found and being stopped.
func freezeTree() int {
	known, own := map[int]bool{}, syscall.Getpgrp()
	for quiet, began := 0, time.Now(); quiet < 2 && time.Since(began) < freezeTime; quiet++ {
		signalTree(syscall.SIGSTOP)
		signalTree(syscall.SIGSTOP) // most of what the first pass missed, before time goes into looking
		groups := map[int]bool{own: true, 0: true, 1: true}
		for _, p := range readTree(os.Getpid()) {
			if p.ended {
				continue
			}
			if p.running && !groups[p.group] { // a whole group stops at once, what it is forking included
				groups[p.group] = true
				_ = syscall.Kill(-p.group, syscall.SIGSTOP)
			}
			if p.running || !known[p.pid] {
				known[p.pid], quiet = true, -1
			}
		}
	}
	return len(known)
}

// haltTree freezes and kills everything below this process until over is closed. It does not reap
// ended processes.
func haltTree(over <-chan struct{}) {
	freezeTree()
	for {
		signalTree(syscall.SIGKILL)
		select {
		case <-over:
			return
		case <-time.After(quickLook):
		}
	}
}

// endTree ends everything below this process, which orphans are given to, and returns how many
// processes there were.
func endTree() (left int) {
	left = freezeTree()
	for {
		signalTree(syscall.SIGKILL)
		// one is waited for, the others that have ended are taken with it
		for options := unix.WALL; ; options |= unix.WNOHANG {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, options, nil)
			if errors.Is(err, syscall.ECHILD) {
				return left
			}
			if err == nil && pid == 0 {
				break
			}
		}
	}
}

// endHelper ends a helper that did not end in time, and before it everything below it: its orphans
// would escape.
func endHelper(helper int, gone <-chan struct{}) {
	for began, left := time.Now(), 1; left > 0 && time.Since(began) < helperGrace; {
		signalBelow(helper, syscall.SIGKILL)
		select {
		case <-gone:
			return
		case <-time.After(quickLook):
		}
		left = len(readTree(helper))
	}
	_ = syscall.Kill(helper, syscall.SIGKILL)
	<-gone
}
