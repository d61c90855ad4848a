package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
)

// calls makes a batch: kinds and states in turn, and roles between them where there are any.
func calls(words ...any) []regie.Call {
	var out []regie.Call
	for _, word := range words {
		switch w := word.(type) {
		case regie.CallKind:
			out = append(out, regie.Call{Kind: w, Tool: "x.y"})
		case regie.CallState:
			out[len(out)-1].State = w
		case regie.NotRunCode:
			out[len(out)-1].NotRun = w
		case regie.ToolRole:
			out[len(out)-1].Tool = string(w)
		}
	}
	return out
}

// roleOf reads the role that calls has written.
func roleOf(c *regie.Call) regie.ToolRole {
	if strings.Contains(c.Tool, ".") {
		return ""
	}
	return regie.ToolRole(c.Tool)
}

const (
	query, act = regie.KindQuery, regie.KindAction
	ok         = regie.CallSucceeded
)

// TestDefaultLimits is the table of spec 3.2, cell by cell.
func TestDefaultLimits(t *testing.T) {
	for _, cell := range []struct {
		kind    regie.SessionType
		dialect regie.Dialect
		want    regie.Limits
	}{
		{regie.SessionChat, regie.DialectNative, regie.Limits{Total: 20, Queries: 10, Retries: 3, FormatErrors: 3, CallsInReply: 10}},
		{regie.SessionChat, regie.DialectJSON, regie.Limits{Total: 10, Queries: 3, Retries: 3, FormatErrors: 3, CallsInReply: 10}},
		{regie.SessionAutomation, regie.DialectNative, regie.Limits{Total: 50, Queries: 20, Retries: 5, FormatErrors: 5, CallsInReply: 10}},
		{regie.SessionAutomation, regie.DialectJSON, regie.Limits{Total: 20, Queries: 5, Retries: 5, FormatErrors: 5, CallsInReply: 10}},
	} {
		if diff := cmp.Diff(cell.want, DefaultLimits(cell.kind, cell.dialect)); diff != "" {
			t.Errorf("%s in %s (-want +got):\n%s", cell.kind, cell.dialect, diff)
		}
	}
}

// each runs a check for every cell of the table of spec 3.2.
func each(t *testing.T, check func(t *testing.T, dialect regie.Dialect, l regie.Limits)) {
	t.Helper()
	for _, kind := range []regie.SessionType{regie.SessionChat, regie.SessionAutomation} {
		for _, dialect := range []regie.Dialect{regie.DialectNative, regie.DialectJSON} {
			t.Run(fmt.Sprintf("%s %s", kind, dialect), func(t *testing.T) { check(t, dialect, DefaultLimits(kind, dialect)) })
		}
	}
}

// whole counts a reply and its batch.
func whole(c regie.Counters, l regie.Limits, b batch) (regie.Counters, regie.Sentence) {
	c, limit := afterReply(c, 0, l, b)
	if !limit.IsZero() {
		return c, limit
	}
	return afterBatch(c, l, b)
}

// TestLimitsAreMet counts up to each limit, in each cell of spec 3.2: so many steps are taken, the
// next one ends the round, and no counter is ever above its limit (invariant 10).
func TestLimitsAreMet(t *testing.T) {
	below := func(t *testing.T, c regie.Counters, l regie.Limits) {
		t.Helper()
		if c.Total > l.Total || c.Queries > l.Queries || c.Retries > l.Retries || c.FormatErrors > l.FormatErrors {
			t.Fatalf("counters %+v, limits %+v", c, l)
		}
	}
	steps := map[string]struct {
		want  func(l regie.Limits) int
		names string
		step  func(c regie.Counters, d regie.Dialect, l regie.Limits) (regie.Counters, regie.Sentence)
	}{
		"queries": {func(l regie.Limits) int { return l.Queries }, "without an action", func(c regie.Counters, d regie.Dialect, l regie.Limits) (regie.Counters, regie.Sentence) {
			return whole(c, l, batchOf(calls(query, ok), d, roleOf, false))
		}},
		"failed actions": {func(l regie.Limits) int { return l.Retries }, "retries of failed actions", func(c regie.Counters, d regie.Dialect, l regie.Limits) (regie.Counters, regie.Sentence) {
			b := batchOf(calls(act, regie.CallFailed), d, roleOf, false)
			return afterBatch(c, l, b)
		}},
		"refusals": {func(l regie.Limits) int { return l.Retries }, "retries of failed actions", func(c regie.Counters, d regie.Dialect, l regie.Limits) (regie.Counters, regie.Sentence) {
			return afterBatch(c, l, batchOf(calls(query, regie.CallNotRun, regie.NotRunDenied), d, roleOf, true))
		}},
		"format errors": {func(l regie.Limits) int { return l.FormatErrors }, "cannot be read", func(c regie.Counters, _ regie.Dialect, l regie.Limits) (regie.Counters, regie.Sentence) {
			return afterFormatError(c, 0, l)
		}},
		"replies": {func(l regie.Limits) int { return l.Total - 1 }, "the limit on replies (", func(c regie.Counters, d regie.Dialect, l regie.Limits) (regie.Counters, regie.Sentence) {
			return whole(c, l, batchOf(calls(act, ok), d, roleOf, false))
		}},
	}
	for name, s := range steps {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, d regie.Dialect, l regie.Limits) {
				t.Helper()
				var c regie.Counters
				limit, taken := noLimit, 0
				for ; taken < 1000; taken++ {
					if c, limit = s.step(c, d, l); !limit.IsZero() {
						break
					}
					below(t, c, l)
				}
				below(t, c, l)
				if taken != s.want(l) || !strings.Contains(limit.String(), s.names) {
					t.Errorf("%d steps were taken, want %d; the limit is %q", taken, s.want(l), limit)
				}
			})
		})
	}
}

// TestCounters is decision 41 as a table: what a settled batch does to the counters, and which
// limit it meets.
func TestCounters(t *testing.T) {
	limits := regie.Limits{Total: 5, Queries: 2, Retries: 1, CallsInReply: 10}
	type row struct {
		before regie.Counters
		calls  []regie.Call
		after  regie.Counters
		limit  string
	}
	for name, c := range map[string]row{
		"queries count queries and clear retries":   {regie.Counters{Total: 1, Queries: 1, Retries: 1}, calls(query, ok), regie.Counters{Total: 1, Queries: 2}, ""},
		"a refused completion counts as a retry":    {regie.Counters{Queries: 1}, nil, regie.Counters{Retries: 1}, ""},
		"a failed query is still a query":           {regie.Counters{}, calls(query, regie.CallFailed), regie.Counters{Queries: 1}, ""},
		"actions that succeed clear both":           {regie.Counters{Queries: 2, Retries: 1}, calls(act, ok, query, ok), regie.Counters{}, ""},
		"a failed action counts and clears queries": {regie.Counters{Queries: 2}, calls(act, regie.CallFailed), regie.Counters{Retries: 1}, ""},
		"so does an unknown one":                    {regie.Counters{Queries: 2}, calls(act, regie.CallUnknown, act, ok), regie.Counters{Retries: 1}, ""},
		"one not run counts as failed":              {regie.Counters{}, calls(act, regie.CallNotRun), regie.Counters{Retries: 1}, ""},
		"a duplicate of a success is none":          {regie.Counters{Retries: 1}, calls(act, ok, act, regie.CallNotRun, regie.NotRunDuplicateInBatch), regie.Counters{}, ""},
		"retries at the limit":                      {regie.Counters{Queries: 1, Retries: 1}, calls(act, regie.CallFailed), regie.Counters{Retries: 1}, "failed actions (1)"},
		"a person's answer clears both":             {regie.Counters{Queries: 2, Retries: 1}, calls(query, regie.RoleQuestion, ok), regie.Counters{}, ""},
		"an answer beside a failure does not":       {regie.Counters{Queries: 2}, calls(query, regie.RoleQuestion, ok, act, regie.CallFailed), regie.Counters{Retries: 1}, ""},
		"a question that nobody could be asked":     {regie.Counters{Queries: 1}, calls(query, regie.RoleQuestion, regie.CallNotRun), regie.Counters{Queries: 2}, ""},
		"an end that was none is no query":          {regie.Counters{Queries: 2, Retries: 1}, calls(query, regie.RoleComplete, regie.CallNotRun), regie.Counters{Queries: 2, Retries: 1}, ""},
		"format errors are no matter of a batch":    {regie.Counters{FormatErrors: 1}, calls(query, ok), regie.Counters{Queries: 1, FormatErrors: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, d := range []regie.Dialect{regie.DialectNative, regie.DialectJSON} {
				after, limit := afterBatch(c.before, limits, batchOf(c.calls, d, roleOf, c.calls == nil))
				if after != c.after || !strings.Contains(limit.String(), c.limit) || limit.IsZero() != (c.limit == "") {
					t.Errorf("%s: %+v %q, want %+v %q", d, after, limit, c.after, c.limit)
				}
			}
		})
	}
}

// TestReplies is what a reply that could be read does to the counters, and which limit keeps its
// calls from running.
func TestReplies(t *testing.T) {
	limits := regie.Limits{Total: 5, Queries: 2, Retries: 1, CallsInReply: 10, Tokens: 100}
	plan, complete := calls(query, regie.RolePlan), calls(query, regie.RoleComplete)
	for name, c := range map[string]struct {
		before       regie.Counters
		tokens       int64
		calls        []regie.Call
		native, json string
	}{
		"an answer meets no limit":          {before: regie.Counters{Total: 99, Queries: 99}, tokens: 999},
		"calls in the last reply":           {regie.Counters{Total: 4}, 0, calls(act), "replies (5)", "replies (5)"},
		"one before the last":               {before: regie.Counters{Total: 3}, calls: calls(act)},
		"queries after too many queries":    {regie.Counters{Queries: 2}, 0, calls(query), "without an action (2)", "without an action (2)"},
		"an action after too many queries":  {before: regie.Counters{Queries: 2}, calls: calls(query, act)},
		"a question after too many queries": {before: regie.Counters{Queries: 2}, calls: calls(query, regie.RoleQuestion)},
		"calls when the tokens are used up": {regie.Counters{}, 100, calls(act), "tokens (100)", "tokens (100)"},
		"calls with a token left":           {before: regie.Counters{}, tokens: 99, calls: calls(act)},
		"the end in the last reply":         {before: regie.Counters{Total: 4, Queries: 2}, tokens: 999, calls: complete},
		"the end beside work, in the last":  {regie.Counters{Total: 4}, 0, append(calls(act), complete...), "replies (5)", "replies (5)"},
		// in JSON it comes with the answer
		"a plan in the last reply":           {regie.Counters{Total: 4}, 0, plan, "replies (5)", ""},
		"a plan and the end in the last one": {before: regie.Counters{Total: 4}, calls: append(plan, complete...)},
	} {
		t.Run(name, func(t *testing.T) {
			c.before.FormatErrors = 2
			for d, want := range map[regie.Dialect]string{regie.DialectNative: c.native, regie.DialectJSON: c.json} {
				after, limit := afterReply(c.before, c.tokens, limits, batchOf(c.calls, d, roleOf, false))
				if after.Total != c.before.Total+1 || after.FormatErrors != 0 || !strings.Contains(limit.String(), want) || limit.IsZero() != (want == "") {
					t.Errorf("%s: %+v %q, want %q", d, after, limit, want)
				}
			}
		})
	}
	if c, limit := afterFormatError(regie.Counters{Total: 4}, 0, regie.Limits{Total: 5, FormatErrors: 3}); c.Total != 5 || !strings.Contains(limit.String(), "replies (5)") {
		t.Errorf("an unreadable last reply: %+v %q", c, limit)
	}
}

// TestSessionEnds is decision 44: what the end of an automation's round makes of its session.
func TestSessionEnds(t *testing.T) {
	for end, want := range map[regie.RoundEnd]regie.SessionEnd{
		regie.EndCompleted: regie.SessionCompleted, regie.EndLimit: regie.SessionTimeout, regie.EndEarlyStop: regie.SessionTimeout,
		regie.EndWatchdog: regie.SessionTimeout, regie.EndAnswered: regie.SessionTimeout, regie.EndProviderError: regie.SessionError,
		regie.EndNoProgress: regie.SessionError, regie.EndDenied: regie.SessionError, regie.EndInterrupted: "", regie.EndClientTools: "",
	} {
		if got := sessionEnd(regie.SessionAutomation, end); got != want {
			t.Errorf("%s closes an automation with %q, want %q", end, got, want)
		}
		if got := sessionEnd(regie.SessionChat, end); got != "" {
			t.Errorf("%s closes a chat with %q", end, got)
		}
	}
}

// TestAccount is what people are told of a round that a limit stopped.
func TestAccount(t *testing.T) {
	all := calls(act, ok, query, ok, act, ok, act, regie.CallFailed, act, regie.CallUnknown, act, regie.CallNotRun, regie.NotRunOverLimit)
	all[2].Tool, all[5].Arguments = "files.write_file", `{"path": "a.txt",`+"\n"+` "content": "`+strings.Repeat("é", 200)+`"}`
	got := english(accountOf(all))
	for _, want := range []string{"Done: x.y (2), files.write_file (1).", `Not done: x.y {"path": "a.txt", "content": "é`, "Failed: x.y", "Outcome unknown: x.y"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
	if got := english(accountOf(nil)); got != "Done: nothing." {
		t.Errorf("of nothing: %q", got)
	}
}

func english(said []regie.Sentence) string {
	words := make([]string, len(said))
	for i, sentence := range said {
		words[i] = sentence.String()
	}
	return strings.Join(words, " ")
}
