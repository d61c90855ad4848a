package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// asker makes the approvals and questions that are put to people.
type asker struct {
	*run
	questioned map[regie.ID]bool // the calls whose question was put to a person
}

// prepareAsk returns what to ask people about the waiting calls that were not asked about yet: an
// approval of the batch, and the next questions in order. It settles a call with a preview that
// fails, without asking.
func (q *asker) prepareAsk(ctx context.Context, calls []regie.Call) (*store.Asked, error) {
	now := time.Now().UTC()
	last := -1
	for i := range calls {
		if q.isUnasked(&calls[i]) {
			last = i
		}
	}
	var assumed []tool.State // what the calls before are going to leave
	a := &regie.Approval{
		ID: regie.NewID(), SessionID: q.session.ID, RoundID: q.round.ID, Exchange: q.exchange.Number,
		ExpiresAt: now.Add(q.cfg.ApprovalTTL),
	}
	for i := range calls[:last+1] {
		call := &calls[i]
		if q.isUnasked(call) {
			review, ok := q.reviewCall(ctx, call, assumed)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if ok {
				a.Reviews = append(a.Reviews, review)
			}
		}
		if i < last {
			assumed = append(assumed, q.runner.foreseeState(ctx, call, assumed)...)
		}
	}
	out := &store.Asked{Questions: q.nextQuestions(calls, now)}
	if len(a.Reviews) > 0 {
		out.Approval = a
	}
	out.Plan = q.askedPlan(calls, out.Questions)
	if out.Approval == nil && len(out.Questions) == 0 {
		return nil, nil
	}
	return out, nil
}

// awaitsAnswer reports whether a person was asked about a call as it is and has not answered.
func (q *asker) awaitsAnswer(call *regie.Call) bool {
	review, ok := q.reviews[call.ID]
	return ok && review.Decision == nil
}

// isUnasked reports whether a call waits for a person who was not asked yet.
func (q *asker) isUnasked(call *regie.Call) bool {
	return call.State == regie.CallAwaitingApproval && !q.awaitsAnswer(call)
}

// reviewCall makes what a person sees of a call and what the answer binds (spec 4.4, decision 20):
// the call on top of what those before it in its reply are going to leave.
func (q *asker) reviewCall(ctx context.Context, call *regie.Call, assumed []tool.State) (regie.Review, bool) {
	target, inv := q.runner.newInvocation(call)
	if target == nil {
		q.runner.settleMissing(call)
		return regie.Review{}, false
	}
	inv.Assumed = assumed
	preview, problem := tool.DescribeCall(ctx, target, inv)
	if problem != nil {
		settleCall(call, regie.CallFailed, "", problem)
		return regie.Review{}, false
	}
	// so that a person sees that this repeats an earlier action
	if g := q.budget.thread.guard; g != nil && call.Kind == regie.KindAction && g.justDone(g.signatureOf(call)) {
		preview.Warnings = append(preview.Warnings,
			regie.Say("this exact action was already done in an earlier reply, with no message from you since; if you approve, it is done again"))
	}
	judged, ok := q.judge.judged[call.ID]
	if !ok { // it was judged by a process that is gone
		judged = q.judge.judgeCall(call, target.Definition())
		if judged.Verdict != regie.VerdictMustAsk {
			judged.Verdict = regie.VerdictAsk
		}
	}
	return regie.Review{
		CallID: call.ID, Tool: call.Tool, Definition: call.Definition, Arguments: inv.Arguments, Preview: preview,
		Verdict: judged.Verdict, Grounds: judged.Grounds,
	}, true
}

// nextQuestions returns those calls of the batch that ask the person something and are next in
// order: all before them is settled.
func (q *asker) nextQuestions(calls []regie.Call, now time.Time) []regie.Question {
	var out []regie.Question
	for i := range calls {
		call := &calls[i]
		if call.State.Settled() || q.isClientCall(call) {
			continue
		}
		if q.roleOf(call) != regie.RoleQuestion || !isReady(call) {
			break
		}
		if q.questioned[call.ID] {
			continue
		}
		module, err := q.runner.questionModule(call)
		if err != nil {
			settleCall(call, regie.CallFailed, "", &regie.CallError{Code: regie.CodeOf(err), Message: err.Error()})
			continue
		}
		out = append(out, regie.Question{
			ID: regie.NewID(), SessionID: q.session.ID, RoundID: q.round.ID, CallID: call.ID, Module: module,
			ExpiresAt: now.Add(q.cfg.QuestionTTL),
		})
	}
	return out
}

// askedPlan returns the plan that one of the questions asks to approve, so that it is shown.
func (q *asker) askedPlan(calls []regie.Call, questions []regie.Question) json.RawMessage {
	for i := range calls {
		target, _, _ := q.tools.Lookup(calls[i].Tool)
		asked := slices.ContainsFunc(questions, func(one regie.Question) bool { return one.CallID == calls[i].ID })
		if _, isPlan := target.(tool.MayAsk); isPlan && asked {
			return q.runner.callArguments(&calls[i])
		}
	}
	return nil
}

// mustWait reports whether the call that is next cannot go on without a person: it waits itself, or
// it is an action of a batch that is not decided yet (decision 20).
func (q *asker) mustWait(calls []regie.Call, next int) bool {
	call := &calls[next]
	if call.State == regie.CallAwaitingApproval || q.roleOf(call) == regie.RoleQuestion {
		return true
	}
	return isAction(call) && anyCall(calls, func(c *regie.Call) bool { return c.State == regie.CallAwaitingApproval })
}

// noteAsked notes what was put to people.
func (q *asker) noteAsked(ask *store.Asked) {
	q.reviews, q.questioned = map[regie.ID]regie.Review{}, map[regie.ID]bool{}
	if ask == nil {
		return
	}
	if ask.Approval != nil {
		for _, review := range ask.Approval.Reviews {
			q.reviews[review.CallID] = review
		}
	}
	for i := range ask.Questions {
		q.questioned[ask.Questions[i].CallID] = true
	}
}

// waitForPeople puts to people what they were not asked yet and lets go of the round (spec 3.5).
// Where all was answered meanwhile the round goes on with the calls as they now stand.
func (cb *callBatch) waitForPeople(ctx context.Context) error {
	before := openCalls(cb.calls)
	ask, err := cb.asker.prepareAsk(ctx, cb.calls)
	if err != nil {
		return nil //nolint:nilerr // stopped while asking: nothing was put to anybody, and the loop sees why
	}
	for _, i := range before { // those that nobody need be asked about after all
		if cb.calls[i].State.Settled() {
			cb.unsaved = append(cb.unsaved, i)
		}
	}
	if next := cb.nextOpen(); ask == nil && (next < 0 || !cb.asker.mustWait(cb.calls, next)) {
		return nil
	}
	fault.Point(fault.AskBefore)
	in := cb.unsavedResults()
	in.Ask, in.Park = ask, true
	out, err := cb.cfg.Store.CommitCalls(cb.commit, cb.fence, in)
	if err != nil {
		return err
	}
	fault.Point(fault.AskAfter)
	cb.unsaved, cb.parked = cb.unsaved[:0], out.Parked
	if out.Parked {
		return nil
	}
	stood := openCalls(cb.calls)
	if err := cb.reloadBatch(); err != nil {
		return err
	}
	if next := cb.nextOpen(); ask == nil && next >= 0 && cb.asker.mustWait(cb.calls, next) &&
		slices.Equal(stood, openCalls(cb.calls)) && !anyCall(cb.calls, cb.asker.isUnasked) {
		return regie.Errorf(regie.CodeInternal, "the round waits for a call that nobody is asked about")
	}
	return nil
}

// reloadBatch takes the batch as it is stored: people answer while the round runs.
func (cb *callBatch) reloadBatch() error {
	stored, err := cb.cfg.Store.Batch(cb.commit, cb.fence, cb.exchange.Number, cb.reply.ID)
	if err == nil {
		clear(cb.judge.fresh)
		cb.calls, cb.reviews = stored.Calls, stored.Reviews
		cb.asker.questioned, cb.unsaved = stored.Asked, cb.unsaved[:0]
	}
	return err
}
