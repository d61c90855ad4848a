package engine

import (
	"context"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// foresee returns what a call that is not settled is going to leave behind, on top of what those
// before it leave.
func (r *run) foresee(ctx context.Context, call *regie.Call, assumed []tool.State) []tool.State {
	target, inv := r.invocation(call)
	if target == nil || call.State.Settled() {
		return nil
	}
	inv.Assumed = assumed
	return tool.Foresee(ctx, target, inv)
}

// reconsider sends those approved calls back to the person that were shown on top of calls before
// them which go otherwise by now: they were denied or edited, or they failed (decision 20: what was
// shown is what binds). Nothing else of the batch starts until they are decided anew. It looks at
// each call as it would be shown now, and changes nothing where that is what was approved.
func (r *run) reconsider(ctx context.Context) {
	if r.chained = !anyApproved(r.calls); r.chained {
		return
	}
	var assumed []tool.State
	var overtaken []int
	for i := range r.calls {
		call := &r.calls[i]
		if call.State == regie.CallApproved && r.overtaken(ctx, call, assumed) {
			overtaken = append(overtaken, i)
		}
		if i+1 < len(r.calls) {
			assumed = append(assumed, r.foresee(ctx, call, assumed)...)
		}
	}
	if ctx.Err() != nil { // what was seen meanwhile proves nothing
		return
	}
	for _, i := range overtaken {
		call := &r.calls[i]
		call.State = regie.CallAwaitingApproval
		delete(r.reviews, call.ID)
		delete(r.judged, call.ID)
		r.again[call.ID] = true
	}
	r.chained = true
}

// overtaken reports whether a call would be shown otherwise now than it was approved, because of
// the calls before it. What changed for any other reason is for its start to find: then it fails.
func (r *run) overtaken(ctx context.Context, call *regie.Call, assumed []tool.State) bool {
	target, inv := r.invocation(call)
	if target == nil {
		return false
	}
	inv.Assumed, inv.Preconditions = assumed, nil
	shown := r.reviews[call.ID].Preview.Preconditions
	if !slices.ContainsFunc(shown, func(p regie.Precondition) bool {
		_, changes := inv.Assumes(p.Kind, p.Name)
		return changes || r.wentOtherwise(p.After)
	}) {
		return false
	}
	now, problem := tool.DescribeCall(ctx, target, inv)
	return problem == nil && len(now.Preconditions) > 0 && !slices.EqualFunc(now.Preconditions, shown,
		func(a, b regie.Precondition) bool {
			return a.Kind == b.Kind && a.Name == b.Name && a.Hash == b.Hash
		})
}

// wentOtherwise reports whether a call of the batch did not succeed, on which the preview of
// another one counts.
func (r *run) wentOtherwise(id regie.ID) bool {
	return slices.ContainsFunc(r.calls, func(c regie.Call) bool {
		return c.ID == id && c.State.Settled() &&
			c.State != regie.CallSucceeded
	})
}

func anyApproved(calls []regie.Call) bool {
	return slices.ContainsFunc(calls, func(c regie.Call) bool { return c.State == regie.CallApproved })
}
