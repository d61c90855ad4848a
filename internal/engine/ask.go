package engine

import (
	"context"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// asked returns what is to be put to people for the calls that wait for them and were not put to
// them yet: an approval of the batch, and the questions that are next in order. A call whose
// preview says that it would fail is settled with that and nobody is asked.
func (r *run) asked(ctx context.Context, calls []regie.Call) (*store.Asked, error) {
	now := time.Now().UTC()
	last := -1
	for i := range calls {
		if calls[i].State == regie.CallAwaitingApproval && !r.waitsFor(&calls[i]) {
			last = i
		}
	}
	var assumed []tool.State // what the calls before are going to leave
	a := &regie.Approval{
		ID: regie.NewID(), SessionID: r.session.ID, RoundID: r.round.ID, Exchange: r.exchange.Number,
		ExpiresAt: now.Add(r.cfg.ApprovalTTL),
	}
	for i := range calls[:last+1] {
		call := &calls[i]
		if call.State == regie.CallAwaitingApproval && !r.waitsFor(call) {
			review, ok := r.review(ctx, call, assumed)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if ok {
				a.Reviews = append(a.Reviews, review)
			}
		}
		if i < last {
			assumed = append(assumed, r.foresee(ctx, call, assumed)...)
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

// review makes what a person sees of a call and what the answer binds (spec 4.4, decision 20): the
// call on top of what those before it in its reply are going to leave.
func (r *run) review(ctx context.Context, call *regie.Call, assumed []tool.State) (regie.Review, bool) {
	target, inv := r.invocation(call)
	if target == nil {
		r.gone(call)
		return regie.Review{}, false
	}
	inv.Assumed = assumed
	preview, problem := tool.DescribeCall(ctx, target, inv)
	if problem != nil {
		settle(call, regie.CallFailed, "", problem)
		return regie.Review{}, false
	}
	if r.again[call.ID] {
		preview.Warnings = append(preview.Warnings,
			regie.Say("you are asked again, because a call before it in this reply did not go as it was shown"))
	}
	// else nobody would know that this is no second look
	if g := r.thread.guard; g != nil && call.Kind == regie.KindAction && g.justDone(g.signature(call)) {
		preview.Warnings = append(preview.Warnings,
			regie.Say("exactly this was done already, in an earlier reply, and nobody has said anything since: approved, it is done once more"))
	}
	judged, ok := r.judged[call.ID]
	if !ok { // it was judged by a process that is gone
		judged = r.judge(call, target.Definition())
		if judged.Verdict != regie.VerdictMustAsk {
			judged.Verdict = regie.VerdictAsk
		}
	}
	return regie.Review{
		CallID: call.ID, Tool: call.Tool, Definition: call.Definition, Arguments: inv.Arguments, Preview: preview,
		Verdict: judged.Verdict, Grounds: judged.Grounds,
	}, true
}

// questions are those calls of the batch that ask the person something and are next in order: all
// before them is settled.
func (r *run) questions(calls []regie.Call, now time.Time) []regie.Question {
	var out []regie.Question
	for i := range calls {
		call := &calls[i]
		if call.State.Settled() || r.clients(call) {
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
			ID: regie.NewID(), SessionID: r.session.ID, RoundID: r.round.ID, CallID: call.ID, Module: module,
			ExpiresAt: now.Add(r.cfg.QuestionTTL),
		})
	}
	return out
}

func (r *run) module(call *regie.Call) (regie.Module, error) {
	target, _, _ := r.tools.Lookup(call.Tool)
	asker, ok := target.(tool.Asker)
	if !ok {
		return regie.Module{}, regie.Errorf(regie.CodeToolError, "the tool cannot say what it asks")
	}
	return asker.Module(r.executable(call))
}

func (r *run) role(call *regie.Call) regie.ToolRole {
	if target, _, ok := r.tools.Lookup(call.Tool); ok {
		return target.Definition().Role
	}
	return ""
}

// mustWait reports whether the call that is next cannot go on without a person: it waits itself, or
// it is an action of a batch that is not decided yet (decision 20).
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

// wait puts to people what they were not asked yet and lets go of the round (spec 3.5). Where all
// was answered meanwhile the round goes on with the calls as they now stand.
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
	if next := r.nextOpen(); ask == nil && next >= 0 && r.mustWait(r.calls, next) &&
		slices.Equal(stood, openCalls(r.calls)) && !r.anyUnasked() {
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
		r.calls, r.reviews, r.questioned, r.unsaved, r.chained = stored.Calls, stored.Reviews,
			stored.Asked, r.unsaved[:0], false
	}
	return err
}
