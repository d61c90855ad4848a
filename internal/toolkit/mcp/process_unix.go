//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the leader of a process group: what it starts is ended with it, and the
// terminal's Ctrl-C is not for it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks the whole group to end; kill ends it. A group that is gone already is no error.
func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
