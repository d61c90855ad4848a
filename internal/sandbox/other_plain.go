//go:build !unix

package sandbox

import "os/exec"

// endGroup does nothing: there are no process groups here.
func endGroup(*exec.Cmd) {}

// exitOf returns how a command ended.
func exitOf(cmd *exec.Cmd) (code int, signal string) { return cmd.ProcessState.ExitCode(), "" }
