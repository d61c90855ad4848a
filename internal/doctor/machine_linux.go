package doctor

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// landlock returns the version of Landlock's interface (landlock_create_ruleset(2), LANDLOCK_CREATE_RULESET_VERSION).
func landlock() (int, error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(version), nil
}

// seccomp asks whether filters could be loaded: an empty one is refused as a bad address where they exist, and as unknown where not.
func seccomp() error {
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, 0, 0, 0)
	if errors.Is(err, unix.EFAULT) || errors.Is(err, unix.EACCES) {
		return nil
	}
	return err
}

// userNamespaces starts a program that does nothing in a namespace of its own: settings of the kernel alone do not say whether it may.
func userNamespaces(ctx context.Context) error {
	if sysctl("user/max_user_namespaces") == "0" {
		return syscall.ENOSPC
	}
	nothing, err := exec.LookPath("true")
	if err != nil {
		return nil // no program to try it with: the settings do not forbid it
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	command := exec.CommandContext(ctx, nothing)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	return command.Run()
}
