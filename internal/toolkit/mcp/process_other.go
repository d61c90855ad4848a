//go:build !unix

package mcp

import "os/exec"

// ownGroup does nothing where there are no process groups: what a server starts is then its own
// business.
func ownGroup(*exec.Cmd) {}

// terminate does nothing where there is no SIGTERM; kill follows it.
func terminate(*exec.Cmd) {}

func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
