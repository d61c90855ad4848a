package engine

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// judge gives the verdict on a call as it would run now (decision 19). It is asked when the call is proposed, and again before it
// starts (decision 20).
func (r *run) judge(call *regie.Call, definition regie.ToolDefinition) approval.Judgement {
	executable := r.executable(call)
	var arguments map[string]any
	_ = json.Unmarshal(executable, &arguments) // they were validated; what cannot be read matches no scope
	signature := call.Signature
	if len(call.Executed) > 0 {
		signature = r.cfg.Tools.Check(call.Tool, string(call.Executed)).Signature
	}
	in := approval.Input{
		Tool: call.Tool, Kind: definition.Kind, Risk: definition.Risk, Role: definition.Role, Signature: signature, Arguments: arguments,
		Levels: r.cfg.levels(r.session), Policy: r.policy, Rules: r.rules, WorkspaceID: r.session.WorkspaceID, SessionID: r.session.ID,
		Now: time.Now(), ModelAsks: call.Ask, UnresolvedUnknown: r.unresolvedUnknown(call),
	}
	judged := approval.Decide(in)
	byRule := slices.ContainsFunc(judged.Grounds, func(g regie.Ground) bool { return g.Source == regie.SourceRule })
	if judged.Verdict == regie.VerdictAllow && byRule && r.throughLink(call, arguments) {
		in.Rules = slices.DeleteFunc(slices.Clone(in.Rules), func(rule regie.Rule) bool { return rule.Verdict == regie.VerdictAllow })
		judged = approval.Decide(in)
	}
	return judged
}

// throughLink reports whether a call is about a file that no argument names letter by letter: a link leads to it. A rule compares letters,
// so it cannot know where such a call goes.
func (r *run) throughLink(call *regie.Call, arguments map[string]any) bool {
	target, inv := r.invocation(call)
	if target == nil {
		return false
	}
	preview, _ := tool.DescribeCall(r.commit, target, inv)
	for _, p := range preview.Preconditions {
		named := false
		for _, value := range arguments {
			text, ok := value.(string)
			named = named || ok && path.Clean(text) == p.Name
		}
		if p.Kind == regie.PreconditionFile && !named {
			return true
		}
	}
	return false
}

// readRules takes the standing rules as they are now: the policy is always the current one (decision 36).
func (r *run) readRules() error {
	rules, err := r.cfg.Store.Rules(r.commit, r.session.WorkspaceID, r.session.ID)
	if err == nil {
		r.rules = rules
	}
	return err
}

// guarded has the guard look at a call that was just proposed (decisions 9 and 30). It reports whether that settled the call.
func (r *run) guarded(call *regie.Call, definition regie.ToolDefinition, wireID string, before []regie.Call, judged approval.Judgement) bool {
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
		notRun(call, regie.NotRunDenied, regie.CallError{Code: regie.CodeForbidden, Message: "this call is forbidden: " + because(judged.Grounds)})
	case r.policy.OnApproval == approval.DenyAndGoOn:
		notRun(call, regie.NotRunDenied, regie.CallError{
			Code: "APPROVAL_NEEDED", Message: "this call needs a person's approval and nobody can be asked in this run", Hint: "tell the person what you would have done; the run can be started again with this tool allowed",
		})
	case r.policy.OnApproval == approval.FailRun:
		notRun(call, regie.NotRunDenied, regie.CallError{Code: "APPROVAL_NEEDED", Message: "this call needs a person's approval, and the run was told to end then"})
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

// asked returns what is to be put to people for the calls that wait for them and were not put to them yet: an approval of the batch,
// and the questions that are next in order. A call whose preview says that it would fail is settled with that and nobody is asked.
func (r *run) asked(ctx context.Context, calls []regie.Call) (*store.Asked, error) {
	now := time.Now().UTC()
	a := &regie.Approval{ID: regie.NewID(), SessionID: r.session.ID, RoundID: r.round.ID, Exchange: r.exchange.Number, ExpiresAt: now.Add(r.cfg.ApprovalTTL)}
	for i := range calls {
		call := &calls[i]
		if call.State != regie.CallAwaitingApproval || r.waitsFor(call) {
			continue
		}
		review, ok := r.review(ctx, call)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if ok {
			a.Reviews = append(a.Reviews, review)
		}
	}
	out := &store.Asked{Questions: r.questions(calls, now)}
	if len(a.Reviews) > 0 {
		out.Approval = a
	}
	if out.Approval == nil && len(out.Questions) == 0 {
		return nil, nil
	}
	return out, nil
}

// waitsFor reports whether a person was asked about a call as it is and has not answered.
func (r *run) waitsFor(call *regie.Call) bool {
	review, ok := r.reviews[call.ID]
	return ok && review.Decision == nil
}

// review makes what a person sees of a call and what the answer binds (spec 4.4, decision 20).
func (r *run) review(ctx context.Context, call *regie.Call) (regie.Review, bool) {
	target, inv := r.invocation(call)
	if target == nil {
		notRun(call, regie.NotRunOutOfScope, regie.CallError{Code: regie.CodeUnknownTool, Message: "the tool is no longer there"})
		return regie.Review{}, false
	}
	preview, problem := tool.DescribeCall(ctx, target, inv)
	if problem != nil {
		settle(call, regie.CallFailed, "", problem)
		return regie.Review{}, false
	}
	judged, ok := r.judged[call.ID]
	if !ok { // it was judged by a process that is gone
		judged = r.judge(call, target.Definition())
		if judged.Verdict != regie.VerdictMustAsk {
			judged.Verdict = regie.VerdictAsk
		}
	}
	return regie.Review{
		CallID: call.ID, Tool: call.Tool, Definition: call.Definition, Arguments: inv.Arguments, Preview: preview, Verdict: judged.Verdict, Grounds: judged.Grounds,
	}, true
}

// questions are those calls of the batch that ask the person something and are next in order: all before them is settled.
func (r *run) questions(calls []regie.Call, now time.Time) []regie.Question {
	var out []regie.Question
	for i := range calls {
		call := &calls[i]
		if call.State.Settled() {
			continue
		}
		if r.role(call) != regie.RoleQuestion || !ready(call) {
			break
		}
		if r.questioned[call.ID] {
			continue
		}
		module, err := r.module(call)
		if err != nil {
			settle(call, regie.CallFailed, "", &regie.CallError{Code: regie.CodeOf(err), Message: err.Error()})
			continue
		}
		out = append(out, regie.Question{
			ID: regie.NewID(), SessionID: r.session.ID, RoundID: r.round.ID, CallID: call.ID, Module: module, ExpiresAt: now.Add(r.cfg.QuestionTTL),
		})
	}
	return out
}

func (r *run) module(call *regie.Call) (regie.Module, error) {
	target, _, _ := r.cfg.Tools.Lookup(call.Tool)
	asker, ok := target.(tool.Asker)
	if !ok {
		return regie.Module{}, regie.Errorf(regie.CodeToolError, "the tool cannot say what it asks")
	}
	return asker.Module(r.executable(call))
}

func (r *run) role(call *regie.Call) regie.ToolRole {
	if target, _, ok := r.cfg.Tools.Lookup(call.Tool); ok {
		return target.Definition().Role
	}
	return ""
}

// mustWait reports whether the call that is next cannot go on without a person: it waits itself, or it is an action of a batch that
// is not decided yet (decision 20).
func (r *run) mustWait(calls []regie.Call, next int) bool {
	call := &calls[next]
	if call.State == regie.CallAwaitingApproval || r.role(call) == regie.RoleQuestion {
		return true
	}
	if call.Kind != regie.KindAction {
		return false
	}
	for i := range calls {
		if calls[i].State == regie.CallAwaitingApproval {
			return true
		}
	}
	return false
}

// wait puts to people what they were not asked yet and lets go of the round (spec 3.5). Where all was answered meanwhile the round goes
// on with the calls as they now stand.
func (r *run) wait(ctx context.Context) error {
	before := openCalls(r.calls)
	ask, err := r.asked(ctx, r.calls)
	if err != nil {
		return nil //nolint:nilerr // stopped while asking: nothing was put to anybody, and the loop sees why
	}
	for _, i := range before { // those that nobody need be asked about after all
		if r.calls[i].State.Settled() {
			r.unsaved = append(r.unsaved, i)
		}
	}
	if next := r.nextOpen(); ask == nil && (next < 0 || !r.mustWait(r.calls, next)) {
		return nil
	}
	fault.Point(fault.AskBefore)
	out, err := r.cfg.Store.CommitCalls(r.commit, r.fence, store.Settle{
		Exchange: r.exchange.Number, Settled: r.pick(r.unsaved), Ask: ask, Park: true, Plan: r.newPlan(r.unsaved),
	})
	if err != nil {
		return err
	}
	fault.Point(fault.AskAfter)
	r.unsaved, r.parked = r.unsaved[:0], out.Parked
	if out.Parked {
		return nil
	}
	stood := openCalls(r.calls)
	if err := r.reload(); err != nil {
		return err
	}
	if next := r.nextOpen(); ask == nil && next >= 0 && r.mustWait(r.calls, next) && slices.Equal(stood, openCalls(r.calls)) && !r.anyUnasked() {
		return regie.Errorf(regie.CodeInternal, "the round waits for a call that nobody is asked about")
	}
	return nil
}

// anyUnasked reports whether a call waits that can be put to people.
func (r *run) anyUnasked() bool {
	for i := range r.calls {
		if call := &r.calls[i]; call.State == regie.CallAwaitingApproval && !r.waitsFor(call) {
			return true
		}
	}
	return false
}

// reload takes the batch as it is stored: people answer while the round runs.
func (r *run) reload() error {
	stored, err := r.cfg.Store.Batch(r.commit, r.fence, r.exchange.Number, r.reply.ID)
	if err == nil {
		r.calls, r.reviews, r.questioned, r.unsaved = stored.Calls, stored.Reviews, stored.Asked, r.unsaved[:0]
	}
	return err
}

// clear judges a call again that is about to start (decision 20): same or milder runs, stricter is asked anew, forbidden is not run. It
// reports whether the call may start.
func (r *run) clear(call *regie.Call, target tool.Tool) bool {
	if r.fresh[call.ID] && call.State == regie.CallProposed { // judged a moment ago, with the reply, and nobody has edited it
		return true
	}
	granted := regie.VerdictAllow
	if call.State == regie.CallApproved {
		granted = r.reviews[call.ID].Verdict
	}
	judged := r.judge(call, target.Definition())
	if !judged.Verdict.Stricter(granted) {
		return true
	}
	delete(r.reviews, call.ID)
	r.put(call, judged)
	return false
}

// unresolvedUnknown reports whether an earlier call of the session with this signature has no known outcome (decision 5).
func (r *run) unresolvedUnknown(call *regie.Call) bool {
	g := r.thread.guard
	return g != nil && g.isUnknown(g.signature(call))
}
