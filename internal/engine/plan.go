package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/tool"
)

// plan turns a reply into its message and its calls. A call that cannot run is settled at once, so
// that each has exactly one result whatever the model wrote (invariant 4).
func (r *run) plan(h *heard) (regie.Message, []regie.Call) {
	r.circles = regie.Sentence{}
	message := regie.Message{
		ID: regie.NewID(), Sender: regie.SenderAI, Author: r.author(),
		Exchange: r.exchange.Number, TraceID: r.round.TraceID, Usage: &h.reply.Usage,
		AI: &regie.AIReply{StopReason: h.reply.StopReason, Verbatim: h.verbatim, Cached: h.reply.Cached},
	}
	check := false
	if h.said != nil {
		message.AI.PostText, message.AI.KeepControl, check = h.said.PostText,
			h.said.KeepControl, h.said.ValidationRequest
	}
	var calls []regie.Call
	first := map[regie.Hash]regie.ID{} // by signature, in this batch
	// the same of queries since the last action: after one they may bring something else
	reads := map[regie.Hash]regie.ID{}
	used := map[string]struct{}{} // provider ids of this batch
	for _, part := range h.parts {
		stored := regie.Part{Type: part.Type, Text: part.Text, Provider: part.Provider, Opaque: part.Opaque}
		if part.Type == regie.PartCall {
			call := r.propose(part.Call, proposal{before: calls, message: message.ID, used: used, check: check})
			if !call.State.Settled() {
				same, role := first, r.role(&call)
				if call.Kind == regie.KindQuery && role == "" {
					same = reads
				}
				if earlier, ok := same[call.Signature]; ok {
					call.DuplicateOf = earlier
					notRun(&call, regie.NotRunDuplicateInBatch, regie.CallError{
						Code:    "DUPLICATE_IN_BATCH",
						Message: "the same call stands earlier in this reply: see its result",
					})
				} else {
					same[call.Signature] = call.ID
					if call.Kind == regie.KindAction && role == "" {
						clear(reads)
					}
				}
			}
			stored.CallID, stored.Tool, stored.Arguments = call.ID, call.Tool, regie.HashOf([]byte(call.Arguments))
			if call.ProviderCallID != part.Call.ID {
				stored.ProviderCallID = part.Call.ID
			}
			calls = append(calls, call)
		}
		message.AI.Parts = append(message.AI.Parts, stored)
	}
	return message, calls
}

// proposal is what a call is proposed in.
type proposal struct {
	before  []regie.Call // of the same reply
	message regie.ID
	used    map[string]struct{} // the provider's ids in the reply
	check   bool                // the model asks for a person's check of its actions (decision 40)
}

// propose makes the row of one call and says at once why it cannot run, if it cannot.
func (r *run) propose(wire *provider.Call, in proposal) regie.Call {
	ordinal, before, used := len(in.before), in.before, in.used
	checked := r.tools.Check(wire.Name, wire.Arguments)
	call := regie.Call{
		ID: regie.NewID(), SessionID: r.session.ID, RoundID: r.round.ID, Exchange: r.exchange.Number,
		Ordinal: ordinal, MessageID: in.message,
		Origin: regie.OriginModel, Tool: checked.Name, ProviderCallID: wire.ID,
		Kind: regie.KindAction, Class: regie.ClassOnce,
		Signature: checked.Signature, Arguments: wire.Arguments, State: regie.CallProposed,
	}
	if _, repeats := r.thread.callIDs[wire.ID]; repeats || wire.ID == "" {
		call.ProviderCallID = "call_" + call.ID.String()
	}
	if _, repeats := used[wire.ID]; repeats {
		call.ProviderCallID = "call_" + call.ID.String()
	}
	used[call.ProviderCallID] = struct{}{}
	if checked.Tool != nil {
		definition := checked.Tool.Definition()
		call.Kind, call.Class, call.Definition = definition.Kind, definition.Class, checked.Definition
		if definition.Role == regie.RoleClient {
			call.Origin = regie.OriginClient
		}
	}
	switch {
	case ordinal >= r.round.Limits.CallsInReply:
		problem := regie.CallError{Code: "OVER_LIMIT", Message: fmt.Sprintf("not executed: over the limit of %d calls",
			r.round.Limits.CallsInReply), Retryable: true}
		if ordinal == r.round.Limits.CallsInReply { // said in full once: there may be thousands
			problem.Message += " in one reply, as all that follow; propose them again in the next one"
		}
		notRun(&call, regie.NotRunOverLimit, problem)
	case r.withheld() && !r.plans(&checked):
		notRun(&call, regie.NotRunOutOfScope, regie.CallError{
			Code: codeToolsWithheld, Message: "not run: after what has succeeded only an answer is wanted here",
			Hint: "answer the person from what you have",
		})
	case checked.Error != nil:
		if !r.guarded(&call, regie.ToolDefinition{}, wire.ID, before, approval.Judgement{}) {
			notRun(&call, checked.NotRun, *checked.Error)
		}
	case checked.Tool.Definition().Role == regie.RoleQuestion && !r.policy.Questions:
		notRun(&call, regie.NotRunOutOfScope, regie.CallError{
			Code: regie.CodeUnknownTool, Message: "nobody can be asked in this run",
			Hint: "decide by yourself, and say in your answer what you assumed",
		})
	case call.Origin == regie.OriginClient: // its client decides what becomes of it
		r.guarded(&call, checked.Tool.Definition(), wire.ID, before, approval.Judgement{})
	default:
		call.Ask = checked.Asks || in.check && call.Kind == regie.KindAction
		judged := r.judge(&call, checked.Tool.Definition())
		if !r.guarded(&call, checked.Tool.Definition(), wire.ID, before, judged) {
			r.put(&call, judged)
		}
		r.fresh[call.ID] = true
	}
	return call
}

// codeToolsWithheld is what the model reads of a call where it may only answer (spec 3.3).
const codeToolsWithheld regie.Code = "TOOLS_WITHHELD"

func (r *run) plans(c *tool.Checked) bool {
	return c.Tool != nil && c.Tool.Definition().Role == regie.RolePlan
}

// startNext prepares the next call of the batch if it is an action: with its intent it becomes
// STARTED, a failure to prepare settles it and the next one is looked at. It returns the started
// call, or nil where a query comes next or nothing is left.
func (r *run) startNext(ctx context.Context, calls []regie.Call) (*regie.Call, error) {
	for i := range calls {
		call := &calls[i]
		// what ends the round comes last
		if call.State.Settled() || r.clients(call) || r.role(call) == regie.RoleComplete {
			continue
		}
		if call.Kind == regie.KindQuery || r.mustWait(calls, i) {
			return nil, nil
		}
		if call.State == regie.CallStarted {
			return nil, regie.Errorf(regie.CodeInternal, "a started call stands before the next one")
		}
		target, inv := r.invocation(call)
		if target == nil {
			r.gone(call)
		} else if !r.clear(call, target) && (!call.State.Settled() || r.policyFails(calls)) {
			return nil, nil // it is asked about anew, or the run ends with it
		}
		if call.State.Settled() {
			if anyApproved(calls[i+1:]) { // what was shown of them may count on this one
				return nil, nil
			}
			continue
		}
		intent, problem := r.prepare(ctx, target, inv)
		if ctx.Err() != nil {
			return nil, nil //nolint:nilerr // stopped while preparing: nothing has started, and the loop sees why
		}
		if problem != nil {
			settle(call, regie.CallFailed, "", problem)
			if anyApproved(calls[i+1:]) {
				return nil, nil
			}
			continue
		}
		call.State, call.Intent, call.StartedAt, call.Attempts = regie.CallStarted, intent,
			time.Now().UTC(), call.Attempts+1
		return call, nil
	}
	return nil, nil
}

// prepare compares the world with what an approval showed and has the tool record its evidence
// (decision 20).
func (r *run) prepare(ctx context.Context, target tool.Tool, inv *tool.Invocation) (json.RawMessage, *regie.CallError) {
	if err := tool.CheckPreconditions(ctx, target, inv, inv.Preconditions); err != nil {
		return nil, &regie.CallError{
			Code: regie.CodeOf(err), Message: err.Error(), Retryable: true,
			Hint: "look at what is there now and propose the call again",
		}
	}
	return tool.Prepare(ctx, target, inv)
}

// arguments are what a call is stored to run with: the edited ones, or what the model wrote.
func (r *run) arguments(call *regie.Call) json.RawMessage {
	if len(call.Executed) > 0 {
		return call.Executed
	}
	return r.tools.Executable(call.Tool, call.Arguments)
}

// executable returns the arguments that a call runs with.
func (r *run) executable(call *regie.Call) json.RawMessage {
	if fault.Bug(fault.BugUnedited) {
		return r.tools.Executable(call.Tool, call.Arguments)
	}
	return r.arguments(call)
}

// invocation finds the tool of a call and what it is called with; nil where the tool is gone, or is
// not the one that was judged (decision 20).
func (r *run) invocation(call *regie.Call) (tool.Tool, *tool.Invocation) {
	target, definition, ok := r.tools.Lookup(call.Tool)
	if !ok || definition != call.Definition {
		return nil, nil
	}
	r.lastsTool(target)
	inv := &tool.Invocation{
		CallID: call.ID, RoundID: r.round.ID, SessionID: r.session.ID, Workspace: r.workspace,
		Arguments: r.executable(call), Intent: call.Intent,
		Keep: r.cfg.Store.PutBlob, Earlier: r.earlier(call), Beside: r.beside(call),
		Unattended: r.automation() || !r.asksPeople(),
		Left:       r.cfg.Left, Mask: r.cfg.Mask,
	}
	session, round, exchange, id := r.session.ID, r.round.ID, r.exchange.Number, call.ID
	if r.cfg.Output != nil {
		inv.Output = func(text string) { r.cfg.Output(session, round, exchange, id, text) }
	}
	if r.cfg.Said != nil {
		inv.Say = func(said regie.Sentence) { r.cfg.Said(session, round, exchange, id, said) }
	}
	if call.State == regie.CallApproved {
		inv.Preconditions = r.reviews[call.ID].Preview.Preconditions
	}
	return target, inv
}

// aside is how long before a call was started others may have changed what had been secured for it
// by then.
const aside = time.Minute

// beside gives what other calls and undos made of files in the workspace while a call ran. What
// commands that have not ended by then do is not known.
func (r *run) beside(call *regie.Call) func(ctx context.Context) ([]regie.FileChange, error) {
	return func(ctx context.Context) ([]regie.FileChange, error) {
		later, err := r.cfg.Store.Later(ctx, r.workspace.ID, call.StartedAt.Add(-aside))
		if err != nil {
			return nil, err
		}
		var out []regie.FileChange
		for i := range later.Calls {
			c := &later.Calls[i]
			target, _, ok := r.tools.Lookup(c.Tool)
			if !ok || c.ID == call.ID || tool.SidesOf(target).Undoer == nil {
				continue
			}
			// what it says counts
			made, _ := tool.SidesOf(target).Undoer.Changes(ctx, &tool.Invocation{
				CallID: c.ID, Workspace: r.workspace,
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

// earlier gives the calls of a call's toolkit in its session, the newest first, as the model knew
// them when it proposed the call: what it reads in the same reply it has not seen yet.
func (r *run) earlier(call *regie.Call) func(ctx context.Context, visit func(regie.Call) bool) error {
	toolkit, _, _ := strings.Cut(call.Tool, ".")
	id, message := call.ID, call.MessageID
	return func(ctx context.Context, visit func(regie.Call) bool) error {
		return r.cfg.Store.RecentCalls(ctx, r.session.ID, toolkit, func(c regie.Call) bool {
			if c.ID == id || c.MessageID == message && c.Kind == regie.KindQuery {
				return true
			}
			return visit(c)
		})
	}
}

// refuse settles every open call of a batch without running it.
func refuse(calls []regie.Call, code regie.NotRunCode, why string) {
	for i := range calls {
		if !calls[i].State.Settled() {
			notRun(&calls[i], code, regie.CallError{Code: regie.Code(code), Message: why})
		}
	}
}

func notRun(call *regie.Call, code regie.NotRunCode, problem regie.CallError) {
	settle(call, regie.CallNotRun, "", &problem)
	call.NotRun = code
}

func settle(call *regie.Call, state regie.CallState, result string, problem *regie.CallError) {
	call.State, call.Result, call.Error, call.SettledAt = state, result, problem, time.Now().UTC()
}

func allSettled(calls []regie.Call) bool {
	for i := range calls {
		if !calls[i].State.Settled() {
			return false
		}
	}
	return true
}

func ids(calls []regie.Call) []regie.ID {
	out := make([]regie.ID, len(calls))
	for i := range calls {
		out[i] = calls[i].ID
	}
	return out
}
