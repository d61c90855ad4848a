package app

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/sandbox"
	"github.com/regie-run/regie/internal/workspace"
)

// Helper runs this process as a helper of the sandbox, where it was started as one, and returns its
// exit code. A program calls it before anything else, with os.Args: commands run below this same
// program, started again.
func Helper(args []string) (code int, ours bool) { return sandbox.Stage(args) }

// newSandbox returns what the commands of a configuration run in. Nothing is tried yet.
func newSandbox(c config.Config) *sandbox.Sandbox {
	shell := c.File.Shell
	settings := sandbox.Config{
		Network: shell.Network, Environ: os.Environ(), Env: shell.Env, Read: shell.Read,
		Processes: shell.MaxProcesses, Memory: shell.MaxMemoryBytes,
	}
	if shell.Sandbox != config.SandboxAuto {
		settings.Tier = sandbox.Tier(shell.Sandbox)
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		settings.Home = workspace.Resolved(home)
	}
	_, private := socketPlace(c.DataDir) // who reaches the engine can answer its questions
	for _, path := range append(ownPaths(&c), c.Origin["file"], c.Origin["setup"], private) {
		if path == "" {
			continue
		}
		if path, err := filepath.Abs(path); err == nil {
			settings.Hidden = addOutermost(settings.Hidden, workspace.Resolved(path))
		}
	}
	return sandbox.New(settings)
}

// addOutermost adds a path to a list without nested paths: a hidden directory hides everything
// below it.
func addOutermost(paths []string, path string) []string {
	if slices.ContainsFunc(paths, func(in string) bool { return control.IsBelow(in, path) }) {
		return paths
	}
	return append(slices.DeleteFunc(paths, func(p string) bool { return control.IsBelow(path, p) }), path)
}

// ownPaths returns the directories and files that are Regie's own: what an agent could read there
// has keys, and what it could write decides what it may do.
func ownPaths(c *config.Config) []string {
	return append([]string{c.OwnDir()}, privatePaths(c)...)
}

// privatePaths returns the paths of the settings, with /etc/regie always.
func privatePaths(c *config.Config) []string {
	return append([]string{filepath.Dir(config.SystemFile)}, c.Private...)
}
