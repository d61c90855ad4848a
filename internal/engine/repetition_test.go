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

// TestGuardForgets drops what earlier rounds brought, but for the ids of actions and what is
// UNKNOWN; a long error is quoted, not repeated.
func TestGuardForgets(t *testing.T) {
	s := newStory(t)
	s.batch(s.unknown(send, "x"), wire(s.done(read, "x", "read"), "r"), wire(s.done(write, "x", "written"), "w"), s.done(sum, "x", "42"))
	if v, _ := s.judge(s.guard, read, "r"); !strings.HasSuffix(v.result, "read") {
		t.Errorf("the same read in its round: %+v", v)
	}
	s.newRound()
	s.batch(s.done(read, "y", ""))
	for _, c := range []struct{ tool, id, want string }{{read, "r", ""}, {sum, "", ""}, {write, "w", "ANTI_LOOP"}} {
		v, _ := s.judge(s.guard, c.tool, c.id)
		if got := v.String(); got != c.want {
			t.Errorf("%s in a later round: %q, want %q", c.tool, got, c.want)
		}
	}
	if len(s.guard.unknown) != 1 {
		t.Error("an unknown outcome was forgotten")
	}
	long := s.failed(write, "x", false)
	long.Error.Message = "a" + strings.Repeat("é", 900)
	s.batch(long)
	v, _ := s.judge(s.guard, write, "")
	if v.problem == nil || len(v.problem.Message) > maxQuoted+200 || strings.Contains(v.problem.Message, "\uFFFD") || !strings.Contains(v.problem.Message, "é…") {
		t.Errorf("got %+v", v.problem)
	}
}
