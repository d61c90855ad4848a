package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// maxParallel bounds the queries of one batch that run side by side (spec 4.3).
const maxParallel = 8

// runCalls is phase CALLS: it settles the batch in its order. Queries run side by side; an action
// runs alone, after the commit of its intent; each commit carries the result before and the intent
// after it (decision 4).
func (r *run) runCalls(ctx context.Context) error {
	if err := errors.Join(r.tellResults(), r.consult(ctx)); err != nil {
		return err
	}
	if err := r.rejudge(ctx); err != nil {
		return err
	}
	for {
		if !r.parked {
			if err := errors.Join(r.tellResults(), r.consult(ctx)); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return r.suspend(ctx)
		}
		r.beat()
		if r.policyFails(r.calls) {
			r.refuseRest(failNote.String())
		}
		next := r.nextOpen()
		if next < 0 && awaitsClient(r.calls) {
			return r.handOut()
		}
		if next < 0 {
			return r.finishBatch()
		}
		call := &r.calls[next]
		var err error
		switch {
		case r.parked:
			return nil
		case r.role(call) == regie.RoleComplete && call.State != regie.CallAwaitingApproval:
			r.complete(call)
		case call.State == regie.CallStarted && r.cfg.Left != nil && r.cfg.Left() <= 0:
			return ErrShutdown
		case call.State == regie.CallStarted:
			err = r.goOn(ctx, call)
		case r.mustWait(r.calls, next):
			err = r.wait(ctx)
		case call.Kind == regie.KindQuery:
			// A result of an action is safe before anything else runs.
			if err = r.saveActions(); err == nil {
				err = r.startQueries(ctx, next)
			}
		default:
			err = r.startAction(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// nextOpen returns the next call that has no result yet, or -1. A call that ends the round comes
// last (decision 13).
func (r *run) nextOpen() int {
	last := -1
	for i := range r.calls {
		switch {
		case r.calls[i].State.Settled(), r.clients(&r.calls[i]):
		case r.role(&r.calls[i]) != regie.RoleComplete:
			return i
		case last < 0:
			last = i
		}
	}
	return last
}

// refuseRest settles what is left of the batch without running it. What has started has its own
// result.
func (r *run) refuseRest(why string) {
	for i := range r.calls {
		if call := &r.calls[i]; !call.State.Settled() && call.State != regie.CallStarted {
			notRun(call, regie.NotRunDenied, regie.CallError{
				Code:    regie.Code(regie.NotRunDenied),
				Message: "not run: " + why,
			})
			r.unsaved = append(r.unsaved, i)
		}
	}
}

// startAction commits the results in hand with the intent of the next action.
func (r *run) startAction(ctx context.Context) error {
	if r.outcomeUnknown() {
		r.skipAfterUnknown()
		return nil
	}
	if err := errors.Join(r.readRules(), r.warmGuard(ctx)); err != nil {
		return err
	}
	// where the rules are others now: all that is left of the batch is asked about together
	if err := r.rejudge(ctx); err != nil {
		return err
	}
	if !r.chained {
		r.reconsider(ctx)
	}
	open, before := openCalls(r.calls), slices.Clone(r.calls)
	started, err := r.startNext(ctx, r.calls)
	if err != nil {
		return err
	}
	for _, i := range open { // those that could not be prepared
		if r.calls[i].State.Settled() {
			r.unsaved, r.chained = append(r.unsaved, i), false
		}
	}
	if started == nil {
		return nil
	}
	if fault.Bug(fault.BugEffectBeforeIntent) {
		r.runAction(started)
		started.State = regie.CallStarted
	}
	if fault.Bug(fault.BugResultFirst) {
		return r.resultFirst(started)
	}
	fault.Point(fault.IntentBefore)
	if err := r.commitCalls(started); err != nil {
		// The store refused the intent: nothing has started.
		started.State, started.Intent, started.StartedAt, started.Attempts = before[started.Ordinal].State, nil,
			time.Time{}, started.Attempts-1
		return err
	}
	fault.Point(fault.IntentAfter)
	r.started = started.ID
	return nil
}

// resultFirst is a seeded bug (spec 12.3): it exists only in builds with fault points.
func (r *run) resultFirst(started *regie.Call) error {
	if err := r.commitCalls(started); err != nil {
		return err
	}
	settle(started, regie.CallSucceeded, "done", nil)
	r.unsaved = append(r.unsaved, started.Ordinal)
	if err := r.save(); err != nil {
		return err
	}
	target, inv := r.invocation(started)
	tool.Run(r.work, target, inv)
	return nil
}

// commitCalls stores the results in hand and, where one is given, the intent of the next action.
func (r *run) commitCalls(start *regie.Call) error {
	_, err := r.cfg.Store.CommitCalls(r.commit, r.fence, store.Settle{
		Exchange: r.exchange.Number, Settled: r.pick(r.unsaved), Start: start, Plan: r.newPlan(r.unsaved),
	})
	if err == nil {
		r.unsaved = r.unsaved[:0]
		// What a dead process had started stays that while results after it are stored; none is
		// left before a call starts here.
		r.resumed = r.resumed && start == nil && anyStarted(r.calls)
	}
	return err
}

// skipAfterUnknown settles the actions after one whose outcome is not known: they were planned on
// its success (decision 5).
func (r *run) skipAfterUnknown() {
	for i := range r.calls {
		call := &r.calls[i]
		if !call.State.Settled() && call.Kind == regie.KindAction && call.State != regie.CallStarted {
			notRun(call, regie.NotRunInterrupted, regie.CallError{
				Code: regie.CodeOutcomeUnknown, Message: "not run: the outcome of an earlier action of this batch is not known; verify that one first", Retryable: true,
			})
			r.unsaved = append(r.unsaved, i)
		}
	}
}

func (r *run) outcomeUnknown() bool {
	for i := range r.calls {
		if r.calls[i].State == regie.CallUnknown {
			return true
		}
	}
	return false
}

// runAction performs an action whose intent is stored. A pause lets it finish (decision 6).
func (r *run) runAction(call *regie.Call) {
	target, inv := r.invocation(call)
	// it was there when its intent was made, by another process that gave the round back before it
	// ran anything
	if target == nil {
		r.gone(call)
		return
	}
	outcome, tries := tool.Attempt(r.work, target, inv, r.cfg.Retry)
	call.Attempts += tries - 1
	r.take(call, outcome)
	fault.Point(fault.EffectAfter)
}

// take brings a tool's outcome into its call.
func (r *run) take(call *regie.Call, outcome tool.Outcome) {
	settle(call, outcome.State, outcome.Result, outcome.Error)
	call.DurationUS, call.Changed = outcome.Duration.Microseconds(), outcome.Changed
	if outcome.Whole == "" {
		return
	}
	// The whole of a shortened result is kept (spec 3.2). If it cannot be, the shortened one is
	// still the result, and says so.
	hash, err := r.cfg.Store.PutBlob(r.commit, []byte(outcome.Whole))
	call.ResultBlob = hash
	if err != nil {
		call.Result, call.ResultLost = outcome.Unkept(err), int64(len(outcome.Whole))
	}
}

// startQueries runs the next query with its neighbours, unless one that another process judged may
// not run any more as it was judged.
func (r *run) startQueries(ctx context.Context, first int) error {
	if err := r.readRules(); err != nil {
		return err
	}
	for i := first; i < len(r.calls) && r.calls[i].Kind == regie.KindQuery && ready(&r.calls[i]); i++ {
		call := &r.calls[i]
		target, _, ok := r.tools.Lookup(call.Tool)
		if !ok || r.clients(call) || r.fresh[call.ID] && call.State == regie.CallProposed || r.cleared[call.ID] {
			continue
		}
		if err := errors.Join(r.readRules(), r.warmGuard(ctx)); err != nil {
			return err
		}
		if !r.clear(call, target) {
			if call.State.Settled() {
				r.unsaved = append(r.unsaved, i)
			}
			return nil // the loop sees what it has become
		}
		r.cleared[call.ID] = true
	}
	r.runQueries(ctx, first)
	return nil
}

// runQueries runs the query at first and, if it is parallel-safe, its parallel-safe neighbours
// beside it (decision 23).
func (r *run) runQueries(ctx context.Context, first int) {
	last := first
	for parallelSafe(r, first) && last+1 < len(r.calls) && ready(&r.calls[last+1]) &&
		r.calls[last+1].Kind == regie.KindQuery && parallelSafe(r, last+1) && r.role(&r.calls[last+1]) == "" {
		last++
	}
	if first == last {
		r.runQuery(ctx, &r.calls[first])
	} else {
		var group sync.WaitGroup
		free := make(chan struct{}, maxParallel)
		for i := first; i <= last; i++ {
			free <- struct{}{}
			group.Go(func() {
				r.runQuery(ctx, &r.calls[i])
				<-free
			})
		}
		group.Wait()
	}
	for i := first; i <= last; i++ {
		if r.calls[i].State.Settled() {
			r.unsaved = append(r.unsaved, i)
		}
	}
	fault.Point(fault.QueriesAfter)
}

// ready reports whether nothing but its turn keeps a call from running.
func ready(call *regie.Call) bool {
	return call.State == regie.CallProposed || call.State == regie.CallApproved
}

func parallelSafe(r *run, i int) bool {
	target, _, ok := r.tools.Lookup(r.calls[i].Tool)
	return ok && target.Definition().ParallelSafe
}

// runQuery performs one query. A query that was cut by a stop or a shutdown stays open: it is
// repeated at will.
func (r *run) runQuery(ctx context.Context, call *regie.Call) {
	target, inv := r.invocation(call)
	if target == nil {
		r.gone(call)
		return
	}
	q := r.begun(call)
	if q == nil {
		q = &running{}
		q.outcome, q.tries = tool.Attempt(ctx, target, inv, r.cfg.Retry)
	}
	if ctx.Err() != nil && q.outcome.State != regie.CallSucceeded {
		return
	}
	r.takeQuery(call, q)
}

// saveActions commits results that include an action's, in the middle of a batch.
func (r *run) saveActions() error {
	for _, i := range r.unsaved {
		if r.calls[i].Kind == regie.KindAction {
			return r.save()
		}
	}
	return nil
}

// save commits the results in hand, if there are any.
func (r *run) save() error {
	if len(r.unsaved) == 0 {
		return nil
	}
	err := r.commitCalls(nil)
	if err == nil {
		fault.Point(fault.ResultAfter)
	}
	return err
}

// suspend stops working on a batch because the context ended. What was done is stored; where a
// person's word keeps it from being stored here, it is stored with the end of the round (decision
// 6).
func (r *run) suspend(ctx context.Context) error {
	word, _ := r.stopWord(ctx)
	if word.Ends() {
		return nil
	}
	return r.save()
}

// finishBatch commits the last results with the message that brings them to the model, and what
// follows (decision 4).
func (r *run) finishBatch() error {
	c := r.closing(r.reply, r.calls, r.round.Counters)
	fault.Point(fault.SettledBefore)
	out, err := r.cfg.Store.CommitCalls(r.commit, r.fence, store.Settle{
		Exchange: r.exchange.Number, Settled: r.pick(r.unsaved), Message: c.message, Post: c.post,
		Advance: &c.advance, Plan: r.newPlan(r.unsaved),
	})
	if err != nil {
		return err
	}
	fault.Point(fault.SettledAfter)
	r.unsaved, r.resumed = r.unsaved[:0], false
	r.closeBatch(c.message, out)
	return r.moved(out, nil, c.advance)
}

func (r *run) pick(indexes []int) []regie.Call {
	out := make([]regie.Call, 0, len(indexes))
	for _, i := range indexes {
		out = append(out, r.calls[i])
	}
	return out
}

func anyStarted(calls []regie.Call) bool {
	return slices.ContainsFunc(calls, func(c regie.Call) bool { return c.State == regie.CallStarted })
}

func openCalls(calls []regie.Call) []int {
	var out []int
	for i := range calls {
		if !calls[i].State.Settled() {
			out = append(out, i)
		}
	}
	return out
}
