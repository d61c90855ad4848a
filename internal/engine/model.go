package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// callModel is phase MODEL: it asks until a reply is here or the tries are used up, and stores either (spec 3.1, 3.6).
func (r *run) callModel(ctx context.Context) error {
	if err := r.warm(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the error only says that the context ended; the loop sees why
		}
		var unusable unusableModel
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // stopped while reading the thread; the loop sees why
		case !errors.As(err, &unusable):
			return err
		}
		// Nobody can answer: the person is told why, and the run does not wait for ever.
		return r.giveUp(&provider.Error{Code: regie.CodeOf(unusable.err), Message: unusable.Error(), Err: err}, 0)
	}
	if r.resumed {
		if err := r.lostAttempt(); err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		reply, took, err := r.ask(ctx)
		if err == nil {
			return r.accept(ctx, reply, took)
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the error only says that the context ended; the loop sees why
		}
		var failed *provider.Error
		if !errors.As(err, &failed) {
			return err
		}
		switch offline := failed.Code == regie.CodeProviderOffline; {
		case r.policy.WaitNetwork && failed.Retryable && (offline || try >= r.cfg.Attempts):
			return r.waitNetwork(failed, took)
		case !failed.Retryable || try >= r.cfg.Attempts:
			return r.giveUp(failed, took)
		}
		if err := r.tryAgain(failed, took); err != nil {
			return err
		}
		if !sleep(ctx, r.cfg.Backoff(try+1, failed.RetryAfter)) {
			return nil
		}
	}
}

// ask makes one attempt.
func (r *run) ask(ctx context.Context) (*provider.Reply, time.Duration, error) {
	fault.Point(fault.ModelBefore)
	sink := func(d provider.Delta) {
		fault.Point(fault.ModelMid)
		if r.cfg.Delta != nil {
			r.cfg.Delta(r.session.ID, r.round.ID, r.exchange.Number, d)
		}
	}
	started := time.Now()
	r.sent = true
	reply, err := r.thread.conversation.Send(ctx, sink)
	took := time.Since(started)
	if err == nil {
		fault.Point(fault.ModelAfter)
	}
	return reply, took, err
}

// lostAttempt books the model call that a dead process may have sent: its outcome will never be known, its price may be due
// (decisions 25 and 28).
func (r *run) lostAttempt() error {
	_, err := r.cfg.Store.FailAttempt(r.commit, r.fence, store.Failure{
		Attempt: r.attempt(regie.CodeProviderBroken, "the call was cut while the model was being asked"),
		Retry:   &store.Open{Number: r.exchange.Number, Reason: r.exchange.Reason},
	})
	if err == nil {
		r.exchange.Attempt++
		r.resumed, r.sent = false, false
	}
	return err
}

// letGo books a model call that a pause or a shutdown cut, before the round is given back: it was sent, and its price may be due.
func (r *run) letGo() error {
	if r.round.Phase != regie.PhaseModel || !r.sent {
		return nil
	}
	return r.lostAttempt()
}

// waitNetwork has the round wait until the model may answer again, without a holder (decisions 25 and 42): every 30 s at first, later
// every 5 min. It does not count as a retry.
func (r *run) waitNetwork(failed *provider.Error, took time.Duration) error {
	message := r.system(regie.SystemNetworkError, failed.Message)
	message.ExcludeFromPrompt = true
	out, err := r.cfg.Store.FailAttempt(r.commit, r.fence, store.Failure{
		Attempt: r.failedAttempt(failed, took), Message: message, Retry: &store.Open{Number: r.exchange.Number, Reason: r.exchange.Reason},
		WaitUntil: time.Now().Add(networkBackoff(r.cfg.NetworkRetry, r.exchange.Attempt)),
	})
	if err == nil {
		r.exchange.Attempt++
		r.sent, r.parked = false, out.Parked
	}
	return err
}

// networkBackoff is decision 42: the first ten tries every 30 s, then up to 5 min.
func networkBackoff(first time.Duration, attempt int) time.Duration {
	if attempt <= 10 {
		return first
	}
	return min(first<<min(attempt-10, 4), max(first, 5*time.Minute))
}

func (r *run) attempt(code regie.Code, message string) regie.Attempt {
	return regie.Attempt{
		RoundID: r.round.ID, Exchange: r.exchange.Number, Number: r.exchange.Attempt, Code: code, Error: message,
		Money: regie.Money{Reserved: r.exchange.Money.Reserved, Known: r.thread.local},
	}
}

func (r *run) failedAttempt(failed *provider.Error, took time.Duration) regie.Attempt {
	a := r.attempt(failed.Code, failed.Message)
	a.Partial, a.Usage, a.ModelUS = failed.Partial, failed.Usage, took.Microseconds()
	return a
}

func (r *run) tryAgain(failed *provider.Error, took time.Duration) error {
	_, err := r.cfg.Store.FailAttempt(r.commit, r.fence, store.Failure{
		Attempt: r.failedAttempt(failed, took), Retry: &store.Open{Number: r.exchange.Number, Reason: r.exchange.Reason},
	})
	if err == nil {
		r.exchange.Attempt++
		r.sent = false
	}
	return err
}

// giveUp ends the round with the provider's own words, kept for the audit (spec 3.6, decision 42).
func (r *run) giveUp(failed *provider.Error, took time.Duration) error {
	message := r.system(regie.SystemNetworkError, failed.Message)
	message.ExcludeFromPrompt = true
	end := r.ended(r.round.Counters, regie.EndProviderError, failed.Message)
	out, err := r.cfg.Store.FailAttempt(r.commit, r.fence, store.Failure{Attempt: r.failedAttempt(failed, took), Message: message, Advance: &end})
	return r.moved(out, err, end)
}

// accept stores a reply: the answer, or calls with the intent of the first action (decision 4).
func (r *run) accept(ctx context.Context, reply *provider.Reply, took time.Duration) error {
	hash, _ := r.thread.conversation.Request()
	exchange := r.exchange
	exchange.FirstSeq, exchange.LastSeq, exchange.Request = r.thread.firstSeq, r.thread.lastSeq, hash
	exchange.Usage, exchange.StopReason = reply.Usage, reply.StopReason
	exchange.FirstByteUS, exchange.ModelUS = reply.FirstByte.Microseconds(), took.Microseconds()
	exchange.Money.Known = r.thread.local
	if slices.ContainsFunc(reply.Parts, func(p provider.Part) bool { return p.Type == regie.PartCall }) {
		if err := r.readRules(); err != nil {
			return err
		}
	}
	message, calls := r.plan(reply)
	if len(calls) == 0 {
		return r.answer(ctx, message, exchange)
	}
	in, err := r.reaction(ctx, message, calls)
	if err != nil {
		return err
	}
	in.Exchange = exchange
	for i := range calls {
		// What nobody was asked about yet is stored as proposed: whoever goes on with the round judges it again.
		if calls[i].State == regie.CallAwaitingApproval && !puts(in.Ask, calls[i].ID) {
			calls[i].State = regie.CallProposed
			delete(r.fresh, calls[i].ID)
		}
	}
	if in.Ask != nil {
		fault.Point(fault.AskBefore)
	}
	out, err := r.cfg.Store.AppendReply(r.commit, r.fence, in)
	if err != nil {
		if regie.CodeOf(err) != regie.CodeStopRequested {
			return err
		}
		// A stopping word came before the reply: it is stored all the same, but not acted on (decision 6).
		if err := r.readStop(); err != nil {
			return err
		}
		return r.accept(ctx, reply, took)
	}
	fault.Point(fault.ReplyAfter)
	r.reply, r.calls, r.parked = &in.Message, calls, out.Parked
	r.remember(in.Ask)
	if in.Results != nil {
		r.closeBatch(in.Results, out)
	}
	return r.moved(out, nil, in.Advance)
}

// reaction decides what becomes of a reply's calls: refused as a whole, or the first of them started.
func (r *run) reaction(ctx context.Context, message regie.Message, calls []regie.Call) (store.Reply, error) {
	counters, limit := afterReply(r.round.Counters, r.round.Limits, calls)
	in := store.Reply{Message: message, Calls: calls}
	word, cancelled := r.stopWord(ctx)
	switch {
	case word == regie.StopInterrupt || word == regie.StopStop:
		refuse(calls, regie.NotRunInterrupted, "not run: the run was stopped before")
		in.Results = r.results(calls, "the person stopped the run")
		in.Advance = r.ended(counters, endOf(word), "")
	case limit != "":
		refuse(calls, regie.NotRunOverLimit, "not run: "+limit+" was reached")
		in.Results = r.system(regie.SystemLimitReached, limitNote(limit, len(calls)))
		in.Results.System.CallIDs = ids(calls)
		in.Advance = r.ended(counters, regie.EndLimit, limit)
	case r.circles != "":
		refuse(calls, regie.NotRunOverLimit, "not run: the run ends, "+r.circles)
		in.Results = r.system(regie.SystemLimitReached, circlesNote(r.circles, len(calls)))
		in.Results.System.CallIDs = ids(calls)
		in.Advance = r.ended(counters, regie.EndEarlyStop, r.circles)
	case r.policyFails(calls):
		refuse(calls, regie.NotRunDenied, "not run: an action of this reply needs an approval")
		in.Results = r.results(calls, "")
		in.Advance = r.ended(counters, regie.EndDenied, "an action needs an approval, and this run was told to fail then")
	default:
		// After a pause or a shutdown nothing new starts; whoever goes on with the round starts it.
		if word == "" && cancelled == nil {
			if err := r.begin(ctx, &in); err != nil {
				return in, err
			}
		}
		counters.Resumes = 0 // a stored step is progress
		in.Advance = store.Advance{Phase: regie.PhaseCalls, Counters: counters}
		if allSettled(calls) {
			in.Results, in.Advance = r.closing(calls, counters)
		}
	}
	return in, nil
}

// begin takes the first step of a batch together with its reply: the first action starts, or people are asked and the round lets go.
func (r *run) begin(ctx context.Context, in *store.Reply) error {
	ask, err := r.asked(ctx, in.Calls)
	if err != nil {
		return nil //nolint:nilerr // stopped while asking: nothing was put to anybody
	}
	in.Ask = ask
	for i := range in.Calls {
		if !in.Calls[i].State.Settled() {
			in.Park = ask != nil && r.mustWait(in.Calls, i)
			break
		}
	}
	if in.Park {
		return nil
	}
	_, err = r.startNext(ctx, in.Calls)
	return err
}

// puts reports whether a call is among those that are put to people.
func puts(ask *store.Asked, call regie.ID) bool {
	if ask == nil || ask.Approval == nil {
		return false
	}
	return slices.ContainsFunc(ask.Approval.Reviews, func(review regie.Review) bool { return review.CallID == call })
}

// remember notes what was put to people.
func (r *run) remember(ask *store.Asked) {
	r.reviews, r.questioned = map[regie.ID]regie.Review{}, map[regie.ID]bool{}
	if ask == nil {
		return
	}
	if ask.Approval != nil {
		for _, review := range ask.Approval.Reviews {
			r.reviews[review.CallID] = review
		}
	}
	for i := range ask.Questions {
		r.questioned[ask.Questions[i].CallID] = true
	}
}

// answer stores a reply without calls: it ends the round.
func (r *run) answer(ctx context.Context, message regie.Message, exchange regie.Exchange) error {
	counters, _ := afterReply(r.round.Counters, r.round.Limits, nil)
	end := r.ended(counters, regie.EndAnswered, "")
	if word, err := r.stopWord(ctx); err == nil && word == regie.StopInterrupt || word == regie.StopStop {
		end = r.ended(counters, endOf(word), "")
	}
	fault.Point(fault.EndBefore)
	out, err := r.cfg.Store.AppendReply(r.commit, r.fence, store.Reply{Message: message, Exchange: exchange, Advance: end})
	if regie.CodeOf(err) == regie.CodeStopRequested {
		// A stopping word came before the answer: it is stored all the same, and the round ends with the word (decision 6).
		if err := r.readStop(); err != nil {
			return err
		}
		return r.answer(ctx, message, exchange)
	}
	if err == nil {
		fault.Point(fault.EndAfter)
	}
	return r.moved(out, err, end)
}

func circlesNote(why string, calls int) string {
	return fmt.Sprintf("The run stopped early: %s. %d proposed call(s) were not run. Write again to go on.", why, calls)
}

func limitNote(limit string, calls int) string {
	return fmt.Sprintf("The run stopped: %s was reached. %d proposed call(s) were not run. Write again to go on.", limit, calls)
}

// nextModel advances to the next exchange.
func (r *run) nextModel(counters regie.Counters) store.Advance {
	counters.Resumes = 0
	return store.Advance{Phase: regie.PhaseModel, Counters: counters, Open: &store.Open{Number: r.exchange.Number + 1, Reason: regie.ExchangeData}}
}

// ended advances to the end of the round.
func (r *run) ended(counters regie.Counters, reason regie.RoundEnd, note string) store.Advance {
	return store.Advance{Phase: regie.PhaseEnd, Counters: counters, End: &store.End{Reason: reason, Note: note}}
}

// moved brings the run in line with what was stored.
func (r *run) moved(out store.Outcome, err error, to store.Advance) error {
	if err != nil {
		return err
	}
	r.next, r.sent = out.Next, false
	r.round.Phase, r.round.Counters = to.Phase, to.Counters
	if to.Open != nil {
		r.round.Exchange = to.Open.Number
		r.exchange = regie.Exchange{
			RoundID: r.round.ID, Number: to.Open.Number, Reason: to.Open.Reason, State: regie.ExchangeOpen, Attempt: 1,
			Money: regie.Money{Reserved: to.Open.Reserved},
		}
		r.reply, r.calls = nil, nil
		clear(r.judged)
		clear(r.fresh)
	}
	if to.End != nil {
		r.round.State, r.round.End, r.round.EndNote = regie.RoundEnded, to.End.Reason, to.End.Note
	}
	return nil
}

// system makes a system message of this round.
func (r *run) system(kind regie.SystemType, summary string) *regie.Message {
	return &regie.Message{
		ID: regie.NewID(), SessionID: r.session.ID, Sender: regie.SenderSystem, Author: regie.Author{Kind: regie.AuthorComponent, ID: "engine"},
		RoundID: r.round.ID, Exchange: r.exchange.Number, TraceID: r.round.TraceID, System: &regie.SystemContent{Type: kind, Summary: summary},
	}
}

// backoff doubles from 500 ms, with jitter, and honours the vendor's own wish up to a minute (spec 3.6).
func backoff(try int, wish time.Duration) time.Duration {
	base := 500 * time.Millisecond << min(try-2, 6)
	return max(base/2+rand.N(base), min(wish, time.Minute))
}

// sleep waits and reports whether it was left alone.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
