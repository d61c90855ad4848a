package engine

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
)

// headStart is how long a reply waits for its local queries before it is stored without their
// results. Most have theirs sooner, and then reply, results and next exchange are one commit in
// place of two. What a crash can lose by it is a reply that is this much older.
const headStart = 2 * time.Millisecond

// startEarly gives the batch's queries a head start if it consists of nothing but local ones that
// may run, and settles them if all are done by then. Else they are cut, and run again once their
// reply is stored.
func (x *toolRunner) startEarly(ctx context.Context, calls []regie.Call) {
	if x.cfg.HeadStart < 0 || !x.allLocal(calls) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, x.cfg.HeadStart)
	defer cancel()
	found, done := make([]*running, len(calls)), make(chan struct{})
	var jobs []func()
	for i := range calls {
		if call := &calls[i]; !call.State.Settled() {
			target, inv := x.newInvocation(call)
			jobs = append(jobs, func() { found[i] = x.attempt(ctx, target, inv) })
		}
	}
	x.early.Go(func() {
		runParallel(len(jobs), func(i int) { jobs[i]() })
		close(done)
	})
	select {
	case <-done:
	case <-ctx.Done():
		return
	}
	if ctx.Err() != nil {
		return // what was cut is not what the model is told
	}
	for i := range calls {
		if found[i] != nil {
			x.settleQuery(&calls[i], found[i])
		}
	}
	fault.Point(fault.QueriesAfter)
}

// allLocal reports whether a batch has something to run, all of it local queries for which nobody
// is asked.
func (x *toolRunner) allLocal(calls []regie.Call) bool {
	open := 0
	for i := range calls {
		call := &calls[i]
		if call.State.Settled() {
			continue
		}
		target, hash, ok := x.tools.Lookup(call.Tool)
		if !ok || hash != call.Definition || call.State != regie.CallProposed || call.Kind != regie.KindQuery {
			return false
		}
		if d := target.Definition(); !d.Local || !d.ParallelSafe || d.Role != "" {
			return false
		}
		open++
	}
	return open > 0 && open <= maxParallel
}
