//go:build unix

package hook

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the leader of a process group: what it starts is ended with it, and the
// terminal's Ctrl-C is not for it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends the whole group. One that is gone already is no error.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
