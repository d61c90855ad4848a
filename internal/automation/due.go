package automation

import (
	"cmp"
	"slices"
	"time"

	"github.com/regie-run/regie"
)

const (
	// onTime is how late an instant may be seen and still not count as missed.
	onTime = time.Minute
	// maxMissed bounds the missed instants that have rows of their own.
	maxMissed = 1000
)

// Earlier returns the earlier of two instants; a zero one is none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Due returns the rows for the instants of an automation that have come and have none yet, the last
// instant that then has one, and the next instant, zero for none. It does not know which runs are
// unfinished: OVERLAP is the store's decision.
func Due(a *regie.Automation, now time.Time) (fires []regie.Fire, decidedTo, next time.Time) {
	p, err := compile(cmp.Or(a.Definition.Schedule, &regie.Schedule{}))
	if !a.Enabled || err != nil {
		return nil, a.DecidedTo, next
	}
	decidedTo = a.DecidedTo
	// The walk after an outage is bounded: instants of more than four years ago have no row.
	begin := []time.Time{a.DecidedTo, a.SeriesFrom, now.AddDate(-4, 0, 0)}
	next, _ = p.next(a.SeriesFrom, slices.MaxFunc(begin, time.Time.Compare))
	addFire := func(fire regie.Fire) {
		fire.AutomationID, fire.Version, fire.Trigger = a.ID, a.Version, regie.TriggerScheduled
		fire.Late = fire.NominalAt.Before(now.Add(-onTime))
		fires = append(fires, fire)
	}
	// decide consumes the next instants up to end. The latest ones, as many as run, are DUE. The
	// others have another outcome; they share a row if there are too many instants.
	decide := func(end time.Time, run int, outcome regie.FireOutcome, reason regie.Sentence) {
		var latest []time.Time
		first, count := next, 0
		for ; !next.IsZero() && !next.After(end); count++ {
			if len(latest) > 2*maxMissed {
				latest = slices.Delete(latest, 0, maxMissed)
			}
			latest, decidedTo = append(latest, next), next
			next, _ = p.next(a.SeriesFrom, next)
		}
		others := max(0, len(latest)-run)
		if count > maxMissed {
			until := latest[others-1]
			addFire(regie.Fire{NominalAt: first, Until: until, Count: count - run, Outcome: outcome, Reason: reason})
			latest, others = latest[others:], 0
		}
		for _, at := range latest[:others] {
			addFire(regie.Fire{NominalAt: at, Outcome: outcome, Reason: reason})
		}
		for _, at := range latest[others:] {
			addFire(regie.Fire{NominalAt: at, Outcome: regie.FireDue})
		}
	}
	if a.Paused {
		end := now
		if !a.PausedUntil.IsZero() && !a.PausedUntil.After(now) {
			end = a.PausedUntil.Add(-1)
		}
		decide(end, 0, regie.FireSkipped, regie.Say("the automation was paused"))
	}
	run, outcome, reason := 1, regie.FireCoalesced, regie.Say("the time was missed; one late run does for all of them")
	switch a.Definition.Missed {
	case regie.MissedSkip:
		run, outcome, reason = 0, regie.FireSkipped, regie.Say("the time was missed")
	case regie.MissedEach:
		run, outcome, reason = maxMissed, regie.FireSkipped, regie.Say("more times were missed than can run later")
	}
	decide(now.Add(-onTime-1), run, outcome, reason)
	decide(now, maxMissed, outcome, reason)
	return fires, decidedTo, next
}
