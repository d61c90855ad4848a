package engine

import (
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/tool"
)

// DefaultLimits are the limits of spec 3.2: in the JSON dialect, where one reply carries a whole
// batch, those of the seeds. Nothing bounds the tokens and the time of a round by default.
func DefaultLimits(kind regie.SessionType, dialect regie.Dialect) regie.Limits {
	automation, json := kind == regie.SessionAutomation, dialect == regie.DialectJSON
	out := regie.Limits{Total: 20, Queries: 10, Retries: 3, FormatErrors: 3, CallsInReply: 10}
	switch {
	case automation && json:
		out.Total, out.Queries = 20, 5
	case automation:
		out.Total, out.Queries = 50, 20
	case json:
		out.Total, out.Queries = 10, 3
	}
	if automation {
		out.Retries, out.FormatErrors = 5, 5
	}
	return out
}

// batch is what the counters have to know of a reply's calls.
type batch struct {
	calls int
	// acts says that an action is among them, failed that one of those did not succeed, as after a
	// refusal.
	acts, failed bool
	// asks says that a question is among them, answered that a person has answered it.
	asks, answered bool
	// final says that the model need not read the results: the batch only ends the run, or in the
	// JSON dialect answers, perhaps with the plan.
	final bool
}

// batchOf classifies a batch of a dialect. refused says that a person refused all of it (decision
// 41).
func batchOf(calls []regie.Call, dialect regie.Dialect, role func(*regie.Call) regie.ToolRole, refused bool) batch {
	b := batch{calls: len(calls), failed: refused}
	plans, ends := 0, 0
	for i := range calls {
		c := &calls[i]
		switch role(c) {
		case regie.RoleQuestion:
			// one that was settled unasked is no question
			b.asks = b.asks || !c.State.Settled() || c.State == regie.CallSucceeded
			b.answered = b.answered || c.State == regie.CallSucceeded
		case regie.RoleComplete:
			ends++
		case regie.RolePlan:
			plans++
		}
		if c.Kind == regie.KindAction {
			b.acts = true
			b.failed = b.failed || c.State != regie.CallSucceeded && c.NotRun != regie.NotRunDuplicateInBatch
		}
	}
	b.final = ends+plans == len(calls) && (ends > 0 || dialect == regie.DialectJSON)
	return b
}

// noLimit says that none is met.
var noLimit regie.Sentence

// spent names the limit of the whole round that is used up, or noLimit: then no reply would be read
// any more.
func spent(c regie.Counters, tokens int64, l regie.Limits) regie.Sentence {
	switch {
	case c.Total >= l.Total:
		return regie.Say("the limit on replies (%s)", strconv.Itoa(l.Total))
	case l.Tokens > 0 && tokens >= l.Tokens:
		return regie.Say("the limit on tokens (%s)", strconv.FormatInt(l.Tokens, 10))
	default:
		return noLimit
	}
}

// afterReply counts a reply that could be read (decision 41) and names the limit that keeps its
// calls from running, or noLimit.
func afterReply(c regie.Counters, tokens int64, l regie.Limits, b batch) (regie.Counters, regie.Sentence) {
	if !fault.Bug(fault.BugCounter) {
		c.Total++
	}
	c.FormatErrors = 0
	switch limit := spent(c, tokens, l); {
	case b.calls == 0, b.final:
		return c, noLimit
	case !limit.IsZero(): // the results would go unread
		return c, limit
	case !b.acts && !b.asks && c.Queries >= l.Queries:
		return c, queryLimit(l)
	default:
		return c, noLimit
	}
}

// afterBatch counts a settled batch (decision 41) and names the limit that it meets, or noLimit. A
// counter never passes its limit: what meets it is not counted, it ends the round.
func afterBatch(c regie.Counters, l regie.Limits, b batch) (regie.Counters, regie.Sentence) {
	switch {
	case b.failed:
		return afterFailure(c, l)
	case b.acts, b.answered:
		c.Queries, c.Retries = 0, 0
	case b.final:
	case c.Queries >= l.Queries: // only a question comes here, which was let through and came to nothing
		return c, queryLimit(l)
	default:
		c.Queries, c.Retries = c.Queries+1, 0
	}
	return c, noLimit
}

func queryLimit(l regie.Limits) regie.Sentence {
	return regie.Say("the limit on replies in a row without an action (%s)", strconv.Itoa(l.Queries))
}

// afterFailure counts a step that is to be tried again: a failed action, a refusal, an end that is
// none.
func afterFailure(c regie.Counters, l regie.Limits) (regie.Counters, regie.Sentence) {
	c.Queries = 0
	if c.Retries >= l.Retries {
		return c, regie.Say("the limit on retries of failed actions (%s)", strconv.Itoa(l.Retries))
	}
	c.Retries++
	return c, noLimit
}

// afterFormatError counts a reply that could not be read.
func afterFormatError(c regie.Counters, tokens int64, l regie.Limits) (regie.Counters, regie.Sentence) {
	c.Total++
	if c.FormatErrors >= l.FormatErrors {
		return c, regie.Say("the limit on corrections of replies that cannot be read (%s)", strconv.Itoa(l.FormatErrors))
	}
	c.FormatErrors++
	return c, spent(c, tokens, l)
}

// sessionEnd returns the reason with which the end of an automation's round closes its session
// (decision 44), or "" where the session stays open: COMPLETED is only ever the model's own word.
func sessionEnd(kind regie.SessionType, end regie.RoundEnd) regie.SessionEnd {
	if kind != regie.SessionAutomation {
		return ""
	}
	switch end {
	case regie.EndCompleted:
		return regie.SessionCompleted
	case regie.EndAnswered, regie.EndLimit, regie.EndEarlyStop, regie.EndWatchdog:
		// ANSWERED is silence after the nudge
		return regie.SessionTimeout
	case regie.EndProviderError, regie.EndNoProgress, regie.EndDenied:
		return regie.SessionError
	default: // an interrupt leaves the session usable (decision 6), a stop closes it by itself
		return ""
	}
}

// maxOutput is the bound of the round's replies in tokens.
func (s *roundState) maxOutput() int {
	if s.policy.MaxOutput > 0 {
		return s.policy.MaxOutput
	}
	return s.cfg.MaxOutput
}

// retry bounds the attempts of one of the round's calls.
func (s *roundState) retry() tool.Retry {
	retry := s.cfg.Retry
	if most := s.round.Limits.CallAttempts; most > 0 && (retry.Max <= 0 || most < retry.Max) {
		retry.Max = most
	}
	return retry
}

// isOverSessionCalls reports whether a further call of a reply is over the limit of its session.
// What ends, plans or asks is no work, and may always be said.
func (s *roundState) isOverSessionCalls(known, ordinal int, checked *tool.Checked) bool {
	most := s.round.Limits.SessionCalls
	return most > 0 && known+ordinal >= most && (checked.Tool == nil || checked.Tool.Definition().Role == "")
}
