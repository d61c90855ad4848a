package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestGuardProgress is "no new information" as a table (decision 30): each row is a round's
// batches, and after which of them the round ends, from 1; 0 is never.
func TestGuardProgress(t *testing.T) {
	batch := func(s *story, calls ...regie.Call) []regie.Call {
		s.exchange++
		for i := range calls {
			calls[i].RoundID, calls[i].Exchange = s.round, s.exchange
		}
		return calls
	}
	times := func(n int, next func(s *story, i int) []regie.Call) func(s *story) [][]regie.Call {
		return func(s *story) [][]regie.Call {
			var out [][]regie.Call
			for i := range n {
				out = append(out, batch(s, next(s, i)...))
			}
			return out
		}
	}
	for _, row := range []struct {
		name    string
		batches func(s *story) [][]regie.Call
		ends    int
	}{
		{"the same query with the same result", times(5, func(s *story, _ int) []regie.Call { return []regie.Call{s.done(read, "x", "text")} }), 3},
		{"two in turn that do not change", times(6, func(s *story, i int) []regie.Call {
			return []regie.Call{s.done(read, fmt.Sprint(i%2), "text")}
		}), 4},
		{"the same query with another result", times(9, func(s *story, i int) []regie.Call {
			return []regie.Call{s.done(read, "x", fmt.Sprint(i))}
		}), 0},
		{"other queries with the same result", times(9, func(s *story, i int) []regie.Call {
			return []regie.Call{s.done(read, fmt.Sprint(i), "no matches")}
		}), 0},
		{"one of several is new", times(9, func(s *story, i int) []regie.Call {
			return []regie.Call{s.done(read, "x", "text"), s.done(read, fmt.Sprint(i), "text")}
		}), 0},
		{"every second brings something", times(9, func(s *story, i int) []regie.Call {
			return []regie.Call{s.done(read, "x", fmt.Sprint(i/2))}
		}), 0},
		{"a poll", times(9, func(s *story, _ int) []regie.Call { return []regie.Call{s.done(poll, "x", "running")} }), 0},
		{"a poll that is refused", times(4, func(s *story, _ int) []regie.Call { return []regie.Call{s.notRun(poll, "x", regie.NotRunInvalid)} }), 3},
		{"from the cache", times(4, func(s *story, i int) []regie.Call {
			if i == 0 {
				return []regie.Call{s.done(sum, "x", "42")}
			}
			return []regie.Call{s.notRun(sum, "x", regie.NotRunCached)}
		}), 3},
		{"the person's answers", times(9, func(s *story, _ int) []regie.Call { return []regie.Call{s.done(ask, "go on?", "Yes.")} }), 0},

		{"actions that succeed", times(9, func(s *story, _ int) []regie.Call { return []regie.Call{s.done(write, "x", "ok")} }), 0},
		{"an action beside the same query", times(9, func(s *story, _ int) []regie.Call {
			return []regie.Call{s.done(read, "x", "text"), s.done(write, "x", "ok")}
		}), 0},
		{"an action of unknown outcome", times(9, func(s *story, _ int) []regie.Call { return []regie.Call{s.unknown(send, "x")} }), 0},
		{"actions that fail, each in its way", times(9, func(s *story, i int) []regie.Call {
			return []regie.Call{s.failed(write, fmt.Sprint(i), false)}
		}), 0},
		{"an action that fails and may succeed later", times(9, func(s *story, _ int) []regie.Call { return []regie.Call{s.failed(write, "x", true)} }), 0},
		{"an action that fails for good", times(4, func(s *story, i int) []regie.Call {
			if i == 0 {
				return []regie.Call{s.failed(write, "x", false)}
			}
			return []regie.Call{s.notRun(write, "x", regie.NotRunRepeatedFailure)}
		}), 3},
		{"an action that is not run again", times(4, func(s *story, i int) []regie.Call {
			if i == 0 {
				return []regie.Call{s.done(write, "x", "ok")}
			}
			return []regie.Call{s.notRun(write, "x", regie.NotRunAntiLoop), s.notRun(write, "x", regie.NotRunDuplicateInBatch)}
		}), 3},
		{"refusals of one kind, whatever was asked", times(4, func(s *story, i int) []regie.Call {
			c := s.notRun(read, fmt.Sprint("x", i), regie.NotRunOutOfScope)
			c.Error = &regie.CallError{Code: "TOOLS_WITHHELD", Message: "not run: answer now"}
			return []regie.Call{c}
		}), 3},
		{"refusals that say something else each time", times(4, func(s *story, i int) []regie.Call {
			c := s.notRun(read, "x", regie.NotRunInvalid)
			c.Error = &regie.CallError{Code: "BAD_ARGUMENTS", Message: fmt.Sprint("not run: there is no field ", i)}
			return []regie.Call{c}
		}), 0},
		{"queries that fail in the same way", times(4, func(s *story, _ int) []regie.Call { return []regie.Call{s.failed(read, "x", true)} }), 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newStory(t)
			for i, calls := range row.batches(s) {
				ends := !s.guard.goesInCircles(calls).IsZero()
				if want := row.ends > 0 && i+1 >= row.ends; ends != want {
					t.Errorf("after batch %d: ends %v, want %v", i+1, ends, want)
				}
				s.guard.observeMessage(&regie.Message{Sender: regie.SenderAI, AI: &regie.AIReply{}}, calls)
			}
		})
	}
}

// What ends a stall: a person's word, another round. What does not count: a reply without calls, a
// person's own enrichments.
func TestGuardStalls(t *testing.T) {
	same := func(s *story) []regie.Call { return []regie.Call{s.done(read, "x", "text")} }
	for _, row := range []struct {
		name  string
		tell  func(s *story)
		ended bool
	}{
		{"nothing between", func(*story) {}, true},
		{"a notice", func(s *story) { s.system(regie.SystemCompleteRefused) }, true},
		{"a reply without calls", func(s *story) { s.tell(regie.Message{Sender: regie.SenderAI, AI: &regie.AIReply{}}, nil) }, true},
		{"a message", func(s *story) { s.user() }, false},
		{"another round", func(s *story) { s.silentRound() }, false},
		{"another round in which it was asked once", func(s *story) {
			s.silentRound()
			s.batch(same(s)...)
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newStory(t)
			s.batch(same(s)...)
			s.batch(same(s)...) // stalls once
			row.tell(s)
			if ended := !s.guard.goesInCircles(same(s)).IsZero(); ended != row.ended {
				t.Errorf("ends %v, want %v", ended, row.ended)
			}
		})
	}
	s := newStory(t)
	s.batch(same(s)...)
	enrichment := same(s)
	s.tell(regie.Message{Sender: regie.SenderUser, Rich: []regie.Segment{{Text: "see"}}}, enrichment)
	s.batch(same(s)...)
	if note := s.guard.goesInCircles(same(s)); !strings.HasPrefix(note.String(), "2 replies in a row") || s.guard.stalled != 1 {
		t.Errorf("an enrichment counted as an exchange: %d stalled", s.guard.stalled)
	}
	s.silentRound()
	if !s.guard.goesInCircles([]regie.Call{s.notRun(write, "x", regie.NotRunAntiLoop)}).IsZero() {
		t.Error("the stall of another round ends this one")
	}
	if !s.guard.hasProgress(same(s)) {
		t.Error("what another round saw is not new in this one")
	}
	s.batch(s.done(ask, "go on?", "Yes."))
	if !s.guard.hasProgress([]regie.Call{s.done(ask, "go on?", "Yes.")}) {
		t.Error("a person's answer is nothing")
	}
	if !s.guard.goesInCircles(nil).IsZero() || !s.guard.hasProgress(nil) {
		t.Error("a reply without calls is no exchange that stalls")
	}
}

// A shortened result is known again by its whole: the marker in it names the call and is never
// twice the same.
func TestGuardKnowsShortenedResults(t *testing.T) {
	s := newStory(t)
	shortened := func(whole string) regie.Call {
		call := s.done(read, "x", "")
		call.Result, call.ResultBlob = "text [shortened; call_id "+call.ID.String()+"]", regie.HashOf([]byte(whole))
		return call
	}
	s.batch(shortened("one"))
	if s.guard.hasProgress([]regie.Call{shortened("one")}) {
		t.Error("the same whole result is new")
	}
	if !s.guard.hasProgress([]regie.Call{shortened("two")}) {
		t.Error("another whole result is not new")
	}
}

// TestGuardIsBounded feeds it a session without end.
func TestGuardIsBounded(t *testing.T) {
	s := newStory(t)
	const rounds = 5 * maxRemembered
	result := strings.Repeat("r", 32<<10)
	lost := s.unknown(send, "x")
	s.guard.observeMessage(&regie.Message{AI: &regie.AIReply{}}, []regie.Call{lost})
	for i := range rounds {
		calls := []regie.Call{
			wire(s.done(read, fmt.Sprint(i), result), fmt.Sprint("r", i)), wire(s.done(write, fmt.Sprint(i), "ok"), fmt.Sprint("w", i)),
			s.failed(read, fmt.Sprint("f", i), false), s.notRun(write, fmt.Sprint("f", i), regie.NotRunInvalid), s.done(sum, fmt.Sprint(i), "42"),
		}
		s.guard.observeMessage(&regie.Message{AI: &regie.AIReply{}}, calls)
		g := s.guard
		if len(g.window) > maxRemembered || len(g.byID) > maxRemembered+i || len(g.answered) > maxRemembered || len(g.failed) > maxRemembered || len(g.seen) > maxSeen || g.kept > maxKept {
			t.Fatalf("after %d exchanges: %d calls, %d ids, %d answers, %d failures, %d results, %d bytes", i+1, len(g.window), len(g.byID), len(g.answered), len(g.failed), len(g.seen), g.kept)
		}
	}
	kept := 0
	for _, entry := range s.guard.window {
		kept += len(entry.call.Result)
	}
	if kept != s.guard.kept || kept < maxKept/2 {
		t.Errorf("%d bytes are kept, the count says %d", kept, s.guard.kept)
	}
	for _, row := range []struct {
		age  int // exchanges
		want string
		says string
	}{
		{0, "ANTI_LOOP", result},
		{100, "ANTI_LOOP ANTI_LOOP_ID", "session__read_result"}, // the result is gone, the call is known
		{maxRemembered, "", ""},
	} {
		i := rounds - 1 - row.age
		v, earlier := s.judge(s.guard, read, fmt.Sprint(i), fmt.Sprint("r", i))
		if got := v.String(); got != row.want {
			t.Errorf("%d exchanges ago: %q, want %q", row.age, got, row.want)
		}
		if v.problem != nil && (!strings.Contains(v.problem.Hint, row.says) || !strings.Contains(v.problem.Hint, earlier.ID.String())) {
			t.Errorf("%d exchanges ago: %+v", row.age, v.problem)
		}
		if v.problem == nil && !strings.Contains(v.result, row.says) {
			t.Errorf("%d exchanges ago: %d bytes", row.age, len(v.result))
		}
	}
	if v, _ := s.judge(s.guard, write, "0", "w0"); v.notRun != regie.NotRunAntiLoop {
		t.Error("the id of an action was forgotten")
	}
	if v, _ := s.judge(s.guard, send, "x", ""); !v.unresolvedUnknown {
		t.Error("an unknown outcome was forgotten")
	}
}

// A cached answer whose text is gone is asked for again; a long error is quoted, not repeated.
func TestGuardSaysNoMoreThanItHas(t *testing.T) {
	s := newStory(t)
	s.batch(s.done(sum, "x", strings.Repeat("é", maxKept/4)))
	s.batch(s.done(read, "y", strings.Repeat("é", maxKept/4+1)))
	if v, _ := s.judge(s.guard, sum, "x", ""); v.notRun != "" {
		t.Errorf("answered from the cache without an answer: %v", v.String())
	}
	long := s.failed(write, "x", false)
	long.Error.Message = "a" + strings.Repeat("é", 900)
	s.batch(long)
	v, _ := s.judge(s.guard, write, "x", "")
	if v.problem == nil || len(v.problem.Message) > maxQuoted+200 || strings.Contains(v.problem.Message, "\uFFFD") || !strings.Contains(v.problem.Message, "é…") {
		t.Errorf("got %+v", v.problem)
	}
}
