package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
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

// maxHooked bounds the result that a hook is told of a call, in bytes.
const maxHooked = 64 << 10

// consulted names a call with the arguments that it would run with: an edit makes another one of
// it.
type consulted struct {
	call      regie.ID
	arguments regie.Hash
}

// hooked reports whether hooks of a point run for a call: those of the loop's own tools and of a
// client's have no effect here.
func (r *run) hooked(on regie.HookPoint, call *regie.Call) bool {
	return r.cfg.Hooks != nil && !r.clients(call) && r.role(call) == "" && r.cfg.Hooks.Matches(on, call.Tool)
}

// runHooks runs hooks, and tells how long they may take.
func (r *run) runHooks(ctx context.Context, in regie.HookInput) []regie.HookRun {
	tool := ""
	if in.Call != nil {
		tool = in.Call.Tool
	}
	r.lasts(r.cfg.Hooks.Bound(in.On, tool))
	defer r.beat()
	return r.cfg.Hooks.Run(ctx, in)
}

// anyHooked reports whether a batch waits for hooks: then nothing of it starts together with its
// reply.
func (r *run) anyHooked(calls []regie.Call) bool {
	return slices.ContainsFunc(calls, func(c regie.Call) bool {
		return !c.State.Settled() && (r.hooked(regie.HookBeforeTool, &c) || r.hooked(regie.HookAfterTool, &c))
	})
}

// consult runs the hooks of calls that may start next, outside of every transition and before any
// intent. What they object to counts when the call is judged; that they ran is stored before. A
// process that takes the round up runs them again.
func (r *run) consult(ctx context.Context) error {
	if r.cfg.Hooks == nil {
		return nil
	}
	var ran []regie.HookRun
	for i := range r.calls {
		call := &r.calls[i]
		key := r.consultedAs(call)
		if _, done := r.heard[key]; done || !r.mayStart(call) || !r.hooked(regie.HookBeforeTool, call) {
			continue
		}
		runs := r.runHooks(ctx, r.hookInput(regie.HookBeforeTool, call))
		if ctx.Err() != nil {
			break // it is asked again; the loop sees why
		}
		r.heard[key] = runs
		delete(r.fresh, call.ID)
		delete(r.cleared, call.ID)
		ran = append(ran, runs...)
	}
	err := r.noteHooks(ran)
	if len(ran) > 0 {
		fault.Point(fault.HookAfter)
	}
	return err
}

// mayStart reports whether a call could be started next by this process. One that people were asked
// about is looked at when they have answered.
func (r *run) mayStart(call *regie.Call) bool {
	switch call.State {
	case regie.CallProposed, regie.CallApproved:
		return true
	case regie.CallAwaitingApproval:
		return !r.waitsFor(call)
	case regie.CallStarted: // by another process, which may not have run it
		again := call.Class == regie.ClassKeyed || call.Class == regie.ClassVerifiable
		return call.ID != r.started && (again || !r.mayHaveRun(call))
	default:
		return false
	}
}

func (r *run) consultedAs(call *regie.Call) consulted {
	return consulted{call.ID, regie.HashOf(r.executable(call))}
}

// objections are what hooks have against a call as it would run now.
func (r *run) objections(call *regie.Call) (out []regie.Ground) {
	if r.cfg.Hooks == nil {
		return nil
	}
	runs := r.heard[r.consultedAs(call)]
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

// unheard reports whether a call's hooks have not run for what it would run with.
func (r *run) unheard(call *regie.Call) bool {
	_, done := r.heard[r.consultedAs(call)]
	return !done && r.hooked(regie.HookBeforeTool, call)
}

// tellResults runs the hooks of calls that have run, once their results are stored. Whoever takes
// up an open batch tells of all of its results again, so each is told at least once; the call's id
// says which it is.
func (r *run) tellResults() error {
	if r.cfg.Hooks == nil {
		return nil
	}
	var due []*regie.Call
	for i := range r.calls {
		if call := &r.calls[i]; r.hasRun(call) && !r.toldOf[call.ID] && r.hooked(regie.HookAfterTool, call) {
			due = append(due, call)
		}
	}
	if len(due) == 0 {
		return nil
	}
	if err := r.save(); err != nil {
		return err
	}
	return r.noteHooks(r.tellCalls(due))
}

// tellCalls runs the hooks of calls whose results are stored. A stop does not cut them: they have
// their own bound.
func (r *run) tellCalls(due []*regie.Call) (ran []regie.HookRun) {
	for _, call := range due {
		ran = append(ran, r.runHooks(r.commit, r.hookInput(regie.HookAfterTool, call))...)
		r.toldOf[call.ID] = true
	}
	return ran
}

// hasRun reports whether a call has a result of its own.
func (r *run) hasRun(call *regie.Call) bool {
	return call.State == regie.CallSucceeded || call.State == regie.CallFailed || call.State == regie.CallUnknown
}

// openRound runs the hooks of a round that has asked nothing yet. One that objects ends it.
func (r *run) openRound(ctx context.Context) error {
	begins := r.round.Phase == regie.PhaseModel && r.exchange.Number == 1 && r.round.Stop == ""
	if r.cfg.Hooks == nil || !begins || !r.cfg.Hooks.Matches(regie.HookBeforeRound, "") {
		return nil
	}
	ran := r.runHooks(ctx, r.hookInput(regie.HookBeforeRound, nil))
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

// tellEnd runs the hooks of a round that has ended, and those of results that were stored with its
// end. Nobody stores what comes of them: the round is over.
func (r *run) tellEnd() {
	if r.cfg.Hooks == nil || r.round.State != regie.RoundEnded {
		return
	}
	for i := range r.calls {
		if call := &r.calls[i]; r.hasRun(call) && !r.toldOf[call.ID] && r.hooked(regie.HookAfterTool, call) {
			r.tellCalls([]*regie.Call{call})
		}
	}
	if r.cfg.Hooks.Matches(regie.HookAfterRound, "") {
		r.runHooks(r.commit, r.hookInput(regie.HookAfterRound, nil))
	}
}

// noteHooks stores what came of hooks, for the audit.
func (r *run) noteHooks(ran []regie.HookRun) error {
	if len(ran) == 0 {
		return nil
	}
	_, err := r.cfg.Store.Note(r.commit, r.fence, store.Note{Message: r.toolNotice(regie.ToolNotice{Hooks: ran})})
	return err
}

// hookInput is what hooks are told.
func (r *run) hookInput(on regie.HookPoint, call *regie.Call) regie.HookInput {
	in := regie.HookInput{
		On: on, SessionID: r.session.ID, SessionType: r.session.Type, RoundID: r.round.ID,
		WorkspaceID: r.workspace.ID, Workspace: r.workspace.Root,
		Agent: r.round.Agent, Provider: r.round.Provider, Model: r.round.Model,
	}
	if on == regie.HookAfterRound {
		in.End, in.Note = r.round.End, r.round.EndNote.String()
	}
	if call == nil {
		return in
	}
	in.Call = &regie.HookCall{
		ID: call.ID, Tool: call.Tool, Kind: call.Kind, Class: call.Class,
		Arguments: r.executable(call),
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
