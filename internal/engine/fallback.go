package engine

import (
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// target is who a round may ask: its own provider, which comes first, or a fallback (spec 3.6). All
// of it was settled when the round began.
type target struct {
	provider, model string
	pin, level1     regie.Hash
	dialect         regie.Dialect
}

// targetList is who the round may ask and what that costs.
type targetList struct {
	*run
	// all are the round's own provider and its fallbacks, at is the current one, failures are those
	// that did not answer in the current exchange.
	all      []target
	at       int
	failures []unanswered
	terms    terms
}

// unanswered is what the last attempt at a target in the current exchange came to.
type unanswered struct {
	at  int
	err *provider.Error
}

// initTargets finds who the round may ask, and goes on with who its exchange was last meant for: a
// process that takes the round up does not begin again with a provider that another one has just
// given up (docs/design.md).
func (l *targetList) initTargets() {
	own := target{l.round.Provider, l.round.Model, l.round.Pin, l.round.Level1, l.round.Dialect}
	l.all = append(l.all[:0], own)
	for _, f := range l.policy.Fallback {
		l.all = append(l.all, target{f.Provider, f.Model, f.Settings, f.Level1, f.Dialect})
	}
	at := l.targetOf(l.exchange.Provider, l.exchange.Model)
	if at > 0 && !l.canAsk(at) {
		at = 0
	}
	l.selectTarget(at)
}

// targetOf finds a target by provider and model; the round's own where none matches.
func (l *targetList) targetOf(name, model string) int {
	return max(0, slices.IndexFunc(l.all, func(t target) bool { return t.provider == name && t.model == model }))
}

// selectTarget has the round ask a target from now on, in its dialect.
func (l *targetList) selectTarget(i int) {
	t := &l.all[i]
	l.at, l.json = i, nil
	l.round.Provider, l.round.Model, l.round.Pin, l.round.Level1, l.round.Dialect = t.provider,
		t.model, t.pin, t.level1, t.dialect
	l.terms = l.termsOf(l.round, l.session.Type, l.files.Caps.Lower(l.policy.Caps)) // each has prices of its own
	if t.dialect == regie.DialectJSON {
		l.json = l.head.jsonDialect()
	}
}

// canAsk reports whether a fallback can be asked here: it is configured, its price is known where
// one has to be, and it is as it was when the round began, so that no thread reaches a server that
// its owner did not choose for it.
func (l *targetList) canAsk(i int) bool {
	t := &l.all[i]
	model, err := l.cfg.Providers(t.provider, t.pin)
	return err == nil && l.hasPrice(t, model)
}

// hasPrice reports whether a fallback may be used under the present caps: its price is known
// (decision 29).
func (l *targetList) hasPrice(t *target, model provider.Provider) bool {
	round := l.round
	round.Provider, round.Model, round.Pin = t.provider, t.model, t.pin
	terms := l.termsOf(round, l.session.Type, l.files.Caps.Lower(l.policy.Caps))
	return terms.caps.IsZero() || terms.known || !terms.stated && model.Capabilities(t.model).Free
}

// mayFallBack reports whether a failure that is final for its provider is one for which another is
// asked: it has no tries left, its key or its credit is at an end, it is not what it was taken for
// or sends more than can be taken, or it was only a fallback. A request that the round's own
// provider refuses for what it says is shown, not hidden.
func (l *targetList) mayFallBack(failed *provider.Error) bool {
	switch failed.Code {
	case regie.CodeProviderAuth, regie.CodeProviderQuota, regie.CodeReplyTooLarge:
		return true
	default:
		return failed.Retryable || failed.Misplaced || l.at > 0
	}
}

// nextTarget returns who goes on with the exchange: the next in order, from the one that was asked
// on, that has not failed in it.
func (l *targetList) nextTarget(failed *provider.Error) (int, bool) {
	l.failures = append(l.failures, unanswered{l.at, failed})
	if !l.mayFallBack(failed) {
		return 0, false
	}
	for n := 1; n < len(l.all); n++ {
		i := (l.at + n) % len(l.all)
		if !l.hasFailed(i) && l.canAsk(i) {
			return i, true
		}
	}
	return 0, false
}

func (l *targetList) hasFailed(i int) bool {
	return slices.ContainsFunc(l.failures, func(f unanswered) bool { return f.at == i })
}

// failureSentence returns the message for people when no provider answers: the provider's own
// words, or those of each one tried.
func (l *targetList) failureSentence(failed *provider.Error) regie.Sentence {
	switch len(l.failures) {
	case 0:
		return failed.Sentence()
	case 1:
		return l.failures[0].err.Sentence()
	}
	var out regie.Sentence
	for i, f := range l.failures {
		one := regie.SayOf("%s: %s", regie.Verbatim(l.all[f.at].provider), f.err.Sentence())
		if out = regie.SayOf("%s; %s", out, one); i == 0 {
			out = one
		}
	}
	return out
}

// mayComeBack reports whether one of those that were asked may answer later.
func (l *targetList) mayComeBack(failed *provider.Error) bool {
	return failed.Retryable || slices.ContainsFunc(l.failures, func(f unanswered) bool { return f.err.Retryable })
}

// reopen is one more attempt at the open exchange, by a target.
func (l *targetList) reopen(at int) *store.Open {
	t := &l.all[at]
	return &store.Open{Number: l.exchange.Number, Reason: l.exchange.Reason, Provider: t.provider, Model: t.model}
}

// nextExchange advances to the next exchange. Where a cap holds, its call is reserved with it
// (decision 4).
func (l *targetList) nextExchange(counters regie.Counters, reason regie.ExchangeReason,
	wants *store.Reservation,
) store.Advance {
	counters.Resumes = 0
	next := store.Advance{
		Phase: regie.PhaseModel, Counters: counters,
		Open: &store.Open{Number: l.exchange.Number + 1, Reason: reason, Wants: wants},
	}
	if l.at > 0 { // who has answered in place of another goes on to the end of the round
		next.Open.Provider, next.Open.Model = l.round.Provider, l.round.Model
	}
	return next
}

// replyAuthor returns who replies: the round's agent, with who answered where that is a fallback.
func (l *targetList) replyAuthor() regie.Author {
	author := regie.Author{Kind: regie.AuthorAgent, ID: l.round.Agent, Model: l.round.Model}
	if l.at > 0 {
		author.Provider = l.round.Provider
	}
	return author
}

// fallBackTo continues the exchange with another provider and stores that (spec 3.6).
func (r *run) fallBackTo(to int, failed *provider.Error, took time.Duration) error {
	t, told := &r.targets.all[to], r.targets.failures[len(r.targets.failures)-1].err
	_, err := r.cfg.Store.FailAttempt(r.commit, r.fence, store.Failure{
		Attempt: r.call.failedAttempt(failed, took), Retry: r.targets.reopen(to),
		Fallback: &regie.Fallback{
			RoundID: r.round.ID, Exchange: r.exchange.Number, Attempt: r.exchange.Attempt,
			Provider: t.provider, Model: t.model,
			Instead: r.round.Provider, Code: told.Code, Text: told.Message, Why: told.Sentence(),
		},
	})
	if err == nil {
		r.call.countAttempt(failed)
		r.switchTarget(to)
	}
	return err
}

// switchTarget is use where another target was asked before: the thread is rendered anew, for its
// codec, its dialect and its window.
func (r *run) switchTarget(i int) {
	if i == r.targets.at {
		return
	}
	r.targets.selectTarget(i)
	r.budget.thread, r.budget.known, r.budget.summary, r.budget.afford = thread{}, nil, nil, 0
}

// endUnanswered ends the round with the provider's own words, kept for the audit (spec 3.6,
// decision 42).
func (r *run) endUnanswered(failed *provider.Error, took time.Duration) error {
	why := r.targets.failureSentence(failed)
	message := r.noticeMessage(regie.SystemNetworkError, why)
	message.ExcludeFromPrompt = true
	end := r.endRound(r.round.Counters, regie.EndProviderError, r.targets.failureAdvice(failed, why))
	if r.isAutomation() { // no person watches (decision 42)
		end.End.Notice = &regie.Notice{
			RoundID: r.round.ID, Kind: regie.NoticeFailed, Since: time.Now().UTC(),
			Text: why.String(), Said: []regie.Sentence{why},
		}
	}
	out, err := r.cfg.Store.FailAttempt(r.commit, r.fence, store.Failure{
		Attempt: r.call.failedAttempt(failed, took),
		Message: message, Advance: &end,
	})
	return r.advance(out, err, end)
}
