package engine

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// noticeAfter is how long a round waits for the network before people are told that it still does (decisions 25 and 42).
const noticeAfter = time.Hour

// waitNetwork has the round wait until the model may answer again, without a holder (decisions 25 and 42): every 30 s at first, later
// every 5 min. It does not count as a retry. The audit message comes when the outage begins, the notice after an hour of it; where the
// operator has set an end to waiting, the session is paused then. At either moment one more try is made.
func (r *run) waitNetwork(failed *provider.Error, took time.Duration) error {
	now, why := time.Now().UTC(), r.why(failed)
	in := store.Failure{Attempt: r.failedAttempt(failed, took), Retry: r.once(0)} // its own provider comes first again
	outage := regie.Outage{Exchange: r.exchange.Number, Since: now}
	if r.outage != nil {
		outage = *r.outage
	} else {
		in.Message = r.system(regie.SystemNetworkError, why)
		in.Message.ExcludeFromPrompt = true
	}
	outage.Tries++
	lasted := now.Sub(outage.Since)
	notice := regie.Notice{RoundID: r.round.ID, Since: outage.Since, Text: why}
	switch giveUp := r.cfg.NetworkGiveUp; {
	case giveUp > 0 && lasted >= giveUp:
		notice.Kind, in.Notice, in.Pause = regie.NoticeNetworkGiveUp, &notice, true
	case lasted >= noticeAfter && !outage.Noticed:
		notice.Kind, in.Notice, outage.Noticed = regie.NoticeNetworkDown, &notice, true
	}
	in.Outage = &outage
	if !in.Pause {
		in.WaitUntil = nextTry(now, outage, r.cfg.NetworkRetry, r.cfg.NetworkGiveUp)
	}
	out, err := r.cfg.Store.FailAttempt(r.commit, r.fence, in)
	if err == nil {
		r.exchange.Attempt++
		r.exchange.Money = regie.Money{}
		r.sent, r.parked, r.outage, r.failures = false, out.Parked, &outage, nil
		r.turnTo(0)
	}
	return err
}

// nextTry is when a model is asked again that could not be reached: after the usual time, but not later than something is due.
func nextTry(now time.Time, outage regie.Outage, first, giveUp time.Duration) time.Time {
	at := now.Add(networkBackoff(first, outage.Tries))
	for _, due := range []struct {
		after time.Duration
		open  bool
	}{{noticeAfter, !outage.Noticed}, {giveUp, giveUp > 0}} {
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
