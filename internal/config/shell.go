package config

import (
	"path/filepath"
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
	// Env are environment variables that commands get in addition to the basic ones.
	Env []string `yaml:"env"`
	// Read are absolute paths that commands may read in addition to the system's programs.
	Read []string `yaml:"read"`
}

// SandboxAuto leaves the sandbox to what works on the machine.
const SandboxAuto = "auto"

func (s *Shell) checkValues() error {
	for _, place := range s.Read {
		if !filepath.IsAbs(place) || filepath.Clean(place) == "/" {
			return regie.Errorf(regie.CodeBadRequest, "%q is not an absolute path below /", place)
		}
	}
	return checkVariables(s.Env)
}
