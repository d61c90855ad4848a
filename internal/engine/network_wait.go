package engine

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// noticeAfter is how long a round waits for the network before people get a notice (decisions 25
// and 42).
const noticeAfter = time.Hour

// longWish is the longest Retry-After that a step waits out (spec 3.6): beyond it a fallback
// continues, a person is informed, or an unattended round parks.
const longWish = time.Minute

// nextMoment returns the first provider of the open exchange that may be tried again, and the delay
// until then, 0 where none of them asked for more than longWish. It ignores providers that will not
// recover; the round's own comes first where none asked for time.
func (l *targetList) nextMoment(failed *provider.Error) (at int, wish time.Duration) {
	asked := slices.DeleteFunc(slices.Clone(l.failures), func(f unanswered) bool { return !f.err.Retryable })
	if len(asked) == 0 {
		return l.at, longWishOf(failed)
	}
	first := slices.MinFunc(asked, func(a, b unanswered) int {
		return cmp.Compare(longWishOf(a.err), longWishOf(b.err))
	})
	wish = longWishOf(first.err)
	if wish == 0 && !slices.ContainsFunc(l.failures, func(f unanswered) bool {
		return f.at == 0 && longWishOf(f.err) > 0
	}) {
		return 0, 0
	}
	return first.at, wish
}

// longWishOf returns the time over longWish that a server wants, 0 for none. The moment at which a
// breaker closes is not its server's wish.
func longWishOf(failed *provider.Error) time.Duration {
	if failed.RetryAfter <= longWish || errors.Is(failed, provider.ErrOpen) {
		return 0
	}
	return failed.RetryAfter
}

// withWish adds until when a server asks to wait, if it does.
func withWish(why regie.Sentence, wish time.Duration) regie.Sentence {
	if wish == 0 {
		return why
	}
	return regie.SayOf("%s (its server asks to wait until %s)", why,
		regie.Verbatim(time.Now().Add(wish).Format("2006-01-02 15:04 MST")))
}

// failureAdvice returns why no provider answers, in their own words, and what a person can do.
func (l *targetList) failureAdvice(failed *provider.Error, why regie.Sentence) regie.Sentence {
	if _, wish := l.nextMoment(failed); wish > 0 {
		return withWish(why, wish)
	}
	if failed.Code != regie.CodeProviderBusy || !failed.Retryable {
		return why
	}
	return regie.SayOf("%s (try again in a while, or use another model)", why)
}

// waitNetwork parks the round until the model may answer again (decisions 25 and 42): it tries
// every 30 s at first, later every 5 min. This does not count as a retry. The audit message comes
// when the outage begins, the notice after an hour; after the operator's limit the session is
// paused. A provider that asks for more time gets it (spec 3.6); people hear of more than an hour
// at once.
func (r *run) waitNetwork(failed *provider.Error, took time.Duration) error {
	now, why := time.Now().UTC(), r.targets.failureSentence(failed)
	next, wish := r.targets.nextMoment(failed)
	why = withWish(why, wish)
	in := store.Failure{Attempt: r.call.failedAttempt(failed, took), Retry: r.targets.reopen(next)}
	outage := regie.Outage{Exchange: r.exchange.Number, Since: now}
	if r.call.outage != nil {
		outage = *r.call.outage
	} else {
		in.Message = r.noticeMessage(regie.SystemNetworkError, why)
		in.Message.ExcludeFromPrompt = true
	}
	outage.Tries++
	lasted, giveUp := now.Sub(outage.Since), r.cfg.NetworkGiveUp
	notice := regie.Notice{RoundID: r.round.ID, Since: outage.Since, Text: why.String(), Why: why}
	switch {
	case giveUp > 0 && lasted >= giveUp:
		notice.Kind, in.Notice, in.Pause = regie.NoticeNetworkGiveUp, &notice, true
	case (lasted >= noticeAfter || wish >= noticeAfter) && !outage.Noticed:
		notice.Kind, in.Notice, outage.Noticed = regie.NoticeNetworkDown, &notice, true
	}
	in.Outage = &outage
	if !in.Pause {
		wait := max(networkBackoff(r.cfg.NetworkRetry, outage.Tries), wish)
		if giveUp > 0 {
			wait = min(wait, giveUp-lasted)
		}
		in.WaitUntil = now.Add(wait)
	}
	out, err := r.cfg.Store.FailAttempt(r.commit, r.fence, in)
	if err == nil {
		r.exchange.Attempt++
		r.exchange.Money = regie.Money{}
		r.call.sent, r.parked, r.call.outage, r.targets.failures = false, out.Parked, &outage, nil
		r.switchTarget(next)
	}
	return err
}

// networkBackoff returns decision 42: the first ten tries every 30 s, then up to 5 min.
func networkBackoff(first time.Duration, tries int) time.Duration {
	if tries <= 10 {
		return first
	}
	return min(first<<min(tries-10, 4), max(first, 5*time.Minute))
}
