package engine

import (
	"context"
	"encoding/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// Edit is a person's answer that changes a call's arguments, before it is stored.
type Edit struct {
	Session   regie.Session
	Workspace regie.Workspace
	Approval  *regie.Approval
	CallID    regie.ID
	Arguments json.RawMessage // as the person wrote them
	// Decisions are all that the answer decides: what is shown of one call counts on those before
	// it.
	Decisions []regie.Decision
}

// Edited returns the review of a call with arguments that a person wrote (decision 20). They are
// validated like a model's, judged as before a start, and previewed. The review's arguments are the
// canonical form. It returns CodeServerDown for a tool of a server that is down, CodeConflict for a
// tool that has changed, CodeBadArguments for arguments that do not fit, CodeForbidden where a rule
// forbids the call, and the tool's own code where it would fail.
func (e *Engine) Edited(ctx context.Context, in Edit) (regie.Review, error) {
	r, err := e.waitingRun(ctx, in)
	if err != nil {
		return regie.Review{}, err
	}
	var call *regie.Call
	for i := range r.batch.calls {
		if r.batch.calls[i].ID == in.CallID {
			call = &r.batch.calls[i]
		}
	}
	if call == nil {
		return regie.Review{}, regie.Errorf(regie.CodeNotFound, "the approval %s does not ask about call %s",
			in.Approval.ID, in.CallID)
	}
	checked, away := r.tools.Check(call.Tool, string(in.Arguments)), r.tools.Away(call.Tool)
	switch {
	case away != nil:
		return regie.Review{}, regie.Errorf(regie.CodeServerDown,
			"edited arguments cannot be checked without the tool: %v", away)
	case checked.Tool == nil || checked.Definition != call.Definition:
		return regie.Review{}, regie.Errorf(regie.CodeConflict,
			"the tool %s has changed since the call was proposed: deny the call", call.Tool)
	case checked.Error != nil:
		return regie.Review{}, regie.Errorf(regie.CodeBadArguments,
			"the edited arguments do not fit: %s", checked.Error.Message)
	}
	r.batch.applyDecisions(in.Decisions)
	call.State, call.Executed = regie.CallAwaitingApproval, checked.Arguments
	judged := r.judge.judgeCall(call, checked.Tool.Definition())
	if judged.Verdict == regie.VerdictForbid {
		return regie.Review{}, regie.Errorf(regie.CodeForbidden, "a rule forbids the edited call")
	}
	r.judge.judged[call.ID] = judged
	var assumed []tool.State
	for i := range r.batch.calls[:call.Ordinal] {
		assumed = append(assumed, r.runner.foreseeState(ctx, &r.batch.calls[i], assumed)...)
	}
	review, ok := r.asker.reviewCall(ctx, call, assumed)
	switch {
	case ctx.Err() != nil:
		return regie.Review{}, context.Cause(ctx)
	case !ok:
		return regie.Review{}, regie.Errorf(call.Error.Code, "the edited call would fail: %s", call.Error.Message)
	}
	review.Arguments = checked.Arguments
	return review, nil
}

// waitingRun returns the round of an approval in the state in which it will be resumed. It holds
// nothing and serves only for questions.
func (e *Engine) waitingRun(ctx context.Context, in Edit) (*run, error) {
	round, err := e.cfg.Store.Round(ctx, in.Approval.RoundID)
	if err != nil {
		return nil, err
	}
	thread, err := e.cfg.Store.Thread(ctx, in.Session.ID, 0)
	if err != nil {
		return nil, err
	}
	claimed := store.Claimed{
		Fence: store.Fence{SessionID: in.Session.ID, RoundID: round.ID}, Session: in.Session,
		Workspace: in.Workspace, Round: round,
		Exchange: regie.Exchange{RoundID: round.ID, Number: in.Approval.Exchange},
	}
	for i := range thread.Messages {
		if m := &thread.Messages[i]; m.AI != nil && m.RoundID == round.ID && m.Exchange == in.Approval.Exchange {
			claimed.Reply = m
		}
	}
	if claimed.Reply == nil {
		return nil, regie.Errorf(regie.CodeNotFound, "the reply of the approval %s does not exist",
			in.Approval.ID)
	}
	batch, err := e.cfg.Store.Batch(ctx, claimed.Fence, in.Approval.Exchange, claimed.Reply.ID)
	if err != nil {
		return nil, err
	}
	claimed.Calls, claimed.Reviews, claimed.Asked = batch.Calls, batch.Reviews, batch.Asked
	r, err := e.newRun(ctx, claimed, e.workspaceTools(ctx, claimed.Workspace, e.cfg.Tools(ctx)))
	if err != nil {
		return nil, err
	}
	r.budget.loadGuard(thread)
	err = r.judge.readRules()
	return r, err
}

// applyDecisions brings the calls in line with an answer that is not stored yet, as far as it can
// be.
func (cb *callBatch) applyDecisions(decisions []regie.Decision) {
	for _, d := range decisions {
		for i := range cb.calls {
			call := &cb.calls[i]
			switch {
			case call.ID != d.CallID || call.State != regie.CallAwaitingApproval:
			case d.Answer == regie.AnswerDeny:
				settleNotRun(call, regie.NotRunDenied, regie.CallError{Code: regie.CodeUserRejected})
			default:
				if checked := cb.tools.Check(call.Tool, string(d.Arguments)); len(d.Arguments) > 0 &&
					checked.Error == nil {
					call.Executed = checked.Arguments
				}
			}
		}
	}
}
