package app

import (
	"os"
	"path/filepath"

	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/sandbox"
)

// Helper runs this process as a helper of the sandbox, where it was started as one, and returns its exit code. A program calls it before anything
// else, with os.Args: commands run below this same program, started again.
func Helper(args []string) (code int, ours bool) { return sandbox.Stage(args) }

// newSandbox is what the commands of a configuration run in. Nothing is tried yet.
func newSandbox(c config.Config) *sandbox.Sandbox {
	shell := c.File.Shell
	settings := sandbox.Config{
		Network: shell.Network, Environ: os.Environ(), Env: shell.Env, Read: shell.Read,
		Hidden: []string{"/etc/regie"}, // keys of the system's settings
	}
	if shell.Sandbox != config.SandboxAuto {
		settings.Tier = sandbox.Tier(shell.Sandbox)
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		settings.Home = resolved(home)
	}
	_, private := socketPlace(c.DataDir) // who reaches the engine can answer its questions
	for _, path := range []string{c.DataDir, c.Origin["file"], c.Origin["setup"], private} {
		if path == "" {
			continue
		}
		if path, err := filepath.Abs(path); err == nil {
			settings.Hidden = append(settings.Hidden, resolved(path))
		}
	}
	return sandbox.New(settings)
}

// resolved is a path without links, where it is there.
func resolved(path string) string {
	if found, err := filepath.EvalSymlinks(path); err == nil {
		return found
	}
	return filepath.Clean(path)
}
