package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/sandbox"
	"github.com/regie-run/regie/internal/store/postgres"
)

// Status says how a finding is to be taken.
type Status string

// The statuses. Only Failed needs something done about it.
const (
	Fine    Status = "ok"
	Warning Status = "warning"
	Failed  Status = "failed"
)

// The groups of findings, in their order.
const (
	Settings  = "configuration"
	Model     = "model"
	Data      = "data"
	Disk      = "disk"
	Database  = "database"
	Engine    = "engine"
	Workspace = "workspace"
	Sandbox   = "sandbox"
)

// Finding is one thing that was looked at.
type Finding struct {
	// ID names what was looked at. It never changes; several findings may have it, About tells them
	// apart.
	ID     string
	Group  string
	Status Status
	About  string // a file, a server, a variable; may be empty
	Code   regie.Code
	// Cause is an error that says it, instead of Text.
	Cause error
	Text  regie.Sentence
	// Fixes are what to do; a Failed finding has at least one.
	Fixes []Fix
}

// Fix is one thing to do: a command to type, or a sentence where that is empty.
type Fix struct {
	Command string
	Text    regie.Sentence
}

// Report is all that was found, in the order of the groups.
type Report []Finding

// Count returns how many findings have a status.
func (r Report) Count(status Status) (n int) {
	for i := range r {
		if r[i].Status == status {
			n++
		}
	}
	return n
}

// Server is a configured model server with the result of a request to it.
type Server struct {
	Name, Type, BaseURL string
	Local               bool // on this machine
	Asked               bool // a server that wants a key and has none is not asked
	Code                regie.Code
	Error               string         // its own words, English
	Said                regie.Sentence // the same for people; it may be missing
	Took                time.Duration
	Models              []string
	ToolModels          []string // those that can call tools
}

// EngineState is whether an engine holds the data directory.
type EngineState struct {
	Running bool
	PID     string // as it wrote it; may be empty
	Socket  string // where it listens
	Err     error  // why it does not answer
	Took    time.Duration
	Unknown error // why it could not be told whether one runs
}

// Subject is the machine to examine. Its functions need the wiring; each must return within a few
// seconds.
type Subject struct {
	Config      config.Config
	ConfigError error  // what config.Load said
	ConfigFlag  string // --config
	Env         func(string) string
	Dir         string // the current directory; "" where it cannot be told
	// Server asks the chosen server; it returns nil where none is, or none may be asked.
	Server func(context.Context) *Server
	// Engine looks for the engine of the data directory.
	Engine func(context.Context) EngineState
	// Shared inspects the PostgreSQL that Config names; Examine calls it only if there is one.
	Shared func(context.Context) postgres.Inspection
	// Commands finds out what commands are confined by in the workspace of Dir; nil leaves it out.
	Commands func(context.Context) sandbox.Found
	// Project inspects the agent files in the workspace of a directory; nil leaves it out.
	Project func(root string) Project
	// CheckTime bounds the check of the database; zero means 20 s.
	CheckTime time.Duration
}

// Examine checks everything and returns its findings. It continues after failed checks and ends
// early only with the context.
func Examine(ctx context.Context, s Subject) Report {
	if s.CheckTime == 0 {
		s.CheckTime = 20 * time.Second
	}
	x := &exam{Subject: s}
	for _, one := range []struct {
		group string
		look  func(context.Context)
	}{
		{Settings, x.checkSettings},
		{Model, x.checkModel},
		{Data, x.checkDataDir},
		{Disk, x.checkDisk},
		{Database, x.checkDatabase},
		{Engine, x.checkEngine},
		{Workspace, x.checkWorkspace},
		{Sandbox, x.checkSandbox},
	} {
		x.group = one.group
		one.look(ctx)
	}
	return x.report
}

// exam is an examination under way; what one look finds out another may need.
type exam struct {
	Subject
	report Report
	group  string

	usable  string // the data directory, or the nearest one above it that is there; "" where none can be told
	present bool   // the data directory is there
	engines *EngineState
}

// engineState looks for the engine once.
func (x *exam) engineState(ctx context.Context) EngineState {
	if x.engines == nil {
		state := EngineState{}
		if x.Engine != nil && x.present {
			state = x.Engine(ctx)
		}
		x.engines = &state
	}
	return *x.engines
}

func (x *exam) addFinding(id string, status Status, text regie.Sentence) *Finding {
	x.report = append(x.report, Finding{ID: x.group + "." + id, Group: x.group, Status: status, Text: text})
	return &x.report[len(x.report)-1]
}

func (x *exam) addFine(id, format string, args ...string) *Finding {
	return x.addFinding(id, Fine, regie.Say(format, args...))
}

func (x *exam) addWarning(id, format string, args ...string) *Finding {
	return x.addFinding(id, Warning, regie.Say(format, args...))
}

func (x *exam) addFailure(id, format string, args ...string) *Finding {
	return x.addFinding(id, Failed, regie.Say(format, args...))
}

// addError returns a failure in an error's own words.
func (x *exam) addError(id string, err error) *Finding {
	f := x.addFinding(id, Failed, regie.Sentence{})
	f.Cause, f.Code = err, regie.CodeOf(err)
	return f
}

// quoteSentence replaces the sentence's last argument, an English text, with the sentence that it
// was made from.
func (f *Finding) quoteSentence(said regie.Sentence) *Finding {
	if !said.IsZero() {
		f.Text.Args, f.Text.About = f.Text.Args[:len(f.Text.Args)-1], []regie.Sentence{said}
	}
	return f
}

// addFix adds what to do.
func (f *Finding) addFix(format string, args ...string) *Finding {
	f.Fixes = append(f.Fixes, Fix{Text: regie.Say(format, args...)})
	return f
}

// adviseDataDir adds that another data directory may be named.
func (f *Finding) adviseDataDir() {
	f.addFix("name another directory, on a local disk: export REGIE_DATA_DIR=/path/to/it")
}

// setCode sets the error code for programs.
func (f *Finding) setCode(code regie.Code) *Finding {
	f.Code = code
	return f
}

// addCommand adds a command to type, which is the same in every language.
func (f *Finding) addCommand(command string) {
	f.Fixes = append(f.Fixes, Fix{Command: command})
}

func (f *Finding) setSubject(what string) *Finding {
	f.About = what
	return f
}

// Quote writes an argument of a command for a shell.
func Quote(arg string) string {
	if arg != "" &&
		strings.Trim(arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%,=") == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// QuoteAll writes a command line for a shell.
func QuoteAll(words []string) string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = Quote(word)
	}
	return strings.Join(out, " ")
}

// nearestDir returns the directory, or its nearest existing parent.
func nearestDir(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			return at
		}
	}
}
