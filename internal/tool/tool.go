package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
)

// Invocation is a call on its way to its tool (spec 4.3).
type Invocation struct {
	CallID    regie.ID // the idempotency key (decision 8)
	RoundID   regie.ID
	SessionID regie.ID
	Workspace regie.Workspace
	Arguments json.RawMessage // validated against the schema
	// Intent is what Prepare returned and what was stored with STARTED.
	Intent json.RawMessage
	// Changed is what Track returned and what was stored with the result; only Changes is given it.
	Changed json.RawMessage
	// Repeated says that an earlier attempt of this call may have had its effect and that nothing
	// has shown that it had none. Then NotDone, which speaks of one attempt, does not tell what
	// became of the call (decision 5).
	Repeated bool
	// Preconditions are those of the call's approval (decision 20); none without one. Prepare of a
	// tool with CheckPreconditions compares them with the state that it records, so that nothing
	// can change between the check and the intent.
	Preconditions []regie.Precondition
	// Assumed are the states that the calls before this one in its reply are going to leave, for
	// Preview and Foresee: of several about one thing the last counts. There are none
	// when a call runs.
	Assumed []State
	// Earlier gives the calls of the same toolkit that the session has made and that were run, the
	// newest first, until visit returns false: from the store, so that a tool knows after a crash
	// what the model has seen. Nil means that nothing is known.
	Earlier func(ctx context.Context, visit func(regie.Call) bool) error
	// Beside returns the known changes of the workspace's files by other calls and undos since a
	// moment before this call started, in order, so that Track does not attribute them to this
	// call. Nil means that none are known.
	Beside func(ctx context.Context) ([]regie.FileChange, error)
	// Timeout and MaxResult lower what the tool's definition says of an attempt's time and of the
	// bytes that a model sees of the result; zero lowers nothing.
	Timeout   time.Duration
	MaxResult int
	// Unattended says that the run has no viewer: an automation, or one that asks no person.
	Unattended bool
	// Unapproved says that the session's mode alone allows the call: no person and no rule did. It
	// is set for Prepare.
	Unapproved bool
	// Left returns how long the call may still begin to act: later another process may have taken
	// it for dead (spec 11.1). A tool that acts through a process of its own lets that one check
	// the time, because its parent may be suspended meanwhile. Nil means for ever.
	Left func() time.Duration
	// Mask takes the runtime's own secrets out of all that the tool says, before it is stored, sent
	// or shown; this package applies it. Nil masks nothing.
	Mask *Mask
	// Output receives the call's output while it runs: text for people, which is not stored. Nil
	// without a listener.
	Output func(text string)
	// Say receives the runtime's messages about the call, for people in their language; they are
	// not stored either. Nil without a listener.
	Say func(regie.Sentence)
	// Keep stores a pre-image as a blob and returns its name when it is safe on the disk (decision
	// 16). Prepare calls it; nil means that nothing is kept.
	Keep func(ctx context.Context, data []byte) (regie.Hash, error)
}

// Evidence is what a probe found out about an effect (decision 5).
type Evidence string

// The findings of a probe.
const (
	Happened    Evidence = "HAPPENED"
	NotHappened Evidence = "NOT_HAPPENED"
	Unsure      Evidence = "UNSURE"
)

// Result is what a tool returns on success (spec 4.3).
type Result struct {
	// Content is what the model reads: text, or JSON where structure helps.
	Content string
	// Rest says how to read what a shortened result omits; the marker contains it. Where it is
	// empty the marker names ReadResult, with the call's id and the next offset.
	Rest string
}

// Tool is an operation that a model can call (spec 4.2). MCP tools, long tasks and sub-agents are
// the same Tool.
type Tool interface {
	Definition() regie.ToolDefinition
	// Run performs the call. For a failure that the model can repair it returns a *regie.Error,
	// wrapped in NotDone where the tool knows that nothing happened; any other error of an action
	// leaves its outcome UNKNOWN (decision 5).
	Run(ctx context.Context, inv *Invocation) (Result, error)
}

// Asker is a Tool of the role question (spec 4.5): it reads the question from a call's arguments.
// Its calls are not run: the person's answer is their result (decision 40).
type Asker interface {
	Module(arguments json.RawMessage) (regie.Module, error)
}

// MayAsk is an Asker of another role with some calls that are questions: update_plan where the plan
// is to be approved (decision 68).
type MayAsk interface {
	Asker
	Asks(arguments json.RawMessage) bool
}

// Tracked is what a call has changed.
type Tracked struct {
	// Changed is the evidence, for Changes; nil where nothing has changed.
	Changed json.RawMessage
	// Told is what the model reads of it, "" for nothing.
	Told string
}

// Flow is what a call carries between its session and the rest of the world (decision 34). The
// engine keeps it with the session: what was read stays read.
type Flow struct {
	Outside bool // its result holds what others wrote, for whom nobody here vouches
	Private bool // its result may hold a secret
	Egress  bool // it can send data out of this machine
	// Files says that its result shows files of the workspace: outside content where that is
	// untrusted. Path is the one file, without links; empty where it may be any. Secrets says that
	// those which may hold secrets are among them.
	Files   bool
	Path    string
	Secrets bool
}

// Sides are what a Tool can do besides being run; nil is what it cannot.
type Sides struct {
	// Flow says what a call carries, everything with an error; a tool without it carries nothing.
	// It changes nothing.
	Flow func(ctx context.Context, inv *Invocation) (Flow, error)
	// Prepare records evidence before the call starts: pre-images, versions (decision 20). It must
	// change nothing, except for what it gives to Keep. Its error settles the call as FAILED
	// without starting it.
	Prepare func(ctx context.Context, inv *Invocation) (intent json.RawMessage, err error)
	// Probe, of a tool of class verifiable (spec 12.2), compares the world with the intent and
	// changes nothing. With Happened it returns the result that Run would have returned.
	Probe func(ctx context.Context, inv *Invocation) (Evidence, Result, error)
	// Preview shows what a call would do before a person approves it (spec 4.2) and changes
	// nothing. For a call that Run would refuse it returns the same coded error, so that no person
	// is asked in vain. Its texts may contain raw text of a model or a file: DescribeCall sanitizes
	// and bounds them.
	Preview func(ctx context.Context, inv *Invocation) (regie.Preview, error)
	// CheckPreconditions, of a tool with preconditions in its previews (decision 20), changes
	// nothing and returns CodeStalePreview where one no longer holds.
	CheckPreconditions func(ctx context.Context, inv *Invocation, preconditions []regie.Precondition) error
	// Foresee returns the states that a call will leave, without changing anything. Preview and
	// Foresee use the states that the invocation assumes instead of the world's.
	Foresee func(ctx context.Context, inv *Invocation) ([]State, error)
	// MustAsk returns why a call needs a person's approval regardless of rules and policies
	// (decision 19), for example to read a secret; nothing for any other call, or one that Run
	// would refuse. It changes nothing.
	MustAsk func(ctx context.Context, inv *Invocation) []regie.Sentence
	// Command, of a tool that runs commands (spec 4.4), returns what rules and modes compare of a
	// call. It changes nothing.
	Command func(ctx context.Context, inv *Invocation) CommandLine
	// Changes, of a tool with undo (decision 16), returns what a SUCCEEDED or tracked call made of
	// the files of its workspace, from its stored evidence alone: it reads and changes nothing, and
	// the call's arguments may be erased. An error says that more cannot be undone; the returned
	// changes can.
	Changes func(ctx context.Context, inv *Invocation) ([]regie.FileChange, error)
	// Track, of a tool with changes that are not known beforehand (decision 16), is called after
	// Run, unless Run knows that nothing happened, and for a call of a dead process: it compares
	// what Prepare secured with the present state. It changes nothing, except for what it gives to
	// Keep, and may be called again for the same call.
	Track func(ctx context.Context, inv *Invocation) (Tracked, error)
}

// CommandLine is what rules and modes compare of a call that runs commands.
type CommandLine struct {
	// Parts are the simple commands that the call consists of: it runs exactly these, and rules
	// match each. None is anything else.
	Parts []regie.Command
	// Network says that the call asks for the network, Confined that a sandbox without one holds
	// it.
	Network, Confined bool
	// Unprotected is a path in the command that a sandbox does not protect: of a secret file, or in
	// a git directory, whose loss no undo restores; or a git command that writes there. Empty where
	// the command names none.
	Unprotected string
}

// Sided is a Tool with sides, such as one made by New.
type Sided interface{ Sides() Sides }

// SidesOf returns a tool's sides.
func SidesOf(t Tool) Sides {
	if sided, ok := t.(Sided); ok {
		return sided.Sides()
	}
	return Sides{}
}

// NotDone marks an error of a tool that knows that nothing happened (decision 5).
type NotDone struct{ Err error }

// Error implements error.
func (e NotDone) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e NotDone) Unwrap() error { return e.Err }

// Advice adds to an error which parameter it is about and what would help, for the model to repair
// its call with (spec 3.3).
type Advice struct {
	Err   error
	Param string
	Hint  string
}

// Error implements error.
func (e Advice) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e Advice) Unwrap() error { return e.Err }
