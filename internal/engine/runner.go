package engine

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/tool"
)

// toolRunner looks tools up and runs them.
type toolRunner struct {
	*run
	early *early // queries that were started before their reply was stored, nil where none were
}

// storedArguments returns what a call is stored to run with: the edited ones, or what the model
// wrote.
func (x *toolRunner) storedArguments(call *regie.Call) json.RawMessage {
	if len(call.Executed) > 0 {
		return call.Executed
	}
	return x.tools.Executable(call.Tool, call.Arguments)
}

// callArguments returns the arguments that a call runs with.
func (x *toolRunner) callArguments(call *regie.Call) json.RawMessage {
	if fault.Bug(fault.BugUnedited) {
		return x.tools.Executable(call.Tool, call.Arguments)
	}
	return x.storedArguments(call)
}

// newInvocation finds the tool of a call and what it is called with; nil where the tool is gone, or
// is not the one that was judged (decision 20).
func (x *toolRunner) newInvocation(call *regie.Call) (tool.Tool, *tool.Invocation) {
	target, definition, ok := x.tools.Lookup(call.Tool)
	if !ok || definition != call.Definition || !x.inScope(call) {
		return nil, nil
	}
	x.reportTool(target)
	inv := &tool.Invocation{
		CallID: call.ID, RoundID: x.round.ID, SessionID: x.session.ID, Workspace: x.workspace,
		Arguments: x.callArguments(call), Intent: call.Intent,
		Keep: x.cfg.Store.PutBlob, Earlier: x.earlierCalls(call), Beside: x.changesBeside(call),
		Unattended: x.isAutomation() || !x.asksPeople(),
		Left:       x.cfg.Left, Timeout: time.Duration(x.round.Limits.CallSeconds) * time.Second,
		MaxResult: x.round.Limits.ResultBytes,
	}
	if x.cfg.Mask != nil {
		inv.Mask = x.cfg.Mask(x.workspace.Root)
	}
	if x.cfg.Progress != nil {
		session, round, exchange, id := x.session.ID, x.round.ID, x.exchange.Number, call.ID
		inv.Output = func(text string) { x.cfg.Progress(session, round, exchange, Progress{CallID: id, Output: text}) }
		inv.Say = func(said regie.Sentence) {
			x.cfg.Progress(session, round, exchange, Progress{CallID: id, Said: &said})
		}
	}
	if call.State == regie.CallApproved {
		inv.Preconditions = x.reviews[call.ID].Preview.Preconditions
	}
	return target, inv
}

func (x *toolRunner) isPlan(c *tool.Checked) bool {
	return c.Tool != nil && c.Tool.Definition().Role == regie.RolePlan
}

func (x *toolRunner) questionModule(call *regie.Call) (regie.Module, error) {
	target, _, _ := x.tools.Lookup(call.Tool)
	asker, ok := target.(tool.Asker)
	if !ok {
		return regie.Module{}, regie.Errorf(regie.CodeToolError, "the tool cannot say what it asks")
	}
	module, err := asker.Module(x.callArguments(call))
	if _, ok := target.(tool.MayAsk); ok && err == nil {
		module = x.planner.planModule(module)
	}
	return module, err
}

// maxCommandTime returns the most time in seconds that the tool gives a command, by its own schema:
// the person sits before theirs and can end it, so nothing else should. Zero leaves it to the tool.
func (x *toolRunner) maxCommandTime() int {
	checked := x.tools.Check(commandTool, "{}")
	if checked.Tool == nil {
		return 0
	}
	var schema struct {
		Properties struct {
			Timeout struct {
				Maximum float64 `json:"maximum"`
			} `json:"timeout"`
		} `json:"properties"`
	}
	if json.Unmarshal(checked.Tool.Definition().Parameters, &schema) != nil {
		return 0
	}
	return int(schema.Properties.Timeout.Maximum)
}

// foreseeState returns what a call that is not settled is going to leave behind, on top of what
// those before it leave.
func (x *toolRunner) foreseeState(ctx context.Context, call *regie.Call, assumed []tool.State) []tool.State {
	target, inv := x.newInvocation(call)
	if target == nil || call.State.Settled() {
		return nil
	}
	inv.Assumed = assumed
	return tool.Foresee(ctx, target, inv)
}

// earlierCalls gives the calls of a call's toolkit in its session, the newest first, as the model
// knew them when it proposed the call: what it reads in the same reply it has not seen yet.
func (x *toolRunner) earlierCalls(call *regie.Call) func(ctx context.Context, visit func(regie.Call) bool) error {
	toolkit, _, _ := strings.Cut(call.Tool, ".")
	id, message := call.ID, call.MessageID
	return func(ctx context.Context, visit func(regie.Call) bool) error {
		calls, err := x.cfg.Store.RecentCalls(ctx, x.session.ID, toolkit)
		for i := range calls {
			if c := calls[i]; c.ID == id || c.MessageID == message && c.Kind == regie.KindQuery {
				continue
			}
			if !visit(calls[i]) {
				break
			}
		}
		return err
	}
}

// aside is how long before a call was started others may have changed what had been secured for it
// by then.
const aside = time.Minute

// changesBeside gives what other calls and undos made of files in the workspace while a call ran.
// What commands that have not ended by then do is not known.
func (x *toolRunner) changesBeside(call *regie.Call) func(ctx context.Context) ([]regie.FileChange, error) {
	return func(ctx context.Context) ([]regie.FileChange, error) {
		later, err := x.cfg.Store.Later(ctx, x.workspace.ID, call.StartedAt.Add(-aside))
		if err != nil {
			return nil, err
		}
		var out []regie.FileChange
		for i := range later.Calls {
			c := &later.Calls[i]
			target, _, ok := x.tools.Lookup(c.Tool)
			if !ok || c.ID == call.ID || tool.SidesOf(target).Changes == nil {
				continue
			}
			// what it says counts
			made, _ := tool.SidesOf(target).Changes(ctx, &tool.Invocation{
				CallID: c.ID, Workspace: x.workspace,
				Intent: c.Intent, Changed: c.Changed,
			})
			out = append(out, made...)
		}
		for i := range later.Undos {
			out = append(out, regie.ChangesOf(&later.Undos[i])...)
		}
		return out, nil
	}
}

// maxParallel bounds the queries that run side by side (spec 4.3).
const maxParallel = 8

// runParallel runs n jobs side by side, a single one on the caller's goroutine, and waits for them.
func runParallel(n int, job func(i int)) {
	if n == 1 {
		job(0)
		return
	}
	var group sync.WaitGroup
	free := make(chan struct{}, maxParallel)
	for i := range n {
		free <- struct{}{}
		group.Go(func() {
			job(i)
			<-free
		})
	}
	group.Wait()
}

func (x *toolRunner) parallelSafe(call *regie.Call) bool {
	target, _, ok := x.tools.Lookup(call.Tool)
	return ok && target.Definition().ParallelSafe
}

// attempt runs a query.
func (x *toolRunner) attempt(ctx context.Context, target tool.Tool, inv *tool.Invocation) *running {
	q := &running{}
	q.outcome, q.tries = tool.Attempt(ctx, target, inv, x.retry())
	return q
}

// runAction performs an action with a stored intent. A pause lets it finish (decision 6).
func (x *toolRunner) runAction(call *regie.Call) {
	target, inv := x.newInvocation(call)
	// it was there when its intent was made, by another process that gave the round back before it
	// ran anything
	if target == nil {
		x.settleMissing(call)
		return
	}
	outcome, tries := tool.Attempt(x.work, target, inv, x.retry())
	call.Attempts += tries - 1
	x.settleOutcome(call, outcome)
	fault.Point(fault.EffectAfter)
}

// settleOutcome brings a tool's outcome into its call.
func (x *toolRunner) settleOutcome(call *regie.Call, outcome tool.Outcome) {
	settleCall(call, outcome.State, outcome.Result, outcome.Error)
	call.DurationUS, call.Changed = outcome.Duration.Microseconds(), outcome.Changed
	x.markFlow(call)
	if outcome.Whole == "" {
		return
	}
	// The whole of a shortened result is kept (spec 3.2). If it cannot be, the shortened one is
	// still the result, and says so.
	hash, err := x.cfg.Store.PutBlob(x.commit, []byte(outcome.Whole))
	call.ResultBlob = hash
	if err != nil {
		call.Result, call.ResultLost = outcome.Unkept(err), int64(len(outcome.Whole))
	}
}

// settleQuery brings the outcome of a query into its call.
func (x *toolRunner) settleQuery(call *regie.Call, q *running) {
	x.settleOutcome(call, q.outcome)
	call.Attempts += q.tries
}

// settleMissing settles a call that has not started and lost the tool that was judged: its server
// is down, or describes it differently now (decision 20), or the tool is gone. Nothing was done,
// and each case has its own code.
func (x *toolRunner) settleMissing(call *regie.Call) {
	_, definition, there := x.tools.Lookup(call.Tool)
	away := x.tools.Away(call.Tool)
	switch {
	case away != nil:
		settleCall(call, regie.CallFailed, "", tool.NotThere(away))
	case !x.inScope(call):
		settleNotRun(call, regie.NotRunOutOfScope, regie.CallError{
			Code:    regie.Code(regie.NotRunOutOfScope),
			Message: "the tool is outside of what this agent may call: nothing was run",
		})
	case there && definition != call.Definition:
		settleCall(call, regie.CallFailed, "", &regie.CallError{
			Code: regie.CodeToolChanged, Message: "the definition of the tool has changed since the call was proposed: nothing was run", Retryable: true,
			Hint: "look at the tool as it is now, and propose the call again",
		})
	default:
		settleNotRun(call, regie.NotRunOutOfScope, regie.CallError{
			Code:    regie.CodeUnknownTool,
			Message: "the tool is no longer there",
		})
	}
}

// refuseOpen settles every open call of a batch without running it.
func refuseOpen(calls []regie.Call, code regie.NotRunCode, why string) {
	for i := range calls {
		if !calls[i].State.Settled() {
			settleNotRun(&calls[i], code, regie.CallError{Code: regie.Code(code), Message: why})
		}
	}
}

func settleNotRun(call *regie.Call, code regie.NotRunCode, problem regie.CallError) {
	settleCall(call, regie.CallNotRun, "", &problem)
	call.NotRun = code
}

func settleCall(call *regie.Call, state regie.CallState, result string, problem *regie.CallError) {
	call.State, call.Result, call.Error, call.SettledAt = state, result, problem, time.Now().UTC()
}

// anyCall reports whether is holds for one of the calls.
func anyCall(calls []regie.Call, is func(*regie.Call) bool) bool {
	for i := range calls {
		if is(&calls[i]) {
			return true
		}
	}
	return false
}

func isAction(c *regie.Call) bool  { return c.Kind == regie.KindAction }
func isStarted(c *regie.Call) bool { return c.State == regie.CallStarted }
func isOpen(c *regie.Call) bool    { return !c.State.Settled() }

func idsOf(calls []regie.Call) []regie.ID {
	out := make([]regie.ID, len(calls))
	for i := range calls {
		out[i] = calls[i].ID
	}
	return out
}
