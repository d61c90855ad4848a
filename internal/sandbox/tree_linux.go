package sandbox

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// descendants are the processes below one, by the kernel's table of parents. What it lists may have ended by now.
func descendants(of int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if parent, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	var out []int
	for next := children[of]; len(next) > 0; {
		pid := next[0]
		out, next = append(out, pid), append(next[1:], children[pid]...)
	}
	return out
}

// parentOf reads a process's parent. What has ended and is only waited for counts as gone.
func parentOf(pid int) (int, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	rest := data[bytes.LastIndexByte(data, ')')+1:] // the name before it may hold anything
	fields := bytes.Fields(rest)
	if len(fields) < 2 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}

// signalTree sends a signal to everything below this process.
func signalTree(signal syscall.Signal) {
	for _, pid := range descendants(os.Getpid()) {
		_ = syscall.Kill(pid, signal)
	}
}

// killTree ends everything below this process, which orphans are given to, and returns how many processes there were. They are stopped first,
// until no new ones appear, so that none is born while the others die.
func killTree() (left int) {
	known := map[int]bool{}
	for range 100 {
		grew := false
		for _, pid := range descendants(os.Getpid()) {
			if !known[pid] {
				known[pid], grew = true, true
			}
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
		if !grew {
			break
		}
	}
	for {
		signalTree(syscall.SIGKILL)
		for options := unix.WALL; ; options |= unix.WNOHANG { // one is waited for, the others that have ended are taken with it
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, options, nil)
			if errors.Is(err, syscall.ECHILD) {
				return len(known)
			}
			if err == nil && pid == 0 {
				break
			}
		}
	}
}
