package engine

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// noticeAfter is how long a round waits for the network before people are told that it still does
// (decisions 25 and 42).
const noticeAfter = time.Hour

// longWish is the longest time for which a step waits by itself until its provider wants to be
// asked again (spec 3.6): beyond it another provider goes on, or a person is told, or an unattended
// round lets go and waits.
const longWish = time.Minute

// nextMoment is who of those that were asked in the open exchange may be asked again first, and how
// long that takes, 0 where one of them has said no time over longWish. What will not come back is
// not waited for; the round's own provider comes first where it may be asked then.
func (l *targetList) nextMoment(failed *provider.Error) (at int, wish time.Duration) {
	asked := l.failures
	if len(asked) == 0 {
		asked = []unanswered{{l.at, failed}}
	}
	found, own := false, false
	for _, f := range asked {
		wishes := longWishOf(f.err)
		if f.err.Retryable && (!found || wishes < wish) {
			at, wish, found = f.at, wishes, true
		}
		if f.at == 0 && wishes == 0 {
			own = true
		}
	}
	if own && wish == 0 {
		at = 0
	}
	return at, wish
}

// longWishOf is the time over longWish that a server wants, 0 for none. The moment at which a
// breaker closes is not its server's wish.
func longWishOf(failed *provider.Error) time.Duration {
	if failed.RetryAfter <= longWish || errors.Is(failed, provider.ErrOpen) {
		return 0
	}
	return failed.RetryAfter
}

// formatMoment is when a wait ends that begins now, as people write it: with the day where that is
// not soon.
func formatMoment(wait time.Duration) string {
	at := time.Now().Add(wait).Round(time.Second)
	if wait < 12*time.Hour {
		return at.Format("15:04:05 MST")
	}
	return at.Format("2006-01-02 15:04 MST")
}

// failureAdvice is why nobody answers, in their own words, and what a person can do: not before the
// moment that the server wishes, if it does.
func (l *targetList) failureAdvice(failed *provider.Error, why regie.Sentence) regie.Sentence {
	if _, wish := l.nextMoment(failed); wish > 0 {
		return regie.SayOf("%s. Its server asks to wait until %s: try again then, or use another model.",
			trimStop(why), regie.Verbatim(formatMoment(wish)))
	}
	if failed.Code != regie.CodeProviderBusy || !failed.Retryable {
		return why
	}
	why = trimStop(why)
	switch {
	case len(l.failures) > 1: // all of them were asked
		return regie.SayOf("%s. Try again in a while.", why)
	case failed.Status == http.StatusTooManyRequests:
		return regie.SayOf(
			"%s. Its server takes no more requests for now: try again in a minute, or use another model.", why)
	case failed.Status >= http.StatusInternalServerError && failed.Status != http.StatusServiceUnavailable &&
		failed.Status != 529:
		return regie.SayOf(
			"%s. The fault is the server's own: look at what it logs if it is yours, else try again later or use another model.", why)
	default:
		return regie.SayOf("%s. Try again in a while, or use another model.", why)
	}
}

// trimStop is a sentence without the full stop at its end, where another follows it.
func trimStop(s regie.Sentence) regie.Sentence {
	switch {
	case len(s.About) > 0:
		s.About = slices.Clone(s.About)
		last := &s.About[len(s.About)-1]
		*last = trimStop(*last)
	case len(s.Args) > 0:
		s.Args = slices.Clone(s.Args)
		last := &s.Args[len(s.Args)-1]
		*last = strings.TrimSuffix(*last, ".")
	}
	return s
}

// waitNetwork has the round wait until the model may answer again, without a holder (decisions 25
// and 42): every 30 s at first, later every 5 min. It does not count as a retry. The audit message
// comes when the outage begins, the notice after an hour of it; where the operator has set an end
// to waiting, the session is paused then. At either moment one more try is made. Who asks for more
// time than that gets it (spec 3.6); people are told so at once where it is over an hour.
func (r *run) waitNetwork(failed *provider.Error, took time.Duration) error {
	now, why := time.Now().UTC(), r.targets.failureSentence(failed)
	next, wish := r.targets.nextMoment(failed)
	in := store.Failure{Attempt: r.call.failedAttempt(failed, took), Retry: r.targets.reopen(next)}
	outage := regie.Outage{Exchange: r.exchange.Number, Since: now}
	if r.call.outage != nil {
		outage = *r.call.outage
	} else {
		in.Message = r.noticeMessage(regie.SystemNetworkError, why)
		in.Message.ExcludeFromPrompt = true
		if wish > 0 {
			in.Message.System.Said = []regie.Sentence{r.targets.waitSentence(why, wish)}
		}
	}
	outage.Tries++
	lasted := now.Sub(outage.Since)
	notice := regie.Notice{RoundID: r.round.ID, Since: outage.Since, Text: why.String(), Why: why}
	switch giveUp := r.cfg.NetworkGiveUp; {
	case giveUp > 0 && lasted >= giveUp:
		notice.Kind, in.Notice, in.Pause = regie.NoticeNetworkGiveUp, &notice, true
	case (lasted >= noticeAfter || wish >= noticeAfter) && !outage.Noticed:
		notice.Kind, in.Notice, outage.Noticed = regie.NoticeNetworkDown, &notice, true
		if wish > 0 {
			notice.Said = []regie.Sentence{r.targets.waitSentence(why, wish)}
		}
	}
	in.Outage = &outage
	if !in.Pause {
		in.WaitUntil = nextTry(now, outage, r.cfg.NetworkRetry, wish, r.cfg.NetworkGiveUp)
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

// waitSentence says until when a round waits because a server wants it.
func (l *targetList) waitSentence(why regie.Sentence, wish time.Duration) regie.Sentence {
	return regie.SayOf("%s; its server asks to wait until %s, and the run does", trimStop(why),
		regie.Verbatim(formatMoment(wish)))
}

// nextTry is when a model is asked again that could not be reached: after the usual time, or as
// long as its server wishes, but not later than something is due. A notice is not due while a wish
// lasts: it was given when the wish was heard, or comes with the try after it.
func nextTry(now time.Time, outage regie.Outage, first, wish, giveUp time.Duration) time.Time {
	at := now.Add(max(networkBackoff(first, outage.Tries), wish))
	for _, due := range []struct {
		after time.Duration
		open  bool
	}{{noticeAfter, !outage.Noticed && wish == 0}, {giveUp, giveUp > 0}} {
		if moment := outage.Since.Add(due.after); due.open && moment.After(now) && moment.Before(at) {
			at = moment
		}
	}
	return at
}

// networkBackoff is decision 42: the first ten tries every 30 s, then up to 5 min.
func networkBackoff(first time.Duration, tries int) time.Duration {
	if tries <= 10 {
		return first
	}
	return min(first<<min(tries-10, 4), max(first, 5*time.Minute))
}
