package sandbox

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/regie-run/regie"
)

// Tier is how far a command is confined (spec 8.2).
type Tier string

// The tiers, the strongest first.
const (
	Bubblewrap Tier = "bubblewrap" // bubblewrap with seccomp, and Landlock where the kernel has it
	Landlock   Tier = "landlock"   // Landlock and seccomp
	None       Tier = "none"       // nothing
)

// Config sets the limits of commands. The zero Config gives the strongest tier, without a network.
type Config struct {
	// Tier forces a tier; empty is the strongest that works here. A forced tier is never replaced
	// by a lower one: if it does not work, commands are refused. None always works.
	Tier Tier
	// Network lets commands reach other machines and this one's servers.
	Network bool
	// Hidden are absolute paths that no command may read: Regie's data directory, files with keys.
	Hidden []string
	// Home is the person's home directory: commands see only the tools in it. Empty if there is
	// none.
	Home string
	// Read are further absolute paths that commands may read.
	Read []string
	// Environ is the environment that commands get a part of (Environment); Env names further
	// variables to pass.
	Environ, Env []string
	// Bwrap is the bubblewrap program; empty looks for it.
	Bwrap string
	// Processes and Memory, in bytes, bound a command with everything that it starts; zero means
	// DefaultProcesses and DefaultMemory. Systems other than Linux do not count them.
	Processes int
	Memory    int64
}

// The default bounds of a command (decision 70).
const (
	DefaultProcesses = 512
	DefaultMemory    = 4 << 30
)

// Command is one to be run.
type Command struct {
	// Argv is the program with its arguments. Without a slash the program is looked for in PATH.
	Argv []string
	// Root is the workspace, Dir where the command starts: absolute paths without links, Dir in
	// Root.
	Root, Dir string
	// Tier is the one that was found for the workspace (Sandbox.For): under another one the command
	// is not run.
	Tier Tier
	// Timeout ends the command with everything that it has started; zero never.
	Timeout time.Duration
	// Left returns how long from now the command may still begin; nil means for ever. The helper
	// checks the clock right before it becomes the command, so that a stop of this process cannot
	// delay the start.
	Left func() time.Duration
	// Hidden are absolute paths in Root that the command may not read. ReadOnlyGit keeps it from
	// writing in git directories. The tier Landlock can do neither.
	Hidden      []string
	ReadOnlyGit bool
	// Output receives the command's output as it comes, bytes of any kind; nil drops it. It must
	// not keep the slice.
	Output func([]byte)

	probe string // of a probe: what it is to try, as JSON
}

// Result is how a command ended.
type Result struct {
	// Exit is the exit code as a shell reports it: 128 plus the signal's number if a signal ended
	// the command.
	Exit int
	// Signal names the signal that ended it (SIGKILL), else empty.
	Signal string
	// TimedOut says that its time was over, Stopped that its context ended: it was killed then.
	TimedOut, Stopped bool
	// Exceeded is PROCESS_LIMIT or MEMORY_LIMIT if the command was ended at that bound; else empty.
	Exceeded regie.Code
	// Left counts the processes that it left behind and that were ended; zero also if the namespace
	// ends them uncounted.
	Left     int
	Duration time.Duration
	// Removed are changes that a command may not make, because git or Regie would run them.
	Removed []Moved
	// Closed are read-only places of the workspace: they are unreadable, or hold too much to search
	// for repositories and settings of Regie. Unseen are those that became so while the command
	// ran: what runs programs there is unknown.
	Closed, Unseen []string
}

// Moved is a file or directory that was given another name.
type Moved struct {
	From string
	To   string // empty where the command had removed it
	// Restored says that From has its state from before the command again.
	Restored bool
	// Err is why From could not be restored; nil if it could.
	Err error
}

// Found is what commands are confined by on this machine, or in one workspace.
type Found struct {
	Tier Tier
	// Forced says that the configuration names the tier.
	Forced bool
	// Checks are the tiers tried, from the strongest to the one that works.
	Checks []Check
	// Err is why no command runs: a forced tier does not work. Else nil.
	Err error
	// Why is why a workspace has no tier although the machine has one; else nil.
	Why error
}

// Check is one tier tried.
type Check struct {
	Tier Tier
	// Missing is what the tier lacks; Err is the error of the try. Both are empty if it works.
	Missing Missing
	Err     error
	// Probes are the attacks tried from inside; none if the tier could not be set up.
	Probes []Probe
}

// Works reports whether the tier holds.
func (c *Check) Works() bool {
	if c.Missing != "" || c.Err != nil {
		return false
	}
	for _, p := range c.Probes {
		if !p.Held {
			return false
		}
	}
	return true
}

// Missing names a requirement of a tier that the machine lacks.
type Missing string

// What may be missing.
const (
	MissingSystem     Missing = "system"     // it is not Linux on amd64 or arm64
	MissingBwrap      Missing = "bwrap"      // no bubblewrap
	MissingNamespaces Missing = "namespaces" // no user namespaces
	MissingLandlock   Missing = "landlock"   // no Landlock, or one that is too old
	MissingSeccomp    Missing = "seccomp"    // no filters of system calls
)

// Probe is one attack from inside, and whether the sandbox held.
type Probe struct {
	Name string `json:"name"`
	Held bool   `json:"held"`
	// Detail is what happened, English.
	Detail string `json:"detail,omitempty"`
}

// Sandbox runs commands. Its methods may be called from any goroutine.
type Sandbox struct {
	config Config

	mu    sync.Mutex
	found *Found
}

// New returns a sandbox; nothing is tried yet.
func New(c Config) *Sandbox { return &Sandbox{config: c} }

// Bounds returns how many processes a command may have, and how much memory in bytes.
func (s *Sandbox) Bounds() (processes int, memory int64) {
	return cmp.Or(s.config.Processes, DefaultProcesses), cmp.Or(s.config.Memory, DefaultMemory)
}

// Network reports whether commands may reach other machines.
func (s *Sandbox) Network() bool { return s.config.Network }

// Online returns the same sandbox with the network, tried apart: for a command that asks for it.
func (s *Sandbox) Online() *Sandbox {
	c := s.config
	c.Network = true
	return New(c)
}

// Find determines once how commands are confined on this machine; the first time takes some tenths
// of a second. If ctx ends first, it does not keep the result.
func (s *Sandbox) Find(ctx context.Context) Found {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found != nil {
		return *s.found
	}
	found := s.findTier(ctx)
	if ctx.Err() == nil {
		s.found = &found
	}
	return found
}

// findTier tries the tiers.
func (s *Sandbox) findTier(ctx context.Context) Found {
	found := Found{Tier: None, Forced: s.config.Tier != ""}
	for _, tier := range []Tier{Bubblewrap, Landlock} {
		if found.Forced && tier != s.config.Tier {
			continue
		}
		check := s.tryTier(ctx, tier)
		found.Checks = append(found.Checks, check)
		if check.Works() {
			found.Tier = tier
			return found
		}
	}
	if found.Forced && s.config.Tier != None {
		found.Err = errForced(s.config.Tier)
	}
	return found
}

// For is Find for a workspace. A workspace that contains the person's home, or lies in a hidden
// place, cannot be confined.
func (s *Sandbox) For(ctx context.Context, root string) Found {
	found := s.Find(ctx)
	if found.Tier == None || found.Err != nil {
		return found
	}
	if why := s.explainUnfit(root, found.Tier); why != nil {
		found.Tier, found.Why = None, why
		if found.Forced {
			found.Err = why
		}
	}
	return found
}
