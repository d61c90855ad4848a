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

// judge gives the verdict on a call as it would run now (decision 19). It is asked when the call is
// proposed, and again before it starts (decision 20).
func (r *run) judge(call *regie.Call, definition regie.ToolDefinition) approval.Judgement {
	executable := r.executable(call)
	var arguments map[string]any
	_ = json.Unmarshal(executable, &arguments) // they were validated; what cannot be read matches no scope
	signature := call.Signature
	if len(call.Executed) > 0 {
		signature = r.tools.Check(call.Tool, string(call.Executed)).Signature
	}
	in := approval.Input{
		Tool: call.Tool, Kind: definition.Kind, Risk: definition.Risk, Role: definition.Role,
		Signature: signature, Arguments: arguments,
		Levels: slices.Concat(r.cfg.levels(r.session), r.files.Levels), Policy: r.policy,
		WorkspaceID: r.session.WorkspaceID, SessionID: r.session.ID,
		Now: time.Now(), ModelAsks: call.Ask, UnresolvedUnknown: r.unresolvedUnknown(call),
		Objections: r.objections(call),
	}
	runs := false
	if target, inv := r.invocation(call); target != nil {
		runs = tool.SidesOf(target).Commander != nil
		in.ToolAsks = tool.MustAsk(r.commit, target, inv)
		if command, literal := tool.Command(target, inv); literal && arguments != nil {
			arguments[regie.FieldCommand] = command.String()
		}
	}
	in.Rules = slices.Concat(r.rules, approval.FileRules(r.files.Rules, r.session.WorkspaceID,
		approval.FileCall{Tool: call.Tool, Arguments: arguments, Runs: runs}))
	judged := approval.Decide(in)
	byRule := slices.ContainsFunc(judged.Grounds, func(g regie.Ground) bool { return g.Source == regie.SourceRule })
	if judged.Verdict == regie.VerdictAllow && byRule && r.throughLink(call, arguments) {
		in.Rules = slices.DeleteFunc(slices.Clone(in.Rules), func(rule regie.Rule) bool {
			return rule.Verdict == regie.VerdictAllow
		})
		judged = approval.Decide(in)
	}
	return judged
}

// throughLink reports whether a call is about a file that no argument names letter by letter: a
// link leads to it. A rule compares letters, so it cannot know where such a call goes.
func (r *run) throughLink(call *regie.Call, arguments map[string]any) bool {
	target, inv := r.invocation(call)
	if target == nil {
		return false
	}
	preview, _ := tool.DescribeCall(r.commit, target, inv)
	return !preview.Named(arguments)
}

// readRules takes the standing rules as they are now: the policy is always the current one
// (decision 36). Where one was made, was revoked or has expired since, what was judged before is
// judged again.
func (r *run) readRules() error {
	rules, err := r.cfg.Store.Rules(r.commit, r.session.WorkspaceID, r.session.ID)
	if err != nil {
		return err
	}
	now := time.Now()
	same := slices.EqualFunc(r.rules, rules, func(a, b regie.Rule) bool { return a.ID == b.ID })
	for i := range rules {
		same = same && rules[i].StateAt(r.rulesAt) == rules[i].StateAt(now)
	}
	if r.cfg.Files != nil {
		files := r.cfg.Files(r.workspace.Root)
		same, r.files = same && files.Hash == r.files.Hash, files
	}
	if !same {
		clear(r.fresh)
		clear(r.cleared)
	}
	r.rules, r.rulesAt = rules, now
	return nil
}

// guarded has the guard look at a call that was just proposed (decisions 9 and 30). It reports
// whether that settled the call.
func (r *run) guarded(call *regie.Call, definition regie.ToolDefinition, wireID string, before []regie.Call,
	judged approval.Judgement,
) bool {
	v, earlier := r.thread.guard.judge(call, definition, proposed{providerID: wireID, before: before})
	if v.endRound {
		r.circles = v.note
	}
	asks := judged.Verdict == regie.VerdictAsk || judged.Verdict == regie.VerdictMustAsk
	if v.notRun == "" || v.overridable && asks && r.asksPeople() {
		return false
	}
	if v.problem != nil {
		notRun(call, v.notRun, *v.problem)
		return true
	}
	settle(call, regie.CallNotRun, v.result, nil)
	call.NotRun = v.notRun
	if earlier != nil {
		call.ResultBlob = earlier.ResultBlob
	}
	return true
}

// asksPeople reports whether a call that needs an approval waits for one in this run.
func (r *run) asksPeople() bool {
	return r.policy.OnApproval == "" || r.policy.OnApproval == approval.Park
}

// put decides what a judgement means for a call that was just proposed, or that is about to start.
func (r *run) put(call *regie.Call, judged approval.Judgement) {
	switch {
	case judged.Verdict == regie.VerdictAllow:
	case judged.Verdict == regie.VerdictForbid:
		notRun(call, regie.NotRunDenied, regie.CallError{
			Code:    regie.CodeForbidden,
			Message: "this call is forbidden: " + because(judged.Grounds),
		})
	case r.policy.OnApproval == approval.DenyAndGoOn:
		notRun(call, regie.NotRunDenied, regie.CallError{
			Code: codeApprovalNeeded, Message: "this call needs a person's approval and nobody can be asked in this run", Hint: "tell the person what you would have done; the run can be started again with this tool allowed",
		})
	case r.policy.OnApproval == approval.FailRun:
		notRun(call, regie.NotRunDenied, regie.CallError{
			Code:    codeApprovalNeeded,
			Message: "this call needs a person's approval, and the run was told to end then",
		})
	default:
		call.State = regie.CallAwaitingApproval
		r.judged[call.ID] = judged
	}
}

func because(grounds []regie.Ground) string {
	sentences := make([]string, len(grounds))
	for i, ground := range grounds {
		sentences[i] = ground.Sentence.String()
	}
	return strings.Join(sentences, "; ")
}

// codeApprovalNeeded is what the model reads of a call that was not run because nobody has approved
// it.
const codeApprovalNeeded regie.Code = "APPROVAL_NEEDED"

// failNote is why a run ends that was told to fail where an approval is needed (spec 4.4).
var failNote = regie.Say("a call needs an approval, and this run was told to fail then")

// policyFails reports whether the run is to end at the first call that would need an approval: when
// it is proposed, and when that is found only as it is about to start.
func (r *run) policyFails(calls []regie.Call) bool {
	if r.policy.OnApproval != approval.FailRun {
		return false
	}
	for i := range calls {
		if calls[i].NotRun == regie.NotRunDenied && calls[i].Error.Code == codeApprovalNeeded {
			return true
		}
	}
	return false
}

// rejudge looks at the actions of a batch that another process judged, or that were judged under
// other rules, before any of them starts: what must be asked about now is asked with the rest.
func (r *run) rejudge(ctx context.Context) error {
	stale := func(call *regie.Call) bool {
		return call.Kind == regie.KindAction && call.State == regie.CallProposed && !r.unheard(call) &&
			!r.fresh[call.ID] && !r.cleared[call.ID]
	}
	for i := range r.calls {
		call := &r.calls[i]
		if !stale(call) {
			continue
		}
		if err := errors.Join(r.readRules(), r.warmGuard(ctx)); err != nil || ctx.Err() != nil {
			return err
		}
		if target, _, ok := r.tools.Lookup(call.Tool); ok && !r.clear(call, target) && call.State.Settled() {
			r.unsaved = append(r.unsaved, i)
		}
		r.cleared[call.ID] = true
	}
	return nil
}

// warmGuard reads the thread where this process has not, because what starts is judged by it. A
// model that cannot be reached does not keep a batch from being finished.
func (r *run) warmGuard(ctx context.Context) error {
	err := r.warm(ctx)
	if _, unusable := errors.AsType[unusableModel](err); unusable && r.thread.guard == nil {
		if err = r.read(ctx); err == nil {
			r.watch(*r.known)
			r.known = nil // it grows
		}
	} else if unusable {
		err = nil
	}
	if ctx.Err() != nil { // the loop sees why
		err = nil
	}
	return err
}

// clear judges a call again that is about to start (decision 20): same or milder runs, stricter is
// asked anew, forbidden is not run. It reports whether the call may start.
func (r *run) clear(call *regie.Call, target tool.Tool) bool {
	if r.unheard(call) { // it was edited a moment ago: its hooks come first
		return false
	}
	// judged a moment ago, with the reply, and nobody has edited it
	if r.fresh[call.ID] && call.State == regie.CallProposed {
		return true
	}
	judged := r.judge(call, target.Definition())
	if !judged.Verdict.Stricter(r.granted(call)) {
		return true
	}
	delete(r.reviews, call.ID)
	r.put(call, judged)
	return false
}

// stillAllowed judges a call that has started elsewhere, and reports whether that is no stricter
// than what it was started under.
func (r *run) stillAllowed(call *regie.Call) (approval.Judgement, bool) {
	target, _, ok := r.tools.Lookup(call.Tool)
	if !ok { // without its tool it does not run: invocation says so
		return approval.Judgement{}, true
	}
	judged := r.judge(call, target.Definition())
	return judged, !judged.Verdict.Stricter(r.granted(call))
}

// granted is the strictest verdict under which a call may start: what a person has approved of
// exactly this call, else only what nobody need be asked about. Here what binds is compared
// (decision 20): the definition and the arguments. The preconditions are the tool's to compare,
// with the world: see prepare.
func (r *run) granted(call *regie.Call) regie.Verdict {
	review, asked := r.reviews[call.ID]
	if !asked || !approval.Covers(review, call.Definition, r.arguments(call)) {
		return regie.VerdictAllow
	}
	return review.Verdict
}

// unresolvedUnknown reports whether an earlier call of the session with this signature has no known
// outcome (decision 5).
func (r *run) unresolvedUnknown(call *regie.Call) bool {
	g := r.thread.guard
	return g != nil && g.isUnknown(g.signature(call))
}
