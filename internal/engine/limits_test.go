package engine

import (
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

func calls(states ...any) []regie.Call {
	var out []regie.Call
	for i := 0; i < len(states); i += 2 {
		kind, _ := states[i].(regie.CallKind)
		state, _ := states[i+1].(regie.CallState)
		out = append(out, regie.Call{Kind: kind, State: state})
	}
	return out
}

// TestCounters is decision 41 as a table: what a settled batch does to the counters, and which limit it meets.
func TestCounters(t *testing.T) {
	limits := regie.Limits{Total: 5, Queries: 2, Retries: 1, CallsInReply: 10}
	q, a := regie.KindQuery, regie.KindAction
	duplicate := calls(a, regie.CallSucceeded, a, regie.CallNotRun)
	duplicate[1].NotRun = regie.NotRunDuplicateInBatch
	for name, c := range map[string]struct {
		before regie.Counters
		calls  []regie.Call
		after  regie.Counters
		limit  string
	}{
		"queries count queries and clear retries":   {regie.Counters{Total: 1, Queries: 1, Retries: 1}, calls(q, regie.CallSucceeded), regie.Counters{Total: 1, Queries: 2}, ""},
		"a refused completion counts as a retry":    {regie.Counters{Queries: 1}, nil, regie.Counters{Retries: 1}, ""},
		"a failed query is still a query":           {regie.Counters{}, calls(q, regie.CallFailed), regie.Counters{Queries: 1}, ""},
		"actions that succeed clear both":           {regie.Counters{Queries: 2, Retries: 1}, calls(a, regie.CallSucceeded, q, regie.CallSucceeded), regie.Counters{}, ""},
		"a failed action counts and clears queries": {regie.Counters{Queries: 2}, calls(a, regie.CallFailed), regie.Counters{Retries: 1}, ""},
		"so does an unknown one":                    {regie.Counters{Queries: 2}, calls(a, regie.CallUnknown, a, regie.CallSucceeded), regie.Counters{Retries: 1}, ""},
		"one not run counts as failed":              {regie.Counters{}, calls(a, regie.CallNotRun), regie.Counters{Retries: 1}, ""},
		"a duplicate of a success is none":          {regie.Counters{Retries: 1}, duplicate, regie.Counters{}, ""},
		"retries over the limit":                    {regie.Counters{Retries: 1}, calls(a, regie.CallFailed), regie.Counters{Retries: 2}, "1 retries"},
	} {
		t.Run(name, func(t *testing.T) {
			after, limit := afterBatch(c.before, limits, c.calls, c.calls == nil)
			if after != c.after || !strings.Contains(limit, c.limit) || (limit == "") != (c.limit == "") {
				t.Errorf("%+v %q, want %+v %q", after, limit, c.after, c.limit)
			}
		})
	}
	for name, c := range map[string]struct {
		before regie.Counters
		calls  []regie.Call
		limit  string
	}{
		"an answer meets no limit":         {regie.Counters{Total: 99, Queries: 99}, nil, ""},
		"calls in the last reply":          {regie.Counters{Total: 4}, calls(a, regie.CallProposed), "5 replies in one run"},
		"one before the last":              {regie.Counters{Total: 3}, calls(a, regie.CallProposed), ""},
		"queries after too many queries":   {regie.Counters{Queries: 2}, calls(q, regie.CallProposed), "2 replies in a row"},
		"an action after too many queries": {regie.Counters{Queries: 2}, calls(q, regie.CallProposed, a, regie.CallProposed), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.before.FormatErrors = 2
			after, limit := afterReply(c.before, limits, c.calls)
			if after.Total != c.before.Total+1 || after.FormatErrors != 0 || !strings.Contains(limit, c.limit) || (limit == "") != (c.limit == "") {
				t.Errorf("%+v %q, want %q", after, limit, c.limit)
			}
		})
	}
}
