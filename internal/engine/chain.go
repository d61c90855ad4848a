package engine

import (
	"context"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// askOvertaken sends those approved calls back to the person that were shown on top of calls before
// them which go otherwise by now: they were denied or edited, or they failed (decision 20: what was
// shown is what binds). Nothing else of the batch starts until they are decided anew. It looks at
// each call as it would be shown now, and changes nothing where that is what was approved.
func (cb *callBatch) askOvertaken(ctx context.Context) {
	if cb.chained = !anyCall(cb.calls, isApproved); cb.chained {
		return
	}
	var assumed []tool.State
	var overtaken []int
	for i := range cb.calls {
		call := &cb.calls[i]
		if call.State == regie.CallApproved && cb.isOvertaken(ctx, call, assumed) {
			overtaken = append(overtaken, i)
		}
		if i+1 < len(cb.calls) {
			assumed = append(assumed, cb.runner.foreseeState(ctx, call, assumed)...)
		}
	}
	if ctx.Err() != nil { // what was seen meanwhile proves nothing
		return
	}
	for _, i := range overtaken {
		call := &cb.calls[i]
		call.State = regie.CallAwaitingApproval
		delete(cb.reviews, call.ID)
		delete(cb.judge.judged, call.ID)
		cb.asker.again[call.ID] = true
	}
	cb.chained = true
}

// isOvertaken reports whether a call would be shown otherwise now than it was approved, because of
// the calls before it. What changed for any other reason is for its start to find: then it fails.
func (cb *callBatch) isOvertaken(ctx context.Context, call *regie.Call, assumed []tool.State) bool {
	target, inv := cb.runner.newInvocation(call)
	if target == nil {
		return false
	}
	inv.Assumed, inv.Preconditions = assumed, nil
	shown := cb.reviews[call.ID].Preview.Preconditions
	if !slices.ContainsFunc(shown, func(p regie.Precondition) bool {
		_, changes := inv.Assumes(p.Kind, p.Name)
		return changes || cb.hasFailedSince(p.After)
	}) {
		return false
	}
	now, problem := tool.DescribeCall(ctx, target, inv)
	return problem == nil && len(now.Preconditions) > 0 && !slices.EqualFunc(now.Preconditions, shown,
		func(a, b regie.Precondition) bool {
			return a.Kind == b.Kind && a.Name == b.Name && a.Hash == b.Hash
		})
}

// hasFailedSince reports whether a call of the batch did not succeed, on which the preview of
// another one counts.
func (cb *callBatch) hasFailedSince(id regie.ID) bool {
	return slices.ContainsFunc(cb.calls, func(c regie.Call) bool {
		return c.ID == id && c.State.Settled() &&
			c.State != regie.CallSucceeded
	})
}
