package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dialect"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// callModel is phase MODEL: it asks until a reply is here or the tries are used up, and stores
// either (spec 3.1, 3.6).
func (r *run) callModel(ctx context.Context) error {
	// a round that counts on, see store.Submit
	if limit := spent(r.round.Counters, r.used, r.round.Limits); !limit.IsZero() {
		return r.endAtLimit(limit)
	}
	if err := r.warm(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the error only says that the context ended; the loop sees why
		}
		var unusable unusableModel
		if !errors.As(err, &unusable) {
			return err
		}
		// Nobody can answer: the person is told why, and the run does not wait for ever.
		failed := &provider.Error{Code: regie.CodeOf(unusable.err), Message: unusable.Error(), Err: err}
		return r.outOfTries(failed, failed, 0) // a fallback may be usable
	}
	if err := r.enrich(ctx); err != nil || ctx.Err() != nil {
		return err // where a signal came, the loop sees why
	}
	if r.resumed {
		if err := r.lostAttempt(byDeath); err != nil {
			return err
		}
	}
	if err := r.fit(ctx); ctx.Err() != nil || err != nil || r.round.Phase != regie.PhaseModel {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopped while reading the thread; the loop sees why
		}
		return err
	}
	if r.summary != nil && r.summary.why != nil {
		return r.withoutModel(r.summary.why, 0)
	}
	return r.tryModel(ctx)
}

// tryModel makes the attempts of a model call that is ready.
func (r *run) tryModel(ctx context.Context) error {
	r.due = r.outage != nil || r.exchange.Attempt > 1 // whoever takes it up again has waited for this moment
	var last *provider.Error
	for try := 1; ; try++ {
		if may, err := r.reserve(ctx); !may || err != nil {
			return cutIn(ctx, err)
		}
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
		open := errors.Is(failed, provider.ErrOpen)
		told := failed
		if open && last != nil { // what it was opened by says more
			told = last
		}
		switch offline := failed.Code == regie.CodeProviderOffline; {
		case r.shrink(failed):
			return r.tryAgain(failed, took, 0)
		// Who is there is told at once that the network is not (decision 42), or that the server
		// will not answer for long.
		case !failed.Retryable || offline || open || try >= r.tries(failed) || failed.RetryAfter > longWish:
			return r.outOfTries(failed, told, took)
		}
		last, r.due = failed, false
		wait := r.cfg.Backoff(try+1, failed.RetryAfter)
		if err := r.tryAgain(failed, took, wait); err != nil {
			return err
		}
		if !r.rest(ctx, wait) {
			return nil
		}
	}
}

// outOfTries is what becomes of a model call whose provider has no more tries: another provider
// goes on with it, or the round waits, goes on without a summary, or ends. failed is what came of
// the last attempt, told what people read of it.
func (r *run) outOfTries(failed, told *provider.Error, took time.Duration) error {
	if r.summary == nil || answersNobody(failed.Code) { // a summary can be done without
		if next, ok := r.another(told); ok {
			return r.fallBack(next, failed, took)
		}
	}
	switch {
	case r.policy.WaitNetwork && r.mayComeBack(failed):
		return r.waitNetwork(failed, took)
	case r.summary != nil && !answersNobody(failed.Code):
		return r.withoutModel(failed, took.Microseconds())
	default:
		return r.giveUp(failed, took)
	}
}

// ask makes one attempt.
func (r *run) ask(ctx context.Context) (*provider.Reply, time.Duration, error) {
	fault.Point(fault.ModelBefore)
	conversation, size := r.thread.conversation, r.thread.size
	if r.summary != nil {
		conversation, size = r.summary.conversation, r.summary.size
	}
	var text dialect.Stream
	r.streamed.reset()
	silence := r.watchSilence()
	defer silence.Stop()
	seen := 0
	sink := func(d provider.Delta) {
		r.lastsModel()
		if !silence.Reset(r.cfg.SilentAfter) && r.cfg.Delta != nil { // people were told of a silence, and it is over
			r.cfg.Delta(r.session.ID, r.round.ID, r.exchange.Number, provider.Delta{})
		}
		seen += len(d.Text) + len(d.Thinking)
		if d == (provider.Delta{}) { // the model writes a call
			return
		}
		fault.Point(fault.ModelMid)
		if r.json != nil { // people read the text of the object, as it comes
			d.Text = text.Add(d.Text)
		}
		if r.summary == nil {
			r.streamed.add(d.Text)
		}
		if r.cfg.Delta != nil && r.summary == nil && (d.Text != "" || d.Thinking != "") { // nobody notices a summary
			r.cfg.Delta(r.session.ID, r.round.ID, r.exchange.Number, d)
		}
	}
	r.lastsModel()
	started := time.Now()
	reply, err := r.send(ctx, conversation, sink)
	took := time.Since(started)
	if err == nil {
		fault.Point(fault.ModelAfter)
		reply.Usage = r.counted(reply, size)
		return reply, took, nil
	}
	r.estimate(err, size, seen)
	return nil, took, err
}

// estimate sets what a call without a reply used (decision 72): the vendor's count as far as it
// can be true, else the prompt by its size in bytes and the reply by the bytes that came. seen is
// the size of its text and thinking.
func (r *run) estimate(err error, size, seen int) {
	r.estimated = regie.Usage{}
	var claimed regie.Usage
	failed, isFailure := errors.AsType[*provider.Error](err)
	cut, isCut := errors.AsType[*provider.Cut](err)
	switch {
	case isFailure && failed.Unbilled():
		return
	case isFailure:
		claimed, seen = failed.Usage, max(seen, failed.Received, len(failed.Partial))
	case isCut && cut.Unsent:
		r.sent = false
	case isCut:
		claimed, seen = cut.Usage, max(seen, cut.Received)
	}
	if !r.sent {
		return
	}
	r.estimated = r.thread.gauge.Counted(claimed, size, seen, r.cfg.MaxOutput, r.replyBound())
	if isFailure {
		failed.Usage = r.estimated
	}
}

// watchSilence returns a timer that tells a chat when its model has sent nothing for a while
// (decision 74). It runs beside the round, so it knows what it needs.
func (r *run) watchSilence() *time.Timer {
	session, round, exchange, tells := r.session.ID, r.round.ID, r.exchange.Number,
		r.cfg.Silent != nil && !r.automation()
	return time.AfterFunc(r.cfg.SilentAfter, func() {
		if tells {
			r.cfg.Silent(session, round, exchange, r.cfg.SilentAfter)
		}
	})
}

// tries is how often a model call is tried whose last attempt failed so. A person who waits does
// not wait for a silent model three times (decision 74).
func (r *run) tries(failed *provider.Error) int {
	if failed.Code == regie.CodeTimeout && !r.automation() {
		return min(r.cfg.Attempts, 2)
	}
	return r.cfg.Attempts
}

// replyBytes is how much a model wrote.
func replyBytes(parts []provider.Part) (n int) {
	for i := range parts {
		n += len(parts[i].Text)
		if call := parts[i].Call; call != nil {
			n += len(call.Name) + len(call.Arguments)
		}
	}
	return n
}

// cutIn is an error of a step that may only say that its context ended; the loop sees why.
func cutIn(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // see above
	}
	return err
}

// cut is what ended a model call in the middle, whose connection was whole.
type cut struct {
	code regie.Code
	why  string
}

var (
	byPause    = cut{regie.CodeStopRequested, "the run was paused while the model was being asked"}
	byShutdown = cut{regie.CodeEngineGone, "Regie was stopped while it was asking the model"}
	byDeath    = cut{
		regie.CodeEngineGone,
		"the process that was asking the model ended without a word: it was killed, or it crashed",
	}
)

// lostAttempt books a model call that was cut, or that a dead process may have sent: its outcome
// will never be known, its price may be due (decisions 25 and 28).
func (r *run) lostAttempt(by cut) error {
	_, err := r.cfg.Store.FailAttempt(r.commit, r.fence, store.Failure{
		Attempt: r.attempt(by.code, by.why), Retry: r.once(r.at),
	})
	if err == nil {
		r.exchange.Attempt++
		r.exchange.Money, r.resumed, r.sent = regie.Money{}, false, false
	}
	return err
}

// underWay reports whether a model call that is open may have been sent: by this process, or by a
// dead one.
func (r *run) underWay() bool { return r.sent || r.resumed && !r.commanded() }

// letGo books a model call that was cut, before the round is given back: by what has it given back,
// or by the death of who sent it. Its price may be due.
func (r *run) letGo(by cut) error {
	if r.round.Phase != regie.PhaseModel || !r.underWay() {
		return nil
	}
	if !r.sent {
		by = byDeath
	}
	return r.lostAttempt(by)
}

func (r *run) attempt(code regie.Code, message string) regie.Attempt {
	a := regie.Attempt{
		RoundID: r.round.ID, Exchange: r.exchange.Number, Number: r.exchange.Attempt,
		Purpose: r.exchange.Purpose, Code: code, Error: message,
		Money: r.unpaid(),
	}
	if r.sent { // what a dead process may have sent nobody knows
		r.describeAttempt(&a)
		a.Usage = r.estimated
	}
	return a
}

func (r *run) failedAttempt(failed *provider.Error, took time.Duration) regie.Attempt {
	a := r.attempt(failed.Code, failed.Message)
	a.Status, a.Partial, a.ModelUS = failed.Status, failed.Partial, took.Microseconds()
	return a
}

func (r *run) tryAgain(failed *provider.Error, took, wait time.Duration) error {
	_, err := r.cfg.Store.FailAttempt(r.commit, r.fence, store.Failure{
		Attempt: r.failedAttempt(failed, took), Retry: r.once(r.at), Delay: wait,
	})
	if err == nil {
		r.attempted(failed)
	}
	return err
}

// giveUp ends the round with the provider's own words, kept for the audit (spec 3.6, decision 42).
func (r *run) giveUp(failed *provider.Error, took time.Duration) error {
	why := r.why(failed)
	message := r.told(regie.SystemNetworkError, why)
	message.ExcludeFromPrompt = true
	end := r.ended(r.round.Counters, regie.EndProviderError, r.advised(failed, why))
	if r.automation() { // nobody watches (decision 42)
		end.End.Notice = &regie.Notice{
			RoundID: r.round.ID, Kind: regie.NoticeFailed, Since: time.Now().UTC(),
			Text: why.String(), Said: []regie.Sentence{why},
		}
	}
	out, err := r.cfg.Store.FailAttempt(r.commit, r.fence, store.Failure{
		Attempt: r.failedAttempt(failed, took),
		Message: message, Advance: &end,
	})
	return r.moved(out, err, end)
}

// nextModel advances to the next exchange. Where a cap holds, its call is reserved with it
// (decision 4).
func (r *run) nextModel(counters regie.Counters, reason regie.ExchangeReason, wants *store.Reservation) store.Advance {
	counters.Resumes = 0
	next := store.Advance{
		Phase: regie.PhaseModel, Counters: counters,
		Open: &store.Open{Number: r.exchange.Number + 1, Reason: reason, Wants: wants},
	}
	if r.at > 0 { // who has answered in place of another goes on to the end of the round
		next.Open.Provider, next.Open.Model = r.round.Provider, r.round.Model
	}
	return next
}

// quietly is how a round ends whose reason says it all.
var quietly regie.Sentence

// ended advances to the end of the round.
func (r *run) ended(counters regie.Counters, reason regie.RoundEnd, note regie.Sentence) store.Advance {
	note = scoped(note, r.session.Type)
	end := &store.End{Reason: reason, Note: note, Close: sessionEnd(r.session.Type, reason)}
	// nobody watches (spec 5.1, 5.3)
	if (reason == regie.EndWatchdog || reason == regie.EndNoProgress) && r.automation() {
		end.Notice = &regie.Notice{
			RoundID: r.round.ID, Kind: regie.NoticeFailed, Since: time.Now().UTC(),
			Text: note.String(), Said: []regie.Sentence{note},
		}
	}
	return store.Advance{Phase: regie.PhaseEnd, Counters: counters, End: end}
}

// moved brings the run in line with what was stored.
func (r *run) moved(out store.Outcome, err error, to store.Advance) error {
	if err != nil {
		return err
	}
	r.next, r.sent, r.round.Tokens, r.summary = out.Next, false, r.used, nil
	r.round.Phase, r.round.Counters = to.Phase, to.Counters
	if to.Open != nil {
		r.round.Exchange = to.Open.Number
		r.exchange = regie.Exchange{
			RoundID: r.round.ID, Number: to.Open.Number, Reason: to.Open.Reason, State: regie.ExchangeOpen, Attempt: 1,
			Provider: r.round.Provider, Model: r.round.Model,
			Money: regie.Money{Reserved: out.Reserved},
		}
		r.reply, r.calls, r.outage, r.failures = nil, nil, nil, nil
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
		ID: regie.NewID(), SessionID: r.session.ID, Sender: regie.SenderSystem,
		Author:  regie.Author{Kind: regie.AuthorComponent, ID: "engine"},
		RoundID: r.round.ID, Exchange: r.exchange.Number, TraceID: r.round.TraceID,
		System: &regie.SystemContent{Type: kind, Summary: summary},
	}
}

// told makes a system message that people read too, each in their language.
func (r *run) told(kind regie.SystemType, said ...regie.Sentence) *regie.Message {
	said = slices.DeleteFunc(said, regie.Sentence.IsZero)
	english := make([]string, len(said))
	for i, sentence := range said {
		english[i] = sentence.String()
	}
	message := r.system(kind, strings.Join(english, " "))
	message.System.Said = said
	return message
}

// backoff doubles from 500 ms, with jitter, and honours the vendor's own wish (spec 3.6): one over
// longWish ends the step's tries.
func backoff(try int, wish time.Duration) time.Duration {
	base := 500 * time.Millisecond << min(try-2, 6)
	return max(base/2+rand.N(base), wish)
}

// rest waits before the next try, and reports whether it was left alone.
func (r *run) rest(ctx context.Context, d time.Duration) bool {
	r.lasts(d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-r.drained:
		return false
	case <-timer.C:
		return true
	}
}
