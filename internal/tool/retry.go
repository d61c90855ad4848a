package tool

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/regie-run/regie"
)

const (
	defaultTries = 3 // spec 4.3
	defaultTotal = time.Minute
	firstBackoff = 200 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// Retry bounds how often Attempt runs a call (spec 4.3). The zero Retry is the default of the
// specification.
type Retry struct {
	// Max bounds the attempts, the first one included; zero means 3.
	Max int
	// Backoff says how long to wait before an attempt, from the second on; nil means exponential
	// with jitter from 200 ms to 5 s.
	Backoff func(try int) time.Duration
	// Total bounds the time from the first attempt's start to the last one's start; zero means a
	// minute. The last attempt may then still take its tool's timeout and grace.
	Total time.Duration
}

// Attempt is Run, repeated where spec 4.3 allows it: a query, or a keyed call under its id, after a
// transient failure. It returns the last attempt's outcome, with the duration of all attempts
// without the delays, and the number of attempts.
//
// An attempt after one with an unknown outcome is Repeated: then not even NotDone makes its call
// FAILED. After attempts in which certainly nothing happened it is not. Attempt ends at once with
// ctx: a keyed call that may have had its effect stays UNKNOWN, a failed query may be repeated. inv
// is not changed.
func Attempt(ctx context.Context, t Tool, inv *Invocation, retry Retry) (out Outcome, tries int) {
	retry = retry.withDefaults()
	class := t.Definition().Class
	repeatable := class == regie.ClassRead || class == regie.ClassKeyed
	started, spent := time.Now(), time.Duration(0)
	current := *inv
	for {
		tries++
		out = Run(ctx, t, &current)
		spent += out.Duration
		out.Duration = spent
		if !repeatable || !out.Again || !out.passing || tries >= retry.Max {
			return out, tries
		}
		delay := max(0, retry.Backoff(tries+1))
		if time.Since(started)+delay > retry.Total || !waitFor(ctx, delay) {
			return out, tries
		}
		if out.State == regie.CallUnknown {
			current.Repeated = true
		}
	}
}

// Bound is the longest time of Attempt by the tool's own timeouts: the attempts, the delays, and
// the questions after each of them.
func Bound(t Tool, retry Retry) time.Duration {
	retry = retry.withDefaults()
	tries := retry.Max
	if class := t.Definition().Class; class != regie.ClassRead && class != regie.ClassKeyed {
		tries = 1
	}
	return time.Duration(tries)*3*(timeoutOf(t)+grace) + retry.Total
}

func (r Retry) withDefaults() Retry {
	if r.Max <= 0 {
		r.Max = defaultTries
	}
	if r.Total <= 0 {
		r.Total = defaultTotal
	}
	if r.Backoff == nil {
		r.Backoff = retryDelay
	}
	return r
}

// retryDelay doubles from try to try and spreads each wait over half to all of it, so that calls
// that failed together do not come back together.
func retryDelay(try int) time.Duration {
	whole := min(firstBackoff<<min(max(try-2, 0), 10), maxBackoff)
	return whole/2 + rand.N(whole/2+1)
}

// waitFor reports whether the time passed before ctx ended.
func waitFor(ctx context.Context, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// mayPass reports whether a failure is transient: by its code, or without a code, as for a broken
// connection. A panic has a permanent code.
func mayPass(err error) bool {
	if err == nil {
		return false
	}
	_, coded := errors.AsType[*regie.Error](err)
	return !coded || isTransient(err)
}
