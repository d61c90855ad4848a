package engine

import (
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

// unanswered is what the last attempt at a target in the current exchange came to.
type unanswered struct {
	at  int
	err *provider.Error
}

// aim finds who the round may ask, and goes on with who its exchange was last meant for: a process
// that takes the round up does not begin again with a provider that another one has just given up
// (docs/design.md).
func (r *run) aim() {
	own := target{r.round.Provider, r.round.Model, r.round.Pin, r.round.Level1, r.round.Dialect}
	r.targets = append(r.targets[:0], own)
	for _, f := range r.policy.Fallback {
		r.targets = append(r.targets, target{f.Provider, f.Model, f.Settings, f.Level1, f.Dialect})
	}
	at := r.targetOf(r.exchange.Provider, r.exchange.Model)
	if at > 0 && !r.usable(at) {
		at = 0
	}
	r.use(at)
}

// targetOf finds a target by who it is; the round's own where it is none of them.
func (r *run) targetOf(name, model string) int {
	for i := range r.targets {
		if r.targets[i].provider == name && r.targets[i].model == model {
			return i
		}
	}
	return 0
}

// use has the round ask a target from now on, in its dialect.
func (r *run) use(i int) {
	t := &r.targets[i]
	r.at, r.json = i, nil
	r.round.Provider, r.round.Model, r.round.Pin, r.round.Level1, r.round.Dialect = t.provider,
		t.model, t.pin, t.level1, t.dialect
	r.money, r.afford = r.termsOf(r.round, r.session.Type, r.files.Caps), 0 // each has prices of its own
	if t.dialect == regie.DialectJSON {
		r.json = r.dialect()
	}
}

// turnTo is use where another target was asked before: the thread is rendered anew, for its codec,
// its dialect and its window.
func (r *run) turnTo(i int) {
	if i == r.at {
		return
	}
	r.use(i)
	r.thread, r.known, r.summary = thread{}, nil, nil
}

// usable reports whether a fallback can be asked here: it is configured, its price is known where
// one has to be, and it is as it was when the round began, so that no thread reaches a server that
// its owner did not choose for it.
func (r *run) usable(i int) bool {
	t := &r.targets[i]
	model, err := r.cfg.Providers(t.provider)
	if err != nil || !r.priced(t, model) {
		return false
	}
	return r.cfg.Settings == nil || t.pin.IsZero() || r.cfg.Settings(t.provider) == t.pin
}

// priced reports whether a fallback may be asked under the caps that hold: somebody knows what it
// costs (decision 29).
func (r *run) priced(t *target, model provider.Provider) bool {
	round := r.round
	round.Provider, round.Model = t.provider, t.model
	terms := r.termsOf(round, r.session.Type, r.files.Caps)
	return terms.caps.IsZero() || terms.known || !terms.stated && model.Capabilities(t.model).Free
}

// yields reports whether a failure that is final for its provider is one for which another is
// asked: it has no tries left, its key or its credit is at an end, it is not what it was taken for
// or sends more than can be taken, or it was only a fallback. A request that the round's own
// provider refuses for what it says is shown, not hidden.
func (r *run) yields(failed *provider.Error) bool {
	switch failed.Code {
	case regie.CodeProviderAuth, regie.CodeProviderQuota, regie.CodeReplyTooLarge:
		return true
	default:
		return failed.Retryable || failed.Misplaced || r.at > 0
	}
}

// another returns who goes on with the exchange: the next in order, from the one that was asked on,
// that has not failed in it.
func (r *run) another(failed *provider.Error) (int, bool) {
	r.failures = append(r.failures, unanswered{r.at, failed})
	if !r.yields(failed) {
		return 0, false
	}
	for n := 1; n < len(r.targets); n++ {
		i := (r.at + n) % len(r.targets)
		if !r.hasFailed(i) && r.usable(i) {
			return i, true
		}
	}
	return 0, false
}

func (r *run) hasFailed(i int) bool {
	for _, f := range r.failures {
		if f.at == i {
			return true
		}
	}
	return false
}

// why is what people are told where nobody answers: the provider's own words, or those of each that
// was asked.
func (r *run) why(failed *provider.Error) regie.Sentence {
	switch len(r.failures) {
	case 0:
		return failed.Sentence()
	case 1:
		return r.failures[0].err.Sentence()
	}
	var out regie.Sentence
	for i, f := range r.failures {
		one := regie.SayOf("%s: %s", regie.Verbatim(r.targets[f.at].provider), f.err.Sentence())
		if out = regie.SayOf("%s; %s", out, one); i == 0 {
			out = one
		}
	}
	return out
}

// mayComeBack reports whether one of those that were asked may answer later.
func (r *run) mayComeBack(failed *provider.Error) bool {
	for _, f := range r.failures {
		if f.err.Retryable {
			return true
		}
	}
	return failed.Retryable
}

// fallBack has another provider go on with the exchange, which is told (spec 3.6).
func (r *run) fallBack(to int, failed *provider.Error, took time.Duration) error {
	t, told := &r.targets[to], r.failures[len(r.failures)-1].err
	_, err := r.cfg.Store.FailAttempt(r.commit, r.fence, store.Failure{
		Attempt: r.failedAttempt(failed, took), Retry: r.once(to),
		Fallback: &regie.Fallback{
			RoundID: r.round.ID, Exchange: r.exchange.Number, Attempt: r.exchange.Attempt,
			Provider: t.provider, Model: t.model,
			Instead: r.round.Provider, Code: told.Code, Text: told.Message, Why: told.Sentence(),
		},
	})
	if err == nil {
		r.attempted(failed)
		r.turnTo(to)
	}
	return err
}

// once is one more attempt at the open exchange, by a target.
func (r *run) once(at int) *store.Open {
	t := &r.targets[at]
	return &store.Open{Number: r.exchange.Number, Reason: r.exchange.Reason, Provider: t.provider, Model: t.model}
}

// attempted brings the run in line with an attempt that was stored as failed.
func (r *run) attempted(failed *provider.Error) {
	r.exchange.Attempt++
	r.exchange.Money, r.sent = regie.Money{}, false
	r.round.Tokens += failed.Usage.Input + failed.Usage.Output
	r.used = r.round.Tokens
}

// author is who replies: the round's agent, with who answered where that is a fallback.
func (r *run) author() regie.Author {
	author := regie.Author{Kind: regie.AuthorAgent, ID: r.round.Agent, Model: r.round.Model}
	if r.at > 0 {
		author.Provider = r.round.Provider
	}
	return author
}
