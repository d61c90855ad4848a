//go:build unix && !linux

package sandbox

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// endGroup makes a command the leader of a process group, which is ended as one.
func endGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// exitOf returns how a command ended.
func exitOf(cmd *exec.Cmd) (code int, signal string) {
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal()), unix.SignalName(status.Signal())
	}
	return cmd.ProcessState.ExitCode(), ""
}
