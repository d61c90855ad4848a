package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// callBatch is the batch of the current exchange: its calls, and what is not stored of them yet.
type callBatch struct {
	*run
	calls   []regie.Call
	unsaved []int    // the calls that are settled here and not yet stored
	started regie.ID // the call whose intent this process has stored, and which it is about to run
}

// nextOpen returns the next call that has no result yet, or -1. A call that ends the round comes
// last (decision 13).
func (cb *callBatch) nextOpen() int {
	last := -1
	for i := range cb.calls {
		switch {
		case cb.calls[i].State.Settled(), cb.isClientCall(&cb.calls[i]):
		case cb.roleOf(&cb.calls[i]) != regie.RoleComplete:
			return i
		case last < 0:
			last = i
		}
	}
	return last
}

// startBatch takes the first step of a batch together with its reply: the first action starts, or
// people are asked and the round lets go.
func (cb *callBatch) startBatch(ctx context.Context, in *store.Reply) error {
	ask, err := cb.asker.prepareAsk(ctx, in.Calls)
	if err != nil {
		return nil //nolint:nilerr // stopped while asking: nothing was put to anybody
	}
	in.Ask = ask
	for i := range in.Calls {
		if !in.Calls[i].State.Settled() && !cb.isClientCall(&in.Calls[i]) {
			in.Park = ask != nil && cb.asker.mustWait(in.Calls, i)
			break
		}
	}
	if in.Park {
		return nil
	}
	if _, err = cb.startNext(ctx, in.Calls); err == nil {
		cb.runner.startEarly(ctx, in.Calls)
	}
	return err
}

// startAction commits the results in hand with the intent of the next action.
func (cb *callBatch) startAction(ctx context.Context) error {
	if anyCall(cb.calls, func(c *regie.Call) bool { return c.State == regie.CallUnknown }) {
		// the actions after it were planned on its success (decision 5)
		cb.skipOpen(regie.NotRunInterrupted, regie.CallError{
			Code: regie.CodeOutcomeUnknown, Message: "not run: the outcome of an earlier action of this batch is not known; verify that one first", Retryable: true,
		}, isAction)
		return nil
	}
	if err := cb.judge.refresh(ctx); err != nil {
		return err
	}
	if err := cb.rejudgeActions(ctx); err != nil {
		return err
	}
	open, before := openCalls(cb.calls), slices.Clone(cb.calls)
	started, err := cb.startNext(ctx, cb.calls)
	if err != nil {
		return err
	}
	for _, i := range open { // those that could not be prepared
		if cb.calls[i].State.Settled() {
			cb.unsaved = append(cb.unsaved, i)
		}
	}
	if started == nil {
		return nil
	}
	if fault.Bug(fault.BugEffectBeforeIntent) {
		cb.runner.runAction(started)
		started.State = regie.CallStarted
	}
	if fault.Bug(fault.BugResultFirst) {
		return cb.resultFirst(started)
	}
	fault.Point(fault.IntentBefore)
	if err := cb.commitCalls(started); err != nil {
		// The store refused the intent: nothing has started.
		started.State, started.Intent, started.StartedAt, started.Attempts = before[started.Ordinal].State, nil,
			time.Time{}, started.Attempts-1
		return err
	}
	fault.Point(fault.IntentAfter)
	cb.started = started.ID
	return nil
}

// startNext prepares the next call of the batch if it is an action: with its intent it becomes
// STARTED, a failure to prepare settles it and the next one is looked at. It returns the started
// call, or nil where a query comes next or nothing is left.
func (cb *callBatch) startNext(ctx context.Context, calls []regie.Call) (*regie.Call, error) {
	for i := range calls {
		call := &calls[i]
		// what ends the round comes last
		if call.State.Settled() || cb.isClientCall(call) || cb.roleOf(call) == regie.RoleComplete {
			continue
		}
		if call.Kind == regie.KindQuery || cb.asker.mustWait(calls, i) {
			return nil, nil
		}
		if call.State == regie.CallStarted {
			return nil, regie.Errorf(regie.CodeInternal, "a started call stands before the next one")
		}
		target, inv := cb.runner.newInvocation(call)
		if target == nil {
			cb.runner.settleMissing(call)
		} else if !cb.judge.recheckCall(call, target) && (!call.State.Settled() || cb.policyFails(calls)) {
			return nil, nil // it is asked about anew, or the run ends with it
		}
		if call.State.Settled() {
			continue
		}
		inv.Unapproved = cb.judge.byMode[call.ID]
		intent, problem := cb.prepareCall(ctx, target, inv)
		if ctx.Err() != nil {
			return nil, nil //nolint:nilerr // stopped while preparing: nothing has started, and the loop sees why
		}
		if problem != nil {
			settleCall(call, regie.CallFailed, "", problem)
			continue
		}
		call.State, call.Intent, call.StartedAt, call.Attempts = regie.CallStarted, intent,
			time.Now().UTC(), call.Attempts+1
		return call, nil
	}
	return nil, nil
}

// prepareCall compares the world with what an approval showed and has the tool record its evidence
// (decision 20).
func (cb *callBatch) prepareCall(ctx context.Context, target tool.Tool, inv *tool.Invocation) (json.RawMessage,
	*regie.CallError,
) {
	if err := tool.CheckPreconditions(ctx, target, inv, inv.Preconditions); err != nil {
		return nil, &regie.CallError{
			Code: regie.CodeOf(err), Message: err.Error(), Retryable: true,
			Hint: "look at what is there now and propose the call again",
		}
	}
	return tool.Prepare(ctx, target, inv)
}

// commitCalls stores the results in hand and, where one is given, the intent of the next action.
func (cb *callBatch) commitCalls(start *regie.Call) error {
	in := cb.unsavedResults()
	in.Start = start
	_, err := cb.cfg.Store.CommitCalls(cb.commit, cb.fence, in)
	if err == nil {
		cb.unsaved = cb.unsaved[:0]
		// What a dead process had started stays that while results after it are stored; none is
		// left before a call starts here.
		cb.resumed = cb.resumed && start == nil && anyCall(cb.calls, isStarted)
	}
	return err
}

// saveResults commits the results in hand, if there are any.
func (cb *callBatch) saveResults() error {
	if len(cb.unsaved) == 0 {
		return nil
	}
	err := cb.commitCalls(nil)
	if err == nil {
		fault.Point(fault.ResultAfter)
	}
	return err
}

// saveActions commits results that include an action's, in the middle of a batch.
func (cb *callBatch) saveActions() error {
	if slices.ContainsFunc(cb.unsaved, func(i int) bool { return cb.calls[i].Kind == regie.KindAction }) {
		return cb.saveResults()
	}
	return nil
}

// suspendBatch stops working on a batch because the context ended. What was done is stored; where a
// person's word keeps it from being stored here, it is stored with the end of the round (decision
// 6).
func (cb *callBatch) suspendBatch(ctx context.Context) error {
	word, _ := cb.stopWord(ctx)
	if word.Ends() {
		return nil
	}
	return cb.saveResults()
}

// unsavedResults returns the calls that are settled here and not stored yet, with the plan that
// they change.
func (cb *callBatch) unsavedResults() store.Settle {
	out := store.Settle{Exchange: cb.exchange.Number}
	for _, i := range cb.unsaved {
		call := cb.calls[i]
		out.Settled = append(out.Settled, call)
		if cb.roleOf(&call) == regie.RolePlan && call.State == regie.CallSucceeded {
			out.Plan = cb.runner.callArguments(&call)
		}
	}
	cb.noteFlow(out.Settled)
	return out
}

// startQueries runs the next query with its neighbours, unless one that another process judged may
// not run any more as it was judged.
func (cb *callBatch) startQueries(ctx context.Context, first int) error {
	if err := cb.judge.refresh(ctx); err != nil {
		return err
	}
	for i := first; i < len(cb.calls) && cb.calls[i].Kind == regie.KindQuery && isReady(&cb.calls[i]); i++ {
		call := &cb.calls[i]
		target, _, ok := cb.tools.Lookup(call.Tool)
		if !ok || cb.isClientCall(call) || cb.judge.recheckCall(call, target) {
			continue
		}
		if call.State.Settled() {
			cb.unsaved = append(cb.unsaved, i)
		}
		return nil // the loop sees what it has become
	}
	cb.runQueries(ctx, first)
	return nil
}

// runQueries runs the query at first and, if it is parallel-safe, its parallel-safe neighbours in
// parallel (decision 23).
func (cb *callBatch) runQueries(ctx context.Context, first int) {
	last := first
	for last+1 < len(cb.calls) && cb.runner.parallelSafe(&cb.calls[first]) {
		next := &cb.calls[last+1]
		if !isReady(next) || next.Kind != regie.KindQuery || !cb.runner.parallelSafe(next) || cb.roleOf(next) != "" {
			break
		}
		last++
	}
	runParallel(last-first+1, func(i int) { cb.runQuery(ctx, &cb.calls[first+i]) })
	for i := first; i <= last; i++ {
		if cb.calls[i].State.Settled() {
			cb.unsaved = append(cb.unsaved, i)
		}
	}
	fault.Point(fault.QueriesAfter)
}

// runQuery performs one query. A query that was cut by a stop or a shutdown stays open: it is
// repeated at will.
func (cb *callBatch) runQuery(ctx context.Context, call *regie.Call) {
	target, inv := cb.runner.newInvocation(call)
	if target == nil {
		cb.runner.settleMissing(call)
		return
	}
	q := cb.runner.awaitEarly(call)
	if q == nil {
		q = cb.runner.attempt(ctx, target, inv)
	}
	if ctx.Err() != nil && q.outcome.State != regie.CallSucceeded {
		return
	}
	cb.runner.settleQuery(call, q)
}

// isReady reports whether nothing but its turn keeps a call from running.
func isReady(call *regie.Call) bool {
	return call.State == regie.CallProposed || call.State == regie.CallApproved
}

// rejudgeActions checks the actions of a batch that another process judged, or that were judged
// under other rules, before any of them starts: all new approvals are asked for together.
func (cb *callBatch) rejudgeActions(ctx context.Context) error {
	for i := range cb.calls {
		call := &cb.calls[i]
		target, _, ok := cb.tools.Lookup(call.Tool)
		if !ok || !isAction(call) || call.State != regie.CallProposed || cb.hooks.needsHooks(call) ||
			cb.judge.fresh[call.ID] {
			continue
		}
		if err := cb.judge.refresh(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		if !cb.judge.recheckCall(call, target) && call.State.Settled() {
			cb.unsaved = append(cb.unsaved, i)
		}
	}
	return nil
}

// skipOpen settles the open calls of a batch that have not started and are for skip, without
// running them.
func (cb *callBatch) skipOpen(code regie.NotRunCode, problem regie.CallError, skip func(*regie.Call) bool) {
	for i := range cb.calls {
		if call := &cb.calls[i]; !call.State.Settled() && !isStarted(call) && skip(call) {
			settleNotRun(call, code, problem)
			cb.unsaved = append(cb.unsaved, i)
		}
	}
}

// completeRound settles the call that ends the round, after all others (decision 13).
func (cb *callBatch) completeRound(call *regie.Call) {
	var open []string
	for i := range cb.calls {
		other := &cb.calls[i]
		if cb.roleOf(other) != regie.RoleComplete && other.State != regie.CallSucceeded &&
			other.NotRun != regie.NotRunDuplicateInBatch {
			open = append(open, other.Tool+": "+string(other.State))
		}
	}
	cb.unsaved = append(cb.unsaved, call.Ordinal)
	if len(open) == 0 {
		settleCall(call, regie.CallSucceeded, "completed", nil)
		return
	}
	settleCall(call, regie.CallFailed, "", &regie.CallError{
		Code: "COMPLETE_REFUSED", Message: "not completed: of this reply " + strings.Join(open, ", "), Retryable: true,
		Hint: "repair or explain what did not succeed, then complete",
	})
}

// resultFirst is a seeded bug (spec 12.3): it exists only in builds with fault points.
func (cb *callBatch) resultFirst(started *regie.Call) error {
	if err := cb.commitCalls(started); err != nil {
		return err
	}
	settleCall(started, regie.CallSucceeded, "done", nil)
	cb.unsaved = append(cb.unsaved, started.Ordinal)
	if err := cb.saveResults(); err != nil {
		return err
	}
	target, inv := cb.runner.newInvocation(started)
	tool.Run(cb.work, target, inv)
	return nil
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
