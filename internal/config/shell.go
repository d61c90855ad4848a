package config

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/regie-run/regie"
)

// Shell is what commands may do (spec 8.2).
type Shell struct {
	// Sandbox is auto (also where it is empty): the strongest that works here; or bubblewrap,
	// landlock, none: that one or no commands.
	Sandbox string `yaml:"sandbox"`
	// Network lets commands reach other machines, and the servers of this one.
	Network bool `yaml:"network"`
	// MaxTimeout is how long a call may let a command run; zero means ten minutes.
	MaxTimeout time.Duration `yaml:"max_timeout"`
	// MaxProcesses and MaxMemoryBytes bound a command with everything that it starts; zero means
	// 512 processes and 4 GiB of resident memory. Only Linux counts them.
	MaxProcesses   int   `yaml:"max_processes"`
	MaxMemoryBytes int64 `yaml:"max_memory_bytes"`
	// Env are variables of the environment that commands get beside those that every program needs.
	Env []string `yaml:"env"`
	// Read are absolute paths that commands may read beside the system's programs.
	Read []string `yaml:"read"`
}

// SandboxAuto leaves the sandbox to what works on the machine.
const SandboxAuto = "auto"

// Below these bounds hardly any command runs.
const (
	leastProcesses = 16
	leastMemory    = 64 << 20
)

func (s *Shell) check(path string) error {
	switch s.Sandbox {
	case "", SandboxAuto, "bubblewrap", "landlock", "none":
	default:
		return regie.Errorf(regie.CodeBadRequest, "shell.sandbox in %s is %q: use auto, bubblewrap, landlock or none",
			path, s.Sandbox)
	}
	if s.MaxTimeout != 0 && (s.MaxTimeout < time.Second || s.MaxTimeout > 24*time.Hour) {
		return regie.Errorf(regie.CodeBadRequest, "shell.max_timeout in %s must be between 1s and 24h", path)
	}
	if s.MaxProcesses != 0 && s.MaxProcesses < leastProcesses {
		return regie.Errorf(regie.CodeBadRequest, "shell.max_processes in %s must be at least 16", path)
	}
	if s.MaxMemoryBytes != 0 && s.MaxMemoryBytes < leastMemory {
		return regie.Errorf(regie.CodeBadRequest, "shell.max_memory_bytes in %s must be at least 67108864", path)
	}
	for _, name := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00 ") {
			return regie.Errorf(regie.CodeBadRequest, "shell.env in %s: %q is no name of a variable", path, name)
		}
	}
	for _, place := range s.Read {
		if !filepath.IsAbs(place) || filepath.Clean(place) == "/" {
			return regie.Errorf(regie.CodeBadRequest, "shell.read in %s: %q is not an absolute path below /", path,
				place)
		}
	}
	return nil
}
