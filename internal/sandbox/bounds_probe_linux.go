package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/regie-run/regie"
)

const (
	floodProbe     = "flood"
	floodLimit     = 20
	floodProcesses = 40 // each ends after floodSeconds
	floodSeconds   = 10
)

// probeBounds starts more processes in a tier than a command may have, and reports whether the
// command was ended for it.
func (s *Sandbox) probeBounds(ctx context.Context, tier Tier) (Probe, error) {
	root, err := os.MkdirTemp("", "regie-probe-")
	if err == nil {
		defer removeAll(root)
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return Probe{}, regie.Errorf(regie.CodeToolError, "no temporary directory can be made for the probes: %v", err)
	}
	inner := New(s.config)
	inner.config.Processes = floodLimit
	result, err := inner.Run(ctx, Command{
		Argv: []string{probeName}, Root: root, Dir: root, Tier: tier, Timeout: tryTime, probe: floodProbe,
	})
	if err != nil {
		return Probe{}, err
	}
	detail := "ended at " + strconv.Itoa(floodLimit) + " processes"
	if result.Exceeded != regie.CodeProcessLimit {
		detail = "it was not ended, exit code " + strconv.Itoa(result.Exit)
	}
	return Probe{Name: "processes", Held: result.Exceeded == regie.CodeProcessLimit, Detail: detail}, nil
}

// startFlood starts processes that sleep. They never return to Go, which cannot go on in a fork.
func startFlood() int {
	pause := unix.Timespec{Sec: floodSeconds}
	for range floodProcesses {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			return 1
		}
		if pid == 0 {
			_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP,
				uintptr(unsafe.Pointer(&pause)), 0, 0) //nolint:gosec // as the system call takes it
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	time.Sleep(floodSeconds * time.Second) // unlike Nanosleep, no signal ends it early
	return 0
}
