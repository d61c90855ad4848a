package engine

import (
	"context"
	"encoding/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// Query is a call that a client makes of a workspace's queries, without a model and without a
// session (spec 4.1, 10.2).
type Query struct {
	Workspace regie.Workspace
	Tool      string // its canonical name
	Arguments json.RawMessage
}

// Query runs a query like a model's: looked up, validated, judged under the present rules, run
// within the tool's time and bounds (spec 4.2). It asks no person: what would need an approval is
// refused, secrets among it (spec 8.2). It returns CodeUnknownTool, CodeBadArguments, CodeForbidden
// for a tool that is no query of a workspace or that a rule forbids, CodePathProtected where a
// person would be asked, and the tool's own codes.
func (e *Engine) Query(ctx context.Context, in Query) (string, error) {
	at, cancel := context.WithCancel(ctx)
	cancel() // what other servers have is not asked for here, so none of them is waited for
	r, err := e.newRun(ctx, store.Claimed{
		Session: regie.Session{WorkspaceID: in.Workspace.ID, Type: regie.SessionChat}, Workspace: in.Workspace,
	}, e.workspaceTools(at, in.Workspace, e.cfg.Tools(at)))
	if err != nil {
		return "", err
	}
	if err := r.judge.readRules(); err != nil {
		return "", err
	}
	checked := r.tools.Check(in.Tool, string(in.Arguments))
	if checked.Error != nil {
		return "", regie.Errorf(checked.Error.Code, "%s", advised(checked.Error))
	}
	definition := checked.Tool.Definition()
	if definition.Kind != regie.KindQuery || definition.Role != "" || definition.Name == tool.ReadResult {
		return "", regie.Errorf(regie.CodeForbidden,
			"%s is not a workspace query: only tools that read its files can be called without a session", definition.Name)
	}
	call := regie.Call{
		ID: regie.NewID(), Origin: regie.OriginUser, Tool: checked.Name, Kind: definition.Kind, Class: definition.Class,
		Signature:  checked.Signature,
		Definition: checked.Definition, Arguments: string(in.Arguments), State: regie.CallProposed, Ask: checked.Asks,
	}
	if err := r.judge.refuseUnasked(&call, definition); err != nil {
		return "", err
	}
	target, inv := r.runner.newInvocation(&call)
	outcome, _ := tool.Attempt(ctx, target, inv, e.cfg.Retry)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case outcome.State != regie.CallSucceeded:
		return "", regie.Errorf(outcome.Error.Code, "%s", advised(outcome.Error))
	}
	return outcome.Result, nil
}

// advised is what a call's error says, with what would help.
func advised(problem *regie.CallError) string {
	if problem.Hint == "" {
		return problem.Message
	}
	return problem.Message + "; " + problem.Hint
}
