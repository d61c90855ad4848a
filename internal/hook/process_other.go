//go:build !unix

package hook

import "os/exec"

// ownGroup does nothing where there are no process groups: what a hook starts is then its own
// business.
func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
