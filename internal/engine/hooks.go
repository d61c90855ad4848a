package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
)

// Hooks are the commands that a person has set up around calls and rounds (spec 13). Their methods
// may be called from any goroutine.
type Hooks interface {
	// Matches reports whether any of them runs at a point for a tool; for a round the tool is
	// empty.
	Matches(on regie.HookPoint, tool string) bool
	// Run runs them and says what came of each. Each is bounded by its own timeout; where ctx ends,
	// what was cut is left out.
	Run(ctx context.Context, in regie.HookInput) []regie.HookRun
	// Bound is how long they may take there together, by their own timeouts.
	Bound(on regie.HookPoint, tool string) time.Duration
}

// maxHooked bounds the result of a call in a hook's input, in bytes.
const maxHooked = 64 << 10

// callHooks runs the hooks of calls and rounds.
type callHooks struct {
	*run
	ran    map[consulted][]regie.HookRun // what hooks said of calls, in this process
	toldOf map[regie.ID]bool             // the calls whose results hooks were told of, by this process
}

// consulted names a call with the arguments that it would run with: an edit makes another one of
// it.
type consulted struct {
	call      regie.ID
	arguments regie.Hash
}

// hasHooks reports whether hooks of a point run for a call: those of the loop's own tools and of a
// client's have no effect here.
func (h *callHooks) hasHooks(on regie.HookPoint, call *regie.Call) bool {
	return h.cfg.Hooks != nil && !h.isClientCall(call) && h.roleOf(call) == "" && h.cfg.Hooks.Matches(on, call.Tool)
}

// anyHooked reports whether a batch waits for hooks: then nothing of it starts together with its
// reply.
func (h *callHooks) anyHooked(calls []regie.Call) bool {
	return slices.ContainsFunc(calls, func(c regie.Call) bool {
		return !c.State.Settled() && (h.hasHooks(regie.HookBeforeTool, &c) || h.hasHooks(regie.HookAfterTool, &c))
	})
}

// runHooks runs hooks, and tells how long they may take.
func (h *callHooks) runHooks(ctx context.Context, in regie.HookInput) []regie.HookRun {
	tool := ""
	if in.Call != nil {
		tool = in.Call.Tool
	}
	h.reportBusy(h.cfg.Hooks.Bound(in.On, tool))
	defer h.reportAlive()
	return h.cfg.Hooks.Run(ctx, in)
}

func (h *callHooks) hookKey(call *regie.Call) consulted {
	return consulted{call.ID, regie.HashOf(h.runner.callArguments(call))}
}

// objectionsTo returns what hooks have against a call as it would run now.
func (h *callHooks) objectionsTo(call *regie.Call) (out []regie.Ground) {
	if h.cfg.Hooks == nil {
		return nil
	}
	runs := h.ran[h.hookKey(call)]
	for i := range runs {
		if runs[i].Verdict != "" {
			out = append(out, regie.Ground{
				Source: regie.SourceHook, Verdict: runs[i].Verdict,
				Sentence: runs[i].Objection(),
			})
		}
	}
	return out
}

// needsHooks reports whether a call's hooks have not run for what it would run with.
func (h *callHooks) needsHooks(call *regie.Call) bool {
	_, done := h.ran[h.hookKey(call)]
	return !done && h.hasHooks(regie.HookBeforeTool, call)
}

// tellCalls runs the hooks of calls with stored results. A stop does not cut them: they have their
// own bound.
func (h *callHooks) tellCalls(due []*regie.Call) (ran []regie.HookRun) {
	for _, call := range due {
		ran = append(ran, h.runHooks(h.commit, h.hookInput(regie.HookAfterTool, call))...)
		h.toldOf[call.ID] = true
	}
	return ran
}

// hookInput returns the input of hooks.
func (h *callHooks) hookInput(on regie.HookPoint, call *regie.Call) regie.HookInput {
	in := regie.HookInput{
		On: on, SessionID: h.session.ID, SessionType: h.session.Type, RoundID: h.round.ID,
		WorkspaceID: h.workspace.ID, Workspace: h.workspace.Root,
		Agent: h.round.Agent, Provider: h.round.Provider, Model: h.round.Model,
	}
	if on == regie.HookAfterRound {
		in.End, in.Note = h.round.End, h.round.EndNote.String()
	}
	if call == nil {
		return in
	}
	in.Call = &regie.HookCall{
		ID: call.ID, Tool: call.Tool, Kind: call.Kind, Class: call.Class,
		Arguments: h.runner.callArguments(call),
	}
	if !json.Valid(in.Call.Arguments) { // it is refused without them
		in.Call.Arguments = json.RawMessage("null")
	}
	if on == regie.HookAfterTool {
		in.Call.State, in.Call.Result, in.Call.Error = call.State, call.Result, call.Error
		if len(in.Call.Result) > maxHooked {
			in.Call.Result, in.Call.Truncated = in.Call.Result[:maxHooked], true
		}
	}
	return in
}

// runBeforeHooks runs the hooks of calls that may start next, outside of every transition and
// before any intent. What they object to counts when the call is judged; that they ran is stored
// before. A process that takes the round up runs them again.
func (cb *callBatch) runBeforeHooks(ctx context.Context) error {
	if cb.cfg.Hooks == nil {
		return nil
	}
	var ran []regie.HookRun
	for i := range cb.calls {
		call := &cb.calls[i]
		key := cb.hooks.hookKey(call)
		if _, done := cb.hooks.ran[key]; done || !cb.mayStart(call) || !cb.hooks.hasHooks(regie.HookBeforeTool, call) {
			continue
		}
		runs := cb.hooks.runHooks(ctx, cb.hooks.hookInput(regie.HookBeforeTool, call))
		if ctx.Err() != nil {
			break // it is asked again; the loop sees why
		}
		cb.hooks.ran[key] = runs
		delete(cb.judge.fresh, call.ID)
		ran = append(ran, runs...)
	}
	err := cb.noteHooks(ran)
	if len(ran) > 0 {
		fault.Point(fault.HookAfter)
	}
	return err
}

// mayStart reports whether a call could be started next by this process. One that people were asked
// about is looked at when they have answered.
func (cb *callBatch) mayStart(call *regie.Call) bool {
	switch call.State {
	case regie.CallProposed, regie.CallApproved:
		return true
	case regie.CallAwaitingApproval:
		return !cb.asker.awaitsAnswer(call)
	case regie.CallStarted: // by another process, which may not have run it
		again := call.Class == regie.ClassKeyed || call.Class == regie.ClassVerifiable
		return call.ID != cb.started && (again || !cb.recovery.mayHaveRun(call))
	default:
		return false
	}
}

// untoldCalls returns the calls with results that their hooks have not received.
func (cb *callBatch) untoldCalls() (due []*regie.Call) {
	for i := range cb.calls {
		call := &cb.calls[i]
		ran := call.State == regie.CallSucceeded || call.State == regie.CallFailed || call.State == regie.CallUnknown
		if ran && !cb.hooks.toldOf[call.ID] && cb.hooks.hasHooks(regie.HookAfterTool, call) {
			due = append(due, call)
		}
	}
	return due
}

// runAfterHooks runs the hooks of finished calls once their results are stored. The next holder of
// an open batch reports all of its results again, so each arrives at least once; the call's id
// identifies it.
func (cb *callBatch) runAfterHooks() error {
	if cb.cfg.Hooks == nil {
		return nil
	}
	due := cb.untoldCalls()
	if len(due) == 0 {
		return nil
	}
	if err := cb.saveResults(); err != nil {
		return err
	}
	return cb.noteHooks(cb.hooks.tellCalls(due))
}

// runRoundHooks runs the hooks of a round that has asked nothing yet. One that objects ends it.
func (r *run) runRoundHooks(ctx context.Context) error {
	begins := r.round.Phase == regie.PhaseModel && r.exchange.Number == 1 && r.round.Stop == ""
	if r.cfg.Hooks == nil || !begins || !r.cfg.Hooks.Matches(regie.HookBeforeRound, "") {
		return nil
	}
	ran := r.hooks.runHooks(ctx, r.hooks.hookInput(regie.HookBeforeRound, nil))
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the loop sees why, and whoever goes on asks again
	}
	if err := r.noteHooks(ran); err != nil {
		return err
	}
	if worst := regie.Strictest(ran); worst != nil {
		return r.endEarly(regie.EndDenied, worst.Objection())
	}
	return nil
}

// runEndHooks runs the hooks of an ended round, and those of results that were stored with its end.
// Their outcome is not stored: the round is over.
func (r *run) runEndHooks() {
	if r.cfg.Hooks == nil || r.round.State != regie.RoundEnded {
		return
	}
	r.hooks.tellCalls(r.batch.untoldCalls())
	if r.cfg.Hooks.Matches(regie.HookAfterRound, "") {
		r.hooks.runHooks(r.commit, r.hooks.hookInput(regie.HookAfterRound, nil))
	}
}
