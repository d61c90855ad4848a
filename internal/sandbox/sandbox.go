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

// Config says what commands may do. The zero Config gives the strongest tier, without a network.
type Config struct {
	// Tier forces one; empty is the strongest that works here. A forced one that does not work is
	// not replaced by a lower one: commands are then refused, unless it is None.
	Tier Tier
	// Network lets commands reach other machines and this one's servers.
	Network bool
	// Hidden are absolute paths that no command may read: Regie's data directory, files with keys.
	Hidden []string
	// Home is the person's home directory: of it commands see tools alone. Empty where there is
	// none.
	Home string
	// Read are further absolute paths that commands may read.
	Read []string
	// Environ is the environment that commands get a part of (Environment), Env are names of
	// further variables of it.
	Environ, Env []string
	// Bwrap is the bubblewrap program; empty looks for it.
	Bwrap string
	// Processes and Memory, in bytes, bound a command with everything that it starts; zero means
	// DefaultProcesses and DefaultMemory. Systems other than Linux do not count them.
	Processes int
	Memory    int64
}

// The bounds of a command where the configuration names none (decision 70).
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
	// Left is for how long from now the command may begin; nil means for ever. The helper looks at
	// the clock right before it becomes the command, so that none begins late because this process
	// was stopped in between.
	Left func() time.Duration
	// Output is given what the command writes as it comes, bytes of any kind; nil drops it. It must
	// not keep the slice.
	Output func([]byte)

	probe string // of a probe: what it is to try, as JSON
}

// Result is how a command ended.
type Result struct {
	// Exit is the exit code, as a shell gives it: 128 and the signal's number where a signal ended
	// the command.
	Exit int
	// Signal names the signal that ended it (SIGKILL), else empty.
	Signal string
	// TimedOut says that its time was over, Stopped that its context ended: it was killed then.
	TimedOut, Stopped bool
	// Exceeded is PROCESS_LIMIT or MEMORY_LIMIT where the command was ended at that bound; else
	// empty.
	Exceeded regie.Code
	// Left counts processes that it had left behind, and which were ended; zero also where the
	// namespace ends them uncounted.
	Left     int
	Duration time.Duration
	// Removed are places that a command may not make or change: git or Regie would run what they
	// say.
	Removed []Moved
	// Closed are places of the workspace in which nothing could be written, because there is more
	// below them than is looked through for repositories and settings of Regie, or because they
	// cannot be read. Unseen are those of which that became so while the command ran: what runs
	// programs there is not known.
	Closed, Unseen []string
}

// Moved is a file or directory that was given another name.
type Moved struct {
	From string
	To   string // empty where the command had removed it
	// Restored says that From is again what it was before the command.
	Restored bool
	// Err is why From is not what it should be; nil where it is.
	Err error
}

// Found is what commands are confined by on this machine, or in one workspace.
type Found struct {
	Tier Tier
	// Forced says that the configuration names the tier.
	Forced bool
	// Checks are what was tried, tier by tier from the strongest on, up to the one that works.
	Checks []Check
	// Err is why no command runs at all: a tier is forced and does not work. Else nil.
	Err error
	// Why is why a workspace has no tier although the machine has one; nil where that is not so.
	Why error
}

// Check is one tier tried.
type Check struct {
	Tier Tier
	// Missing is what it lacks; Err what came of the try. Both are empty where it works.
	Missing Missing
	Err     error
	// Probes are what was tried from inside; none where the tier could not be set up.
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

// Missing names what a tier needs and the machine has not.
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

// Find finds out once what commands are confined by on this machine: it takes some tenths of a
// second the first time. Where ctx ends before, what was found is not kept.
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

// For is Find for a workspace: of one that holds the person's home, or that lies where no command
// may look, nothing can be kept from the commands that work in it.
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
