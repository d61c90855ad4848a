package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/tool"
)

// judge gives the verdict on calls under the rules of the moment.
type judge struct {
	*run
	rules   []regie.Rule
	rulesAt time.Time                       // when they were read
	judged  map[regie.ID]approval.Judgement // of the calls that are to be put to a person
	fresh   map[regie.ID]bool               // judged by this process, under the rules of now
	byMode  map[regie.ID]bool               // allowed by the session's mode alone, when last judged
	circles regie.Sentence                  // why the reply that was just planned ends the round (decision 30)
}

// readRules takes the standing rules as they are now: the policy is always the current one
// (decision 36). Where one was made, was revoked or has expired since, what was judged before is
// judged again.
func (j *judge) readRules() error {
	rules, err := j.cfg.Store.Rules(j.commit, j.session.WorkspaceID, j.session.ID)
	if err != nil {
		return err
	}
	mode, err := j.cfg.Store.Mode(j.commit, j.session.ID)
	if err != nil {
		return err
	}
	now := time.Now()
	same := slices.EqualFunc(j.rules, rules, func(a, b regie.Rule) bool { return a.ID == b.ID })
	same = same && mode == j.session.ApprovalMode
	for i := range rules {
		same = same && rules[i].StateAt(j.rulesAt) == rules[i].StateAt(now)
	}
	if j.cfg.Files != nil {
		files := j.cfg.Files(j.commit, j.workspace.Root, j.round.Agent, j.session.AgentVersion)
		same, j.files = same && files.Hash == j.files.Hash, files
	}
	if !same {
		clear(j.fresh)
	}
	j.rules, j.rulesAt, j.session.ApprovalMode = rules, now, mode
	return nil
}

// refresh takes the rules and the thread as they are now: what starts is judged by them.
func (j *judge) refresh(ctx context.Context) error {
	return errors.Join(j.readRules(), j.budget.warmGuard(ctx))
}

// judgeCall returns the verdict on a call as it would run now (decision 19), when it is proposed
// and again before it starts (decision 20).
func (j *judge) judgeCall(call *regie.Call, definition regie.ToolDefinition) approval.Judgement {
	executable := j.runner.callArguments(call)
	var arguments map[string]any
	_ = json.Unmarshal(executable, &arguments) // they were validated; what cannot be read matches no scope
	signature := call.Signature
	if len(call.Executed) > 0 {
		signature = j.tools.Check(call.Tool, string(call.Executed)).Signature
	}
	in := approval.Input{
		Tool: call.Tool, Kind: definition.Kind, Risk: definition.Risk, Role: definition.Role,
		Signature: signature, Arguments: arguments,
		Levels: slices.Concat(j.cfg.levels(j.session), j.files.Levels), Policy: j.policy,
		WorkspaceID: j.session.WorkspaceID, SessionID: j.session.ID,
		Now: time.Now(), ModelAsks: call.Ask, UnresolvedUnknown: j.unresolvedUnknown(call),
		Objections: j.hooks.objectionsTo(call),
	}
	in.Mode, in.Rules, in.Files = j.session.ApprovalMode, j.rules, j.files.Rules
	if in.Mode == regie.ModePlan && j.isCommand() { // a person's own command is no action of the agent
		in.Mode = regie.ModeAsk
	}
	in.Sandboxed = in.Mode == regie.ModeAuto && j.cfg.Confines != nil && j.cfg.Confines(j.workspace.Root)
	if target, inv := j.runner.newInvocation(call); target != nil {
		in.ToolAsks = tool.MustAsk(j.commit, target, inv)
		j.addFlow(&in, target, inv)
		var line tool.CommandLine
		line, in.Runs = tool.Command(j.commit, target, inv)
		in.Parts, in.Network, in.Confined, in.Unprotected = line.Parts, line.Network, line.Confined, line.Unprotected
		in.Undoable = !in.Runs && tool.SidesOf(target).Changes != nil
	}
	judged := approval.Decide(in)
	byRule := slices.ContainsFunc(judged.Grounds, func(g regie.Ground) bool { return g.Source == regie.SourceRule })
	if judged.Verdict == regie.VerdictAllow && byRule && j.throughLink(call, arguments) {
		in.Rules = slices.DeleteFunc(slices.Clone(in.Rules), func(rule regie.Rule) bool {
			return rule.Verdict == regie.VerdictAllow
		})
		in.Files = slices.DeleteFunc(slices.Clone(in.Files), func(rule approval.FileRule) bool {
			return rule.Verdict == regie.VerdictAllow
		})
		judged = approval.Decide(in)
	}
	j.byMode[call.ID] = judged.ByMode && j.grantedVerdict(call) == regie.VerdictAllow
	return judged
}

// throughLink reports whether a call is about a file that no argument names letter by letter: a
// link leads to it. A rule compares letters, so it cannot know where such a call goes.
func (j *judge) throughLink(call *regie.Call, arguments map[string]any) bool {
	target, inv := j.runner.newInvocation(call)
	if target == nil {
		return false
	}
	preview, _ := tool.DescribeCall(j.commit, target, inv)
	return !preview.Named(arguments)
}

// unresolvedUnknown reports whether an earlier call of the session with this signature has no known
// outcome (decision 5).
func (j *judge) unresolvedUnknown(call *regie.Call) bool {
	g := j.budget.thread.guard
	return g != nil && g.isUnknown(g.signatureOf(call))
}

// applyGuard has the guard look at a call that was just proposed (decisions 9 and 30). It reports
// whether that settled the call.
func (j *judge) applyGuard(call *regie.Call, definition regie.ToolDefinition, wireID string, before []regie.Call,
	judged approval.Judgement,
) bool {
	v, earlier := j.budget.thread.guard.judgeProposal(call, definition, proposed{providerID: wireID, before: before})
	if v.endRound {
		j.circles = v.note
	}
	asks := judged.Verdict == regie.VerdictAsk || judged.Verdict == regie.VerdictMustAsk
	if v.notRun == "" || v.overridable && asks && j.asksPeople() {
		return false
	}
	if v.problem != nil {
		settleNotRun(call, v.notRun, *v.problem)
		return true
	}
	settleCall(call, regie.CallNotRun, v.result, nil)
	call.NotRun = v.notRun
	if earlier != nil {
		call.ResultBlob = earlier.ResultBlob
	}
	return true
}

// applyVerdict decides what a judgement means for a call that was just proposed, or that is about
// to start.
func (j *judge) applyVerdict(call *regie.Call, judged approval.Judgement) {
	switch {
	case judged.Verdict == regie.VerdictAllow:
	case judged.Verdict == regie.VerdictForbid && judged.Grounds[0].Source == regie.SourceMode:
		settleNotRun(call, regie.NotRunOutOfScope, regie.CallError{
			Code: codePlanMode, Message: "not run: the session is in plan mode, where only queries run", Retryable: true,
			Hint: "look around with queries; then call update_plan with approve: true, so that the person can approve your plan",
		})
	case judged.Verdict == regie.VerdictForbid:
		settleNotRun(call, regie.NotRunDenied, regie.CallError{
			Code:    regie.CodeForbidden,
			Message: "this call is forbidden: " + joinGrounds(judged.Grounds),
		})
	case j.policy.OnApproval == approval.DenyAndGoOn:
		settleNotRun(call, regie.NotRunDenied, regie.CallError{
			Code: codeApprovalNeeded, Message: "this call needs a person's approval and nobody can be asked in this run", Hint: "tell the person what you would have done; the run can be started again with this tool allowed",
		})
	case j.policy.OnApproval == approval.FailRun:
		settleNotRun(call, regie.NotRunDenied, regie.CallError{
			Code:    codeApprovalNeeded,
			Message: "this call needs a person's approval, and the run was told to end then",
		})
	default:
		call.State = regie.CallAwaitingApproval
		j.judged[call.ID] = judged
	}
}

// recheckCall judges a call again right before its start (decision 20): it starts under the same or
// a milder verdict, needs a new approval under a stricter one, and is not run if forbidden. It
// reports whether the call may start.
func (j *judge) recheckCall(call *regie.Call, target tool.Tool) bool {
	if j.hooks.needsHooks(call) { // it was edited a moment ago: its hooks come first
		return false
	}
	// judged a moment ago and not edited
	if j.fresh[call.ID] && call.State == regie.CallProposed {
		return true
	}
	judged := j.judgeCall(call, target.Definition())
	if !judged.Verdict.Stricter(j.grantedVerdict(call)) {
		j.fresh[call.ID] = true
		return true
	}
	delete(j.reviews, call.ID)
	j.applyVerdict(call, judged)
	return false
}

// stillAllowed judges a call that has started elsewhere, and reports whether that is no stricter
// than what it was started under.
func (j *judge) stillAllowed(call *regie.Call) (approval.Judgement, bool) {
	target, _, ok := j.tools.Lookup(call.Tool)
	if !ok { // without its tool it does not run: newInvocation says so
		return approval.Judgement{}, true
	}
	judged := j.judgeCall(call, target.Definition())
	return judged, !judged.Verdict.Stricter(j.grantedVerdict(call))
}

// grantedVerdict returns the strictest verdict under which a call may start: a person's approval of
// exactly this call, else only what needs no approval. It compares what an approval binds (decision
// 20): the definition and the arguments. The tool compares the preconditions with the world: see
// prepareCall.
func (j *judge) grantedVerdict(call *regie.Call) regie.Verdict {
	review, asked := j.reviews[call.ID]
	if !asked || !approval.Covers(review, call.Definition, j.runner.storedArguments(call)) {
		return regie.VerdictAllow
	}
	return review.Verdict
}

// refuseUnasked returns why a query that would need an approval is not run, or nil.
func (j *judge) refuseUnasked(call *regie.Call, definition regie.ToolDefinition) error {
	judged := j.judgeCall(call, definition)
	if judged.Verdict == regie.VerdictAllow {
		return nil
	}
	if judged.Verdict == regie.VerdictForbid {
		return regie.Errorf(regie.CodeForbidden, "a rule forbids the call: %s", joinGrounds(judged.Grounds))
	}
	return regie.Errorf(regie.CodePathProtected,
		"this needs a person's approval, and a query outside a session cannot ask for one: %s",
		joinGrounds(judged.Grounds))
}

func joinGrounds(grounds []regie.Ground) string {
	sentences := make([]string, len(grounds))
	for i, ground := range grounds {
		sentences[i] = ground.Sentence.String()
	}
	return strings.Join(sentences, "; ")
}

// codeApprovalNeeded is the model's code for a call that was not run for want of an approval.
const codeApprovalNeeded regie.Code = "APPROVAL_NEEDED"

// codePlanMode is the model's code for an action that plan mode does not run.
const codePlanMode regie.Code = "PLAN_MODE"

// failNote is why a run ends that was told to fail where an approval is needed (spec 4.4).
var failNote = regie.Say("a call needs an approval, and this run fails in that case (--on-approval fail)")
