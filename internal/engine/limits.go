package engine

import (
	"fmt"

	"github.com/regie-run/regie"
)

// DefaultLimits are the limits of spec 3.2 for native tool calls.
func DefaultLimits(kind regie.SessionType) regie.Limits {
	if kind == regie.SessionAutomation {
		return regie.Limits{Total: 50, Queries: 20, Retries: 5, FormatErrors: 5, CallsInReply: 10}
	}
	return regie.Limits{Total: 20, Queries: 10, Retries: 3, FormatErrors: 3, CallsInReply: 10}
}

// afterReply counts a parsed reply (decision 41) and names the limit that keeps its calls from running, or "".
func afterReply(c regie.Counters, l regie.Limits, calls []regie.Call) (regie.Counters, string) {
	c.Total++
	c.FormatErrors = 0
	switch {
	case len(calls) == 0:
		return c, ""
	case c.Total >= l.Total: // nobody would read the results
		return c, fmt.Sprintf("the limit of %d replies in one run", l.Total)
	case !hasAction(calls) && c.Queries >= l.Queries:
		return c, fmt.Sprintf("the limit of %d replies in a row that only read", l.Queries)
	default:
		return c, ""
	}
}

// afterBatch counts a settled batch (decision 41) and names the limit that it passes, or "". What a person refused, and a completion that
// was refused, count as a retry like a failed action.
func afterBatch(c regie.Counters, l regie.Limits, calls []regie.Call, refused bool) (regie.Counters, string) {
	switch {
	case !hasAction(calls) && !refused:
		c.Retries = 0
		c.Queries++
	case actionsSucceeded(calls) && !refused:
		c.Queries, c.Retries = 0, 0
	default:
		c.Queries = 0
		c.Retries++
		if c.Retries > l.Retries {
			return c, fmt.Sprintf("the limit of %d retries of failed actions", l.Retries)
		}
	}
	return c, ""
}

func hasAction(calls []regie.Call) bool {
	for i := range calls {
		if calls[i].Kind == regie.KindAction {
			return true
		}
	}
	return false
}

func actionsSucceeded(calls []regie.Call) bool {
	for i := range calls {
		c := &calls[i]
		if c.Kind == regie.KindAction && c.State != regie.CallSucceeded && c.NotRun != regie.NotRunDuplicateInBatch {
			return false
		}
	}
	return true
}
