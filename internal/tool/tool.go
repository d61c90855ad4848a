package tool

import (
	"context"
	"encoding/json"

	"github.com/regie-run/regie"
)

// Invocation is a call on its way to its tool.
type Invocation struct {
	CallID    regie.ID // the idempotency key (decision 8)
	RoundID   regie.ID
	SessionID regie.ID
	Workspace regie.Workspace
	Arguments json.RawMessage // validated against the schema
	// Intent is what Prepare returned and what was stored with STARTED.
	Intent json.RawMessage
}

// Evidence is what a probe found out about an effect (decision 5).
type Evidence string

// The findings of a probe.
const (
	Happened    Evidence = "HAPPENED"
	NotHappened Evidence = "NOT_HAPPENED"
	Unsure      Evidence = "UNSURE"
)

// Result is what a tool returns on success.
type Result struct {
	// Content is what the model reads: text, or JSON where structure helps.
	Content string
}

// Tool is an operation that a model can call. MCP tools, long tasks and sub-agents are the same Tool.
type Tool interface {
	Definition() regie.ToolDefinition
	// Run performs the call. For a failure that the model can repair it returns a *regie.Error, wrapped in NotDone where the tool
	// knows that nothing happened; any other error of an action leaves its outcome UNKNOWN (decision 5).
	Run(ctx context.Context, inv *Invocation) (Result, error)
}

// Preparer is a Tool that records evidence before it starts: pre-images, versions (decision 20). Prepare must change nothing.
// Its error settles the call as FAILED without starting it.
type Preparer interface {
	Prepare(ctx context.Context, inv *Invocation) (intent json.RawMessage, err error)
}

// Prober is a Tool of class verifiable: Probe compares the world with the intent and changes nothing. With Happened it returns
// the result that Run would have returned.
type Prober interface {
	Probe(ctx context.Context, inv *Invocation) (Evidence, Result, error)
}

// NotDone marks an error of a tool that knows that nothing happened (decision 5).
type NotDone struct{ Err error }

// Error implements error.
func (e NotDone) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e NotDone) Unwrap() error { return e.Err }
