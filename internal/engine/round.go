package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// run is one round on its way: the loop, its phases and the transitions that advance the round
// (round.go). Its parts decide and prepare; each has its own state, and reaches the others through
// the run.
type run struct {
	*roundState
	head     *promptHead
	targets  *targetList
	budget   *contextBudget
	money    *money
	call     *modelCall
	runner   *toolRunner
	hooks    *callHooks
	judge    *judge
	asker    *asker
	recovery *recovery
	batch    *callBatch
	planner  *planner
	closer   *closer
	enricher *enricher
}

// newParts makes the parts of a round.
func newParts(s *roundState) *run {
	r := &run{roundState: s}
	r.head, r.targets, r.budget, r.money = &promptHead{r}, &targetList{run: r}, &contextBudget{run: r}, &money{r}
	r.call, r.runner, r.recovery, r.batch = &modelCall{run: r}, &toolRunner{run: r}, &recovery{r}, &callBatch{run: r}
	r.planner, r.closer, r.enricher = &planner{r}, &closer{r}, &enricher{r}
	r.hooks = &callHooks{run: r, ran: map[consulted][]regie.HookRun{}, toldOf: map[regie.ID]bool{}}
	r.judge = &judge{
		run: r, judged: map[regie.ID]approval.Judgement{}, fresh: map[regie.ID]bool{},
		byMode: map[regie.ID]bool{},
	}
	r.asker = &asker{run: r}
	return r
}

// loop runs the round (spec 3.1) step by step until it ends or is parked. Each step ends in a
// stored state:
//
//	step      stop word, time limit, drain, yield; then the phase:
//	  MODEL   runModel, askModel, acceptReply, and then storeAnswer or storeCalls;
//	          handleFailure: fallback, wait, summary without a model, or the end
//	  CALLS   runCalls, one call after another, and then finishBatch
//	advance   the run follows what was stored
func (r *run) loop(ctx context.Context) error {
	if r.round.Counters.Resumes > maxResumes {
		nowhere := regie.Say("the run was resumed several times without progress")
		if err := r.endEarly(regie.EndNoProgress, nowhere); regie.CodeOf(err) != regie.CodeStopRequested {
			return err
		}
		if err := r.readStop(); err != nil { // the word wins here too
			return err
		}
	}
	// a stopping word is obeyed below
	if err := r.noteMissingTools(); err != nil && regie.CodeOf(err) != regie.CodeStopRequested {
		return err
	}
	if err := r.runRoundHooks(ctx); err != nil && regie.CodeOf(err) != regie.CodeStopRequested {
		return err
	}
	for r.round.Phase != regie.PhaseEnd && !r.parked {
		if err := r.step(ctx); err != nil {
			if regie.CodeOf(err) != regie.CodeStopRequested {
				return err
			}
			// The store refused a step because a stopping word came first: the word wins (decision
			// 6).
			if err := r.readStop(); err != nil {
				return err
			}
		}
	}
	return nil
}

// step obeys a signal, or makes the step of the phase.
func (r *run) step(ctx context.Context) error {
	r.reportAlive()
	switch word, err := r.stopWord(ctx); {
	case errors.Is(err, errTimeOver):
		return r.endEarly(regie.EndLimit,
			regie.Say("the limit on seconds (%s)", strconv.FormatInt(r.round.Limits.Seconds, 10)))
	case err != nil:
		return err
	case word != "":
		return r.obeyStop(word)
	case r.isDraining():
		return ErrShutdown
	case r.shouldYield():
		return r.yieldRound()
	}
	switch r.round.Phase {
	case regie.PhaseModel:
		if r.isCommand() {
			return r.runCommand(ctx)
		}
		return r.runModel(ctx)
	case regie.PhaseCalls:
		return r.runCalls(ctx)
	default:
		return regie.Errorf(regie.CodeCorrupt, "the round has the unknown phase %q", string(r.round.Phase))
	}
}

// runModel is phase MODEL: it makes the request ready and asks until a reply is here or the tries
// are used up, and stores either (spec 3.1, 3.6).
func (r *run) runModel(ctx context.Context) error {
	// a round that counts on, see store.Submit
	if limit := spent(r.round.Counters, r.used, r.round.Limits); !limit.IsZero() {
		return r.endEarly(regie.EndLimit, limit)
	}
	if err := r.budget.openThread(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the error only says that the context ended; the loop sees why
		}
		var unusable unusableModel
		if !errors.As(err, &unusable) {
			return err
		}
		// No provider can answer: the person gets the reason, and the run does not wait for ever.
		failed := &provider.Error{Code: regie.CodeOf(unusable.err), Message: unusable.Error(), Err: err}
		return r.handleFailure(failed, failed, 0) // a fallback may be usable
	}
	if err := r.enricher.enrichThread(ctx); err != nil || ctx.Err() != nil {
		return err // where a signal came, the loop sees why
	}
	if r.resumed {
		if err := r.call.bookLostCall(byDeath); err != nil {
			return err
		}
	}
	before, large, err := r.budget.checkFit(ctx)
	switch {
	case ctx.Err() != nil || err != nil:
		return ignoreCut(ctx, err)
	case large != nil:
		return r.endTooLarge(large)
	case before != nil:
		if err := r.beginSummary(before); err != nil || ctx.Err() != nil {
			return ignoreCut(ctx, err)
		}
	}
	if r.budget.summary != nil && r.budget.summary.why != nil {
		return r.summarizeWithoutModel(r.budget.summary.why, 0)
	}
	return r.askModel(ctx)
}

// askModel makes the attempts of a model call that is ready.
func (r *run) askModel(ctx context.Context) error {
	r.call.due = r.call.outage != nil || r.exchange.Attempt > 1 // whoever takes it up again has waited for this moment
	var last *provider.Error
	for try := 1; ; try++ {
		switch refused, err := r.money.reserveCall(ctx); {
		case err != nil:
			return ignoreCut(ctx, err)
		case refused != nil && refused.unknown != nil:
			return ignoreCut(ctx, r.endUnanswered(refused.unknown, 0))
		case refused != nil:
			return ignoreCut(ctx, r.endOverCap(*refused.over, refused.wants))
		case r.budget.thread.unread != nil:
			return ignoreCut(ctx, r.budget.thread.unread)
		}
		reply, took, err := r.call.sendAttempt(ctx)
		if err == nil {
			return r.acceptReply(ctx, reply, took)
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the error only says that the context ended; the loop sees why
		}
		var failed *provider.Error
		if !errors.As(err, &failed) {
			return err
		}
		open := errors.Is(failed, provider.ErrOpen)
		told := failed
		if open && last != nil { // what it was opened by says more
			told = last
		}
		switch offline := failed.Code == regie.CodeProviderOffline; {
		case r.budget.lowerLimit(failed), r.budget.dropTemperature(failed):
			return r.call.storeRetry(failed, took, 0)
		// A present person hears at once that the network is down (decision 42), or that the server
		// will not answer for long.
		case !failed.Retryable || offline || open || try >= r.call.maxTries(failed) || failed.RetryAfter > longWish:
			return r.handleFailure(failed, told, took)
		}
		last, r.call.due = failed, false
		wait := r.cfg.Backoff(try+1, failed.RetryAfter)
		if err := r.call.storeRetry(failed, took, wait); err != nil {
			return err
		}
		if !r.waitFor(ctx, wait) {
			return nil
		}
	}
}

// handleFailure continues after the last try of a provider: with a fallback, by waiting, without a
// summary, or by ending the round. failed is the last attempt's error, told the one for people.
func (r *run) handleFailure(failed, told *provider.Error, took time.Duration) error {
	if r.budget.summary == nil || answersNobody(failed.Code) { // a summary can be done without
		if next, ok := r.targets.nextTarget(told); ok {
			return r.fallBackTo(next, failed, took)
		}
	}
	switch {
	case r.policy.WaitNetwork && r.targets.mayComeBack(failed):
		return r.waitNetwork(failed, took)
	case r.budget.summary != nil && !answersNobody(failed.Code):
		return r.summarizeWithoutModel(failed, took.Microseconds())
	default:
		return r.endUnanswered(failed, took)
	}
}

// acceptReply stores a reply: the answer, or calls with the intent of the first action (decision
// 4).
func (r *run) acceptReply(ctx context.Context, reply *provider.Reply, took time.Duration) error {
	exchange := r.exchange
	exchange.Provider, exchange.Model = r.round.Provider, r.round.Model
	var head regie.Hash
	exchange.FirstSeq, exchange.LastSeq, exchange.Request, head = r.budget.lastRequest()
	if head != r.budget.thread.told {
		exchange.Head = head
	}
	exchange.Usage, exchange.StopReason = reply.Usage, reply.StopReason
	exchange.FirstByteUS, exchange.ModelUS = reply.FirstByte.Microseconds(), took.Microseconds()
	exchange.Money = r.money.costOf(reply.Usage)
	if !reply.Cached.IsZero() { // no person was asked
		exchange.Money = regie.Money{Reserved: r.exchange.Money.Reserved, Known: true}
	}
	r.used = r.round.Tokens + reply.Usage.Input + reply.Usage.Output
	if r.budget.summary != nil {
		return r.acceptSummary(ctx, reply, exchange)
	}
	h := r.decodeReply(reply)
	if slices.ContainsFunc(h.parts, func(p provider.Part) bool { return p.Type == regie.PartCall }) {
		if err := r.judge.readRules(); err != nil {
			return err
		}
	}
	message, calls := r.planner.planReply(&h)
	switch {
	case h.unreadable != nil:
		return r.requestCorrection(ctx, message, exchange, r.systemMessage(regie.SystemFormatError,
			h.unreadable.Correction(r.policy.French)))
	case len(calls) == 0:
		return r.storeAnswer(ctx, message, exchange, reply)
	}
	err := r.storeCalls(ctx, message, calls, exchange)
	if regie.CodeOf(err) != regie.CodeStopRequested {
		return err
	}
	// A stopping word came before the reply: it is stored all the same, but not acted on (decision
	// 6).
	if err := r.readStop(); err != nil {
		return err
	}
	return r.acceptReply(ctx, reply, took)
}

// storeCalls stores calls with the message that owns them, and what becomes of them at once. It
// returns CodeStopRequested where a stopping word came first: nothing is stored then.
func (r *run) storeCalls(ctx context.Context, message regie.Message, calls []regie.Call,
	exchange regie.Exchange,
) error {
	in, err := r.decideCalls(ctx, message, calls)
	if err != nil {
		return err
	}
	in.Exchange = exchange
	for i := range calls {
		// A call without a request for approval is stored as proposed: the next holder of the round
		// judges it again.
		if calls[i].State == regie.CallAwaitingApproval && !asksAbout(in.Ask, calls[i].ID) {
			calls[i].State = regie.CallProposed
			delete(r.judge.fresh, calls[i].ID)
		}
	}
	if in.Ask != nil {
		fault.Point(fault.AskBefore)
	}
	out, err := r.cfg.Store.AppendReply(r.commit, r.fence, in)
	if err != nil {
		return err
	}
	fault.Point(fault.ReplyAfter)
	if !r.isCommand() {
		r.budget.learnSize(&exchange)
		r.call.reportReply(&exchange, false)
	}
	in.Message.Seq = out.Seq
	r.reply, r.batch.calls, r.parked = &in.Message, calls, out.Parked
	for i := range calls {
		if calls[i].State == regie.CallStarted {
			r.batch.started = calls[i].ID
		}
	}
	r.asker.noteAsked(in.Ask)
	if in.Results != nil {
		r.budget.appendBatch(calls, in.Results, out)
		fault.Point(fault.SettledAfter)
	}
	return r.advance(out, nil, in.Advance)
}

// decideCalls decides what becomes of a reply's calls: refused as a whole, or the first of them
// started.
func (r *run) decideCalls(ctx context.Context, message regie.Message, calls []regie.Call) (store.Reply, error) {
	counters, limit := afterReply(r.round.Counters, r.used, r.round.Limits,
		batchOf(calls, r.round.Dialect, r.roleOf, false))
	if r.isCommand() { // the limits bound a model
		counters, limit = r.round.Counters, noLimit
	}
	in := store.Reply{Message: message, Calls: calls}
	word, cancelled := r.stopWord(ctx)
	switch {
	case word == regie.StopInterrupt || word == regie.StopStop:
		refuseOpen(calls, regie.NotRunInterrupted, "not run: the run was stopped before")
		in.Results = r.resultsMessage(calls, "the person stopped the run")
		in.Advance = r.endRound(counters, endOf(word), quietly)
	case !limit.IsZero():
		refuseOpen(calls, regie.NotRunOverLimit, "not run: "+limit.String()+" was reached")
		in.Results = r.limitMessage(limit, calls)
		in.Advance = r.endRound(counters, regie.EndLimit, limit)
	case !r.judge.circles.IsZero():
		refuseOpen(calls, regie.NotRunOverLimit, "not run: the run ends, "+r.judge.circles.String())
		in.Results = r.circlesMessage(r.judge.circles, calls)
		in.Advance = r.endRound(counters, regie.EndEarlyStop, r.judge.circles)
	case r.policyFails(calls):
		refuseOpen(calls, regie.NotRunDenied, "not run: "+failNote.String())
		in.Results = r.resultsMessage(calls, "")
		in.Advance = r.endRound(counters, regie.EndDenied, failNote)
	default:
		// After a pause or a shutdown nothing new starts; the next holder of the round starts it.
		if word == "" && cancelled == nil && !r.hooks.anyHooked(calls) {
			if err := r.batch.startBatch(ctx, &in); err != nil {
				return in, err
			}
		}
		counters.Resumes = 0 // a stored step is progress
		in.Advance = store.Advance{Phase: regie.PhaseCalls, Counters: counters}
		switch {
		case in.Park:
		case awaitsClient(calls):
			in.Advance = r.endRound(counters, regie.EndClientTools, quietly)
		case !anyCall(calls, isOpen):
			c := r.closer.closeBatch(&in.Message, calls, counters)
			in.Results, in.Advance = c.message, c.advance // what settles here has no post text: no action has run
		}
	}
	return in, nil
}

// runCalls is phase CALLS: it settles the batch in its order. Queries run side by side; an action
// runs alone, after the commit of its intent; each commit carries the result before and the intent
// after it (decision 4).
func (r *run) runCalls(ctx context.Context) error {
	err := errors.Join(r.batch.runAfterHooks(), r.batch.runBeforeHooks(ctx), r.batch.rejudgeActions(ctx))
	if err != nil {
		return err
	}
	for {
		if !r.parked {
			if err := errors.Join(r.batch.runAfterHooks(), r.batch.runBeforeHooks(ctx)); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return r.batch.suspendBatch(ctx)
		}
		r.reportAlive()
		if r.policyFails(r.batch.calls) {
			r.batch.skipOpen(regie.NotRunDenied, regie.CallError{
				Code: regie.Code(regie.NotRunDenied), Message: "not run: " + failNote.String(),
			}, func(*regie.Call) bool { return true })
		}
		next := r.batch.nextOpen()
		if next < 0 && awaitsClient(r.batch.calls) {
			// The client's next request has the results, and starts the next round (decision 35).
			// The reply has none until then, so nothing is rendered of it.
			return r.finishBatch(closed{advance: r.endRound(r.round.Counters, regie.EndClientTools, quietly)})
		}
		if next < 0 {
			return r.finishBatch(r.closer.closeBatch(r.reply, r.batch.calls, r.round.Counters))
		}
		call := &r.batch.calls[next]
		var err error
		switch {
		case r.parked:
			return nil
		case r.roleOf(call) == regie.RoleComplete && call.State != regie.CallAwaitingApproval:
			r.batch.completeRound(call)
		case call.State == regie.CallStarted && r.cfg.Left != nil && r.cfg.Left() <= 0:
			return ErrShutdown
		case call.State == regie.CallStarted:
			err = r.batch.runStarted(ctx, call)
		case r.asker.mustWait(r.batch.calls, next):
			err = r.batch.waitForPeople(ctx)
		case call.Kind == regie.KindQuery:
			// A result of an action is safe before anything else runs.
			if err = r.batch.saveActions(); err == nil {
				err = r.batch.startQueries(ctx, next)
			}
		default:
			err = r.batch.startAction(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// finishBatch commits the last results with the message that brings them to the model, and what
// follows (decision 4).
func (r *run) finishBatch(c closed) error {
	fault.Point(fault.SettledBefore)
	in := r.batch.unsavedResults()
	in.Message, in.Post, in.Advance = c.message, c.post, &c.advance
	out, err := r.cfg.Store.CommitCalls(r.commit, r.fence, in)
	if err != nil {
		return err
	}
	fault.Point(fault.SettledAfter)
	r.batch.unsaved, r.resumed = r.batch.unsaved[:0], false
	if c.message != nil {
		r.budget.appendBatch(r.batch.calls, c.message, out)
	}
	return r.advance(out, nil, c.advance)
}

// advance brings the run in line with what was stored.
func (r *run) advance(out store.Outcome, err error, to store.Advance) error {
	if err != nil {
		return err
	}
	r.next, r.call.sent, r.round.Tokens, r.budget.summary = out.Next, false, r.used, nil
	r.round.Phase, r.round.Counters = to.Phase, to.Counters
	if to.Open != nil {
		r.round.Exchange = to.Open.Number
		r.exchange = regie.Exchange{
			RoundID: r.round.ID, Number: to.Open.Number, Reason: to.Open.Reason, State: regie.ExchangeOpen, Attempt: 1,
			Provider: r.round.Provider, Model: r.round.Model,
			Money: regie.Money{Reserved: out.Reserved},
		}
		r.reply, r.batch.calls, r.call.outage, r.targets.failures = nil, nil, nil, nil
		clear(r.judge.judged)
		clear(r.judge.fresh)
	}
	if to.End != nil {
		r.round.State, r.round.End, r.round.EndNote = regie.RoundEnded, to.End.Reason, to.End.Note
	}
	return nil
}
