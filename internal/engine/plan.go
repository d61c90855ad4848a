package engine

import (
	"fmt"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/provider"
)

// planner turns a reply into calls.
type planner struct{ *run }

// planReply turns a reply into its message and its calls. It settles a call that cannot run at
// once, so that each has exactly one result regardless of the model's output (invariant 4).
func (p *planner) planReply(h *decodedReply) (regie.Message, []regie.Call) {
	p.judge.circles = regie.Sentence{}
	message := regie.Message{
		ID: regie.NewID(), Sender: regie.SenderAI, Author: p.targets.replyAuthor(),
		Exchange: p.exchange.Number, TraceID: p.round.TraceID, Usage: &h.reply.Usage,
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
			call := p.proposeCall(part.Call, proposal{before: calls, message: message.ID, used: used, check: check})
			if !call.State.Settled() {
				same, role := first, p.roleOf(&call)
				if call.Kind == regie.KindQuery && role == "" {
					same = reads
				}
				if earlier, ok := same[call.Signature]; ok {
					call.DuplicateOf = earlier
					settleNotRun(&call, regie.NotRunDuplicateInBatch, regie.CallError{
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

// proposeCall makes the row of one call and says at once why it cannot run, if it cannot.
func (p *planner) proposeCall(wire *provider.Call, in proposal) regie.Call {
	ordinal, before, used := len(in.before), in.before, in.used
	checked := p.tools.Check(wire.Name, wire.Arguments)
	call := regie.Call{
		ID: regie.NewID(), SessionID: p.session.ID, RoundID: p.round.ID, Exchange: p.exchange.Number,
		Ordinal: ordinal, MessageID: in.message,
		Origin: regie.OriginModel, Tool: checked.Name, ProviderCallID: wire.ID,
		Kind: regie.KindAction, Class: regie.ClassOnce,
		Signature: checked.Signature, Arguments: wire.Arguments, State: regie.CallProposed,
	}
	if _, repeats := p.budget.thread.callIDs[wire.ID]; repeats || wire.ID == "" {
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
	case ordinal >= p.round.Limits.CallsInReply:
		problem := regie.CallError{Code: "OVER_LIMIT", Message: fmt.Sprintf("not executed: over the limit of %d calls",
			p.round.Limits.CallsInReply), Retryable: true}
		if ordinal == p.round.Limits.CallsInReply { // said in full once: there may be thousands
			problem.Message += " in one reply, as all that follow; propose them again in the next one"
		}
		settleNotRun(&call, regie.NotRunOverLimit, problem)
	case p.isOverSessionCalls(len(p.budget.thread.callIDs), ordinal, &checked):
		settleNotRun(&call, regie.NotRunOverLimit, regie.CallError{
			Code:    "OVER_LIMIT",
			Message: fmt.Sprintf("not executed: over the limit of %d calls in this session", p.round.Limits.SessionCalls),
			Hint:    "answer from what you have, and say what is left",
		})
	case p.budget.toolsWithheld() && !p.runner.isPlan(&checked):
		settleNotRun(&call, regie.NotRunOutOfScope, regie.CallError{
			Code: codeToolsWithheld, Message: "not run: after what has succeeded only an answer is wanted here",
			Hint: "answer the person from what you have",
		})
	case checked.Error != nil:
		if !p.judge.applyGuard(&call, regie.ToolDefinition{}, wire.ID, before, approval.Judgement{}) {
			settleNotRun(&call, checked.NotRun, *checked.Error)
		}
	case p.roleOf(&call) == regie.RoleQuestion && !p.policy.Questions && p.runner.isPlan(&checked):
		settleNotRun(&call, regie.NotRunOutOfScope, regie.CallError{
			Code: codeNobodyApproves, Message: "not asked: nobody can approve the plan in this run",
			Hint: "end with the plan as your answer; the person can start another run that carries it out",
		})
	case checked.Tool.Definition().Role == regie.RoleQuestion && !p.policy.Questions:
		settleNotRun(&call, regie.NotRunOutOfScope, regie.CallError{
			Code: regie.CodeUnknownTool, Message: "nobody can be asked in this run",
			Hint: "decide by yourself, and say in your answer what you assumed",
		})
	case call.Origin == regie.OriginClient: // its client decides what becomes of it
		p.judge.applyGuard(&call, checked.Tool.Definition(), wire.ID, before, approval.Judgement{})
	default:
		call.Ask = checked.Asks || in.check && call.Kind == regie.KindAction
		judged := p.judge.judgeCall(&call, checked.Tool.Definition())
		if !p.judge.applyGuard(&call, checked.Tool.Definition(), wire.ID, before, judged) {
			p.judge.applyVerdict(&call, judged)
		}
		p.judge.fresh[call.ID] = true
	}
	return call
}

// planModule completes the question whether a plan is to be carried out (decision 68): a yes in
// plan mode says which mode follows it.
func (p *planner) planModule(module regie.Module) regie.Module {
	title := "Carry out this plan?"
	ways := []string{"yes, and ask me before each change", "yes, and change files without asking"}
	if p.policy.French {
		title = "Exécuter ce plan ?"
		ways = []string{"oui, en me demandant avant chaque modification", "oui, en modifiant les fichiers sans demander"}
	}
	module.Text = title + "\n" + module.Text
	if p.judge.session.ApprovalMode == regie.ModePlan {
		module.Options = ways
	}
	return module
}

// proposal is what a call is proposed in.
type proposal struct {
	before  []regie.Call // of the same reply
	message regie.ID
	used    map[string]struct{} // the provider's ids in the reply
	check   bool                // the model asks for a person's check of its actions (decision 40)
}

// codeNobodyApproves is the code of a plan in a run without a person to approve it.
const codeNobodyApproves regie.Code = "NOBODY_APPROVES"

// codeToolsWithheld is what the model reads of a call where it may only answer (spec 3.3).
const codeToolsWithheld regie.Code = "TOOLS_WITHHELD"
