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
	// Preconditions are what an approval of this call bound (decision 20); none where nobody was
	// asked. Prepare of a tool with CheckPreconditions compares them with the very state that it
	// records, so that nothing comes between the look and the intent.
	Preconditions []regie.Precondition
	// Assumed are the states that the calls before this one in its reply are going to leave, for
	// Preview and Foresee: of several about one thing the last counts. There are none
	// when a call runs.
	Assumed []State
	// Earlier gives the calls of the same toolkit that the session has made and that were run, the
	// newest first, until visit returns false: from the store, so that a tool knows after a crash
	// what the model has seen. Nil means that nothing is known.
	Earlier func(ctx context.Context, visit func(regie.Call) bool) error
	// Beside gives what other calls and undos are known to have made of the workspace's files since
	// a moment before this call started, in their order, so that Track does not take it for this
	// call's. Nil means that nothing is known.
	Beside func(ctx context.Context) ([]regie.FileChange, error)
	// Unattended says that nobody watches the run: an automation, or one that asks nobody.
	Unattended bool
	// Left is for how long from now the call may begin to act: after that another process may have
	// taken it for dead (spec 11.1). A tool whose effect is brought about by a process of its own
	// has that one look at the time, because who started it may be stopped meanwhile. Nil means for
	// ever.
	Left func() time.Duration
	// Mask takes the runtime's own secrets out of all that the tool says, before it is stored, sent
	// or shown; this package applies it. Nil masks nothing.
	Mask *Mask
	// Output is told what the call puts out while it runs, as it comes: text for people, which is
	// not stored. Nil means that nobody listens.
	Output func(text string)
	// Say is told beside that what the runtime has to say of the call, for people in their
	// language; it is not stored either. Nil means that nobody listens.
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
	// Rest says how to read what a shortened result leaves out; it stands in the marker. Where it
	// is empty the marker names ReadResult, with the call's id and the offset to go on from.
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

// Asker is a Tool of the role question (spec 4.5): it reads out of a call's arguments what the
// person is asked. Its calls are not run: the person's answer is their result (decision 40).
type Asker interface {
	Module(arguments json.RawMessage) (regie.Module, error)
}

// Tracked is what a call has changed.
type Tracked struct {
	// Changed is the evidence, for Changes; nil where nothing has changed.
	Changed json.RawMessage
	// Told is what the model reads of it, "" for nothing.
	Told string
}

// Sides are what a Tool can do besides being run; nil is what it cannot.
type Sides struct {
	// Prepare records evidence before the call starts: pre-images, versions (decision 20). It must
	// change nothing, except for what it gives to Keep. Its error settles the call as FAILED
	// without starting it.
	Prepare func(ctx context.Context, inv *Invocation) (intent json.RawMessage, err error)
	// Probe, of a tool of class verifiable (spec 12.2), compares the world with the intent and
	// changes nothing. With Happened it returns the result that Run would have returned.
	Probe func(ctx context.Context, inv *Invocation) (Evidence, Result, error)
	// Preview shows what a call would do before a person approves it (spec 4.2) and changes
	// nothing. For a call that Run would refuse it returns the same coded error: no person is asked
	// in vain. Its texts may hold what a model or a file says as it is: DescribeCall makes them
	// harmless and bounds them.
	Preview func(ctx context.Context, inv *Invocation) (regie.Preview, error)
	// CheckPreconditions, of a tool whose previews have preconditions (decision 20), changes
	// nothing and returns CodeStalePreview where one is gone.
	CheckPreconditions func(ctx context.Context, inv *Invocation, preconditions []regie.Precondition) error
	// Foresee says what a call is going to leave behind, without changing anything. Preview and
	// Foresee count on the states that the invocation assumes in place of the world's.
	Foresee func(ctx context.Context, inv *Invocation) ([]State, error)
	// MustAsk says why a call needs a person's word whatever rules and policies allow (decision
	// 19), such as one that reads a secret; nothing for a call like any other, or one that Run
	// would refuse. It changes nothing.
	MustAsk func(ctx context.Context, inv *Invocation) []regie.Sentence
	// Command returns the command that a call runs (spec 4.4) where it is literal: then, and only
	// then, Run starts exactly that, without a shell, and rules can match it. It changes nothing.
	Command func(inv *Invocation) (command regie.Command, literal bool)
	// Changes, of a tool whose effect can be taken back (decision 16), says what a call that
	// SUCCEEDED, or of which Track found out what it did, made of the files of its workspace, from
	// the evidence that was stored with it alone: nothing is read or changed for it, and the call's
	// arguments may be erased. An error says that there is more that cannot be taken back; what
	// comes with it can.
	Changes func(ctx context.Context, inv *Invocation) ([]regie.FileChange, error)
	// Track, of a tool whose changes are not known beforehand (decision 16), is called when Run has
	// ended, however, unless that knows that nothing happened, and for a call whose process died
	// while it ran: it compares what Prepare secured with what is there. It changes nothing, except
	// for what it gives to Keep, and may be called again for the same call.
	Track func(ctx context.Context, inv *Invocation) (Tracked, error)
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
