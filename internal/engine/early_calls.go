package engine

import (
	"context"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/tool"
)

// headStart is how long a reply waits for its local queries before it is stored without their
// results. Most have theirs sooner, and then reply, results and next exchange are one commit in
// place of two. What a crash can lose by it is a reply that is this much older.
const headStart = 2 * time.Millisecond

// early are the queries of a batch that run while their reply is not stored yet.
type early struct {
	cancel context.CancelFunc
	group  sync.WaitGroup
	calls  map[regie.ID]*running
}

// running is a query on its way. Outcome and tries may be read once done is closed.
type running struct {
	done    chan struct{}
	outcome tool.Outcome
	tries   int
}

// startEarly starts the batch's queries if it consists of nothing but local ones that may run,
// gives them a head start, and settles those that are done. The others go on; runQuery waits for
// them.
func (x *toolRunner) startEarly(ctx context.Context, calls []regie.Call) {
	if x.cfg.HeadStart < 0 || !x.allLocal(calls) {
		return
	}
	x.stopEarly()
	ctx, cancel := context.WithCancel(ctx)
	e := &early{cancel: cancel, calls: make(map[regie.ID]*running, len(calls))}
	x.early = e
	for i := range calls {
		if calls[i].State.Settled() {
			continue
		}
		target, inv := x.newInvocation(&calls[i])
		q := &running{done: make(chan struct{})}
		e.calls[calls[i].ID] = q
		e.group.Go(func() {
			defer close(q.done)
			q.outcome, q.tries = tool.Attempt(ctx, target, inv, x.retry())
		})
	}
	timer := time.NewTimer(x.cfg.HeadStart)
	defer timer.Stop()
	for i := range calls {
		q := e.calls[calls[i].ID]
		if q == nil {
			continue
		}
		select {
		case <-q.done:
		case <-timer.C:
			return // none is settled: those that are done keep their results until the others are
		}
	}
	if ctx.Err() != nil {
		return // stopped meanwhile: what was cut is not what the model is told
	}
	for i := range calls {
		if q := e.calls[calls[i].ID]; q != nil {
			x.settleQuery(&calls[i], q)
		}
	}
	x.noteFlow(calls)
	fault.Point(fault.QueriesAfter)
}

// allLocal reports whether a batch is not empty and has only local queries that need no approval.
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

// awaitEarly returns the query that was started with the reply, once it is done, or nil.
func (x *toolRunner) awaitEarly(call *regie.Call) *running {
	if x.early == nil {
		return nil
	}
	q := x.early.calls[call.ID]
	if q != nil {
		<-q.done // its context descends from the one that the caller was given
	}
	return q
}

// stopEarly ends queries if their reply was not stored or their round is left.
func (x *toolRunner) stopEarly() {
	if x.early == nil {
		return
	}
	x.early.cancel()
	x.early.group.Wait()
	x.early = nil
}
