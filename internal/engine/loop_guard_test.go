package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// The tools of these tests.
const (
	read  = "files.read_file"
	write = "files.write_file"
	send  = "mail.send"
	sum   = "calc.sum"    // cacheable
	poll  = "tasks.state" // polling
	ask   = "session.ask_user"
	none  = "no.such_tool"
)

func guardTools(tb testing.TB) *tool.Registry {
	tb.Helper()
	var made []tool.Tool
	for _, d := range []regie.ToolDefinition{
		{Name: read, Kind: regie.KindQuery, ParallelSafe: true},
		{Name: write, Kind: regie.KindAction},
		{Name: send, Kind: regie.KindAction},
		{Name: sum, Kind: regie.KindQuery, Cacheable: true},
		{Name: poll, Kind: regie.KindQuery, Polling: true},
		{Name: ask, Kind: regie.KindQuery, Role: regie.RoleQuestion},
	} {
		d.Risk, d.Parameters = regie.RiskInternal, json.RawMessage(`{"type":"object"}`)
		t, err := tool.New(d, tool.Handler[map[string]any]{
			Run: func(context.Context, *tool.Invocation, map[string]any) (tool.Result, error) {
				return tool.Result{}, nil
			},
		})
		if err != nil {
			tb.Fatal(err)
		}
		made = append(made, t)
	}
	tools, err := tool.NewRegistry(made...)
	if err != nil {
		tb.Fatal(err)
	}
	return tools
}

// story is a thread as it grows, told to a guard. What was told is kept, so that another guard can
// be told it again.
type story struct {
	tools    *tool.Registry
	guard    *loopGuard
	round    regie.ID
	exchange int
	told     []func(*loopGuard)
}

func newStory(tb testing.TB) *story {
	tb.Helper()
	tools := guardTools(tb)
	s := &story{tools: tools, guard: newLoopGuard(tools), round: regie.NewID()}
	s.user()
	return s
}

func (s *story) tell(message regie.Message, calls []regie.Call) {
	next := func(g *loopGuard) { g.observeMessage(&message, calls) }
	next(s.guard)
	s.told = append(s.told, next)
}

func (s *story) user() { s.tell(regie.Message{Sender: regie.SenderUser, Text: "go on"}, nil) }

func (s *story) system(kind regie.SystemType) {
	s.tell(regie.Message{Sender: regie.SenderSystem, System: &regie.SystemContent{Type: kind}}, nil)
}

func (s *story) undone(round regie.ID) {
	s.tell(regie.Message{
		Sender: regie.SenderSystem, System: &regie.SystemContent{Type: regie.SystemUndone, Undone: &regie.Undone{RoundID: round}},
	}, nil)
}

func (s *story) newRound() {
	s.silentRound()
	s.user()
}

// silentRound is one that nobody's message began.
func (s *story) silentRound() { s.round, s.exchange = regie.NewID(), 0 }

// batch tells a reply with its settled calls, and the message with their results.
func (s *story) batch(calls ...regie.Call) { s.batchAs("", calls...) }

// batchAs is batch where the model gave its calls an id that repeats.
func (s *story) batchAs(repeated string, calls ...regie.Call) {
	s.exchange++
	reply := &regie.AIReply{}
	for i := range calls {
		calls[i].RoundID, calls[i].Exchange, calls[i].Ordinal = s.round, s.exchange, i
		reply.Parts = append(reply.Parts, regie.Part{Type: regie.PartCall, CallID: calls[i].ID, ProviderCallID: repeated})
	}
	s.tell(regie.Message{Sender: regie.SenderAI, AI: reply}, calls)
	s.tell(regie.Message{Sender: regie.SenderSystem, System: &regie.SystemContent{Type: regie.SystemDataAdded}}, calls)
}

// made is a call as the engine would propose it.
func (s *story) made(name, argument string) regie.Call {
	checked := s.tools.Check(name, fmt.Sprintf(`{"a":%q}`, argument))
	call := regie.Call{
		ID: regie.NewID(), RoundID: s.round, Exchange: s.exchange + 1, Tool: name, Kind: regie.KindAction, Signature: checked.Signature,
		Arguments: string(checked.Arguments), State: regie.CallProposed,
	}
	call.ProviderCallID = "toolu_" + call.ID.String()
	if checked.Tool != nil {
		call.Kind = checked.Tool.Definition().Kind
	}
	return call
}

func (s *story) done(name, argument, result string) regie.Call {
	call := s.made(name, argument)
	call.State, call.Result, call.StartedAt = regie.CallSucceeded, result, time.Unix(1, 0)
	return call
}

func (s *story) failed(name, argument string, retryable bool) regie.Call {
	call := s.made(name, argument)
	call.State, call.StartedAt = regie.CallFailed, time.Unix(1, 0)
	call.Error = &regie.CallError{Code: regie.CodeNoPermission, Message: "no permission for " + argument, Param: "a", Retryable: retryable}
	return call
}

func (s *story) unknown(name, argument string) regie.Call {
	call := s.failed(name, argument, false)
	call.State, call.Error = regie.CallUnknown, unknownOutcome("it broke")
	return call
}

func (s *story) notRun(name, argument string, code regie.NotRunCode) regie.Call {
	call := s.made(name, argument)
	call.State, call.NotRun, call.Error = regie.CallNotRun, code, &regie.CallError{Code: regie.Code(code), Message: "not run: " + string(code)}
	return call
}

// wire gives a call the provider's id that the model wrote.
func wire(call regie.Call, id string) regie.Call {
	call.ProviderCallID = id
	return call
}

// reissue gives a call the id that it gets where the model's own repeats, or is none (decision 8).
func reissue(call regie.Call) regie.Call { return wire(call, "call_"+call.ID.String()) }

func edited(call regie.Call, argument string) regie.Call {
	call.Executed = json.RawMessage(fmt.Sprintf(`{ "a" : %q }`, argument))
	return call
}

// noID stands for a model that gives its calls none.
const noID = "-"

func (s *story) judge(g *loopGuard, name, providerID string, before ...regie.Call) (guardVerdict, *regie.Call) {
	call := s.made(name, "x")
	definition := regie.ToolDefinition{}
	if target, _, ok := s.tools.Lookup(name); ok {
		definition = target.Definition()
	}
	switch providerID {
	case "":
		providerID = call.ProviderCallID
	case noID:
		providerID = ""
	}
	return g.judgeProposal(&call, definition, proposed{providerID: providerID, before: before})
}

// guardCase is one story and what the guard says to the call that comes next. No want means that
// the call runs.
type guardCase struct {
	name   string
	tell   func(s *story)
	tool   string // the next call, with the argument "x"
	id     string
	before func(s *story) []regie.Call
	want   string // "CODE of NOT_RUN", then the code that the model reads, "override", "end", "ask"
	says   []string
}

func (c *guardCase) check(t *testing.T) {
	s := newStory(t)
	c.tell(s)
	replayed := newLoopGuard(s.tools)
	for _, tell := range s.told {
		tell(replayed)
	}
	for name, g := range map[string]*loopGuard{"as it grew": s.guard, "told again": replayed} {
		var before []regie.Call
		if c.before != nil {
			before = c.before(s)
		}
		v, earlier := s.judge(g, c.tool, c.id, before...)
		got, asked := v.String(), s.made(c.tool, "x")
		if g.isUnknown(g.signatureOf(&asked)) {
			got = strings.TrimSpace(got + " ask")
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if (earlier == nil) != (v.notRun == "") || earlier != nil && (earlier.ID.IsZero() || earlier.Arguments != "") {
			t.Errorf("%s: the earlier call is %+v", name, earlier)
		}
		if v.notRun != "" && (v.problem == nil) == (v.result == "") {
			t.Errorf("%s: a call that is not run has either a result or an error: %+v", name, v)
		}
		said := v.result + v.note.String()
		if v.problem != nil {
			said += v.problem.Message + " " + v.problem.Hint + " " + v.problem.Param
		}
		for _, word := range c.says {
			if !strings.Contains(said, word) {
				t.Errorf("%s: %q does not say %q", name, said, word)
			}
		}
	}
}

// String is a verdict as the tables write it.
func (v *guardVerdict) String() string {
	var out []string
	if v.notRun != "" {
		out = append(out, string(v.notRun))
	}
	if v.problem != nil {
		out = append(out, string(v.problem.Code))
	}
	for word, set := range map[string]bool{"override": v.overridable, "end": v.endRound} {
		if set {
			out = append(out, word)
		}
	}
	slices.Sort(out[min(len(out), 2):])
	return strings.Join(out, " ")
}

// TestGuardSameAction is ANTI_LOOP_SIGNATURE in both directions (decision 9).
func TestGuardSameAction(t *testing.T) {
	const refused = "ANTI_LOOP ANTI_LOOP_SIGNATURE override"
	one := func(calls ...func(s *story) regie.Call) func(s *story) {
		return func(s *story) {
			for _, call := range calls {
				s.batch(call(s))
			}
		}
	}
	done := func(name, argument string) func(s *story) regie.Call {
		return func(s *story) regie.Call { return s.done(name, argument, "written "+argument) }
	}
	for _, c := range []guardCase{
		{name: "the first time", tell: one(), tool: write},
		{name: "at once again", tell: one(done(write, "x")), tool: write, want: refused, says: []string{"reply 1 of this run", "written x", "ask the person"}},
		{name: "again after queries", tell: one(done(write, "x"), done(read, "x"), done(sum, "x")), tool: write, want: refused},
		{name: "again after what was not run", tell: one(done(write, "x"), func(s *story) regie.Call {
			return s.notRun(write, "x", regie.NotRunAntiLoop)
		}, func(s *story) regie.Call { return s.notRun(send, "y", regie.NotRunDenied) }), tool: write, want: refused},
		{name: "again after an action that could not be prepared", tell: one(done(write, "x"), func(s *story) regie.Call {
			call := s.failed(send, "y", true)
			call.StartedAt = time.Time{}
			return call
		}), tool: write, want: refused},
		{name: "after a summary of the conversation", tell: func(s *story) {
			s.batch(s.done(write, "x", "ok"))
			s.system(regie.SystemContextSummary)
		}, tool: write, want: refused},
		{name: "in another round that nobody's message began", tell: func(s *story) {
			s.batch(s.done(write, "x", "ok"))
			s.silentRound()
		}, tool: write, want: refused, says: []string{"in an earlier run"}},

		{name: "the same after another", tell: one(done(write, "x"), done(write, "y")), tool: write},
		{name: "the same after another tool", tell: one(done(write, "x"), done(send, "y")), tool: write},
		{name: "the same after another that failed", tell: one(done(write, "x"), func(s *story) regie.Call { return s.failed(send, "y", true) }), tool: write},
		{name: "the same after another of unknown outcome", tell: one(done(write, "x"), func(s *story) regie.Call { return s.unknown(write, "y") }), tool: write},
		{name: "after a message", tell: func(s *story) {
			s.batch(s.done(write, "x", "ok"))
			s.user()
		}, tool: write},
		{name: "in a new round", tell: func(s *story) {
			s.batch(s.done(write, "x", "ok"))
			s.newRound()
		}, tool: write},
		{name: "after a person's answer", tell: one(done(write, "x"), done(ask, "again?")), tool: write},
		{name: "after a question that nobody answered", tell: one(done(write, "x"), func(s *story) regie.Call { return s.notRun(ask, "again?", regie.NotRunExpired) }), tool: write, want: refused},
		{name: "after a task came back", tell: func(s *story) {
			s.batch(s.done(write, "x", "ok"))
			s.system(regie.SystemTaskResult)
		}, tool: write},
		{name: "after it was undone", tell: func(s *story) {
			s.batch(s.done(write, "x", "ok"))
			s.system(regie.SystemUndone)
		}, tool: write},
		{name: "after it failed", tell: one(func(s *story) regie.Call { return s.failed(write, "x", true) }), tool: write},
		{name: "after it succeeded and then failed", tell: one(done(write, "x"), func(s *story) regie.Call { return s.failed(write, "x", true) }), tool: write},
		{name: "after it was not run", tell: one(func(s *story) regie.Call { return s.notRun(write, "x", regie.NotRunInterrupted) }), tool: write},
		{name: "after it was denied", tell: one(func(s *story) regie.Call { return s.notRun(write, "x", regie.NotRunDenied) }), tool: write},

		{name: "an edited call is what ran", tell: one(func(s *story) regie.Call { return edited(s.done(write, "y", "ok"), "x") }), tool: write, want: refused},
		{name: "an edited call is not what was proposed", tell: one(func(s *story) regie.Call { return edited(s.done(write, "x", "ok"), "y") }), tool: write},

		{
			name: "behind another action of its reply", tell: one(done(write, "x")), tool: write,
			before: func(s *story) []regie.Call { return []regie.Call{s.made(read, "y"), s.made(write, "y")} },
		},
		{
			name: "behind an action of its reply that was refused", tell: one(done(write, "x")), tool: write, want: refused,
			before: func(s *story) []regie.Call {
				return []regie.Call{s.made(read, "y"), s.notRun(write, "y", regie.NotRunDenied), s.made(write, "x")}
			},
		},
	} {
		t.Run(c.name, c.check)
	}
}

// TestGuardCached is CACHED in both directions (decision 9).
func TestGuardCached(t *testing.T) {
	for _, c := range []guardCase{
		{name: "a cacheable query", tell: func(s *story) { s.batch(s.done(sum, "x", "42")) }, tool: sum, want: "CACHED", says: []string{"42"}},
		{name: "after other queries and a message", tell: func(s *story) {
			s.batch(s.done(sum, "x", "42"), s.done(read, "x", "text"))
			s.user()
		}, tool: sum, want: "CACHED"},
		{name: "after an action that was not run", tell: func(s *story) {
			s.batch(s.done(sum, "x", "42"), s.notRun(write, "x", regie.NotRunDenied))
		}, tool: sum, want: "CACHED"},
		{name: "from the newest answer", tell: func(s *story) {
			s.batch(s.done(sum, "x", "41"))
			s.batch(s.done(write, "x", "ok"))
			s.batch(s.done(sum, "x", "42"))
		}, tool: sum, want: "CACHED", says: []string{"42"}},

		{name: "a read of a file", tell: func(s *story) { s.batch(s.done(read, "x", "text")) }, tool: read},
		{name: "another question", tell: func(s *story) { s.batch(s.done(sum, "y", "42")) }, tool: sum},
		{name: "after an action", tell: func(s *story) { s.batch(s.done(sum, "x", "42"), s.done(write, "x", "ok")) }, tool: sum},
		{name: "after an action that failed", tell: func(s *story) { s.batch(s.done(sum, "x", "42"), s.failed(write, "x", true)) }, tool: sum},
		{name: "after one that failed", tell: func(s *story) { s.batch(s.failed(sum, "x", true)) }, tool: sum},
		{name: "in another round", tell: func(s *story) {
			s.batch(s.done(sum, "x", "42"))
			s.silentRound()
		}, tool: sum},
		{name: "later in another round", tell: func(s *story) {
			s.batch(s.done(sum, "x", "42"))
			s.silentRound()
			s.batch(s.done(sum, "y", "42"))
		}, tool: sum},
		{
			name: "behind an action of its reply", tell: func(s *story) { s.batch(s.done(sum, "x", "42")) }, tool: sum,
			before: func(s *story) []regie.Call { return []regie.Call{s.made(write, "y")} },
		},
	} {
		t.Run(c.name, c.check)
	}
}

// TestGuardRepeatedFailure is the rule of the same failing call in both directions (decision 30).
func TestGuardRepeatedFailure(t *testing.T) {
	const first, second = "REPEATED_FAILURE REPEATED_FAILURE", "REPEATED_FAILURE REPEATED_FAILURE end"
	for _, c := range []guardCase{
		{name: "the first repeat", tell: func(s *story) { s.batch(s.failed(write, "x", false)) }, tool: write, want: first, says: []string{"reply 1", "NO_PERMISSION: no permission for x", "the run ends if", " a"}},
		{name: "of a query, after other calls", tell: func(s *story) {
			s.batch(s.failed(read, "x", false))
			s.batch(s.done(write, "y", "ok"), s.done(read, "y", "text"))
		}, tool: read, want: first},
		{name: "the second repeat", tell: func(s *story) {
			s.batch(s.failed(write, "x", false))
			s.batch(s.notRun(write, "x", regie.NotRunRepeatedFailure))
		}, tool: write, want: second, says: []string{write, "third time"}},
		{name: "the second repeat, not in a row", tell: func(s *story) {
			s.batch(s.failed(write, "x", false))
			s.batch(s.notRun(write, "x", regie.NotRunRepeatedFailure), s.done(write, "y", "ok"))
			s.batch(s.failed(send, "x", false))
		}, tool: write, want: second},
		{name: "arguments that do not fit", tell: func(s *story) { s.batch(s.notRun(write, "x", regie.NotRunInvalid)) }, tool: write, want: first},
		{name: "a tool that is not there", tell: func(s *story) { s.batch(s.notRun(none, "x", regie.NotRunOutOfScope)) }, tool: none, want: first},
		{name: "arguments that never fit", tell: func(s *story) {
			s.batch(s.notRun(write, "x", regie.NotRunInvalid))
			s.batch(s.notRun(write, "x", regie.NotRunInvalid))
		}, tool: write, want: second},

		{name: "a failure that a retry gets over", tell: func(s *story) { s.batch(s.failed(write, "x", true)) }, tool: write},
		{name: "other arguments", tell: func(s *story) { s.batch(s.failed(write, "y", false)) }, tool: write},
		{name: "another tool", tell: func(s *story) { s.batch(s.failed(send, "x", false)) }, tool: write},
		{name: "in another round", tell: func(s *story) {
			s.batch(s.failed(write, "x", false))
			s.silentRound()
		}, tool: write},
		{name: "later in another round", tell: func(s *story) {
			s.batch(s.failed(write, "x", false))
			s.silentRound()
			s.batch(s.done(read, "x", "text"))
		}, tool: write},
		{name: "after a person's message", tell: func(s *story) {
			s.batch(s.failed(write, "x", false))
			s.user()
		}, tool: write},
		{name: "after it succeeded meanwhile", tell: func(s *story) {
			s.batch(s.failed(read, "x", false))
			s.batch(s.done(read, "x", "text"))
		}, tool: read},
		{name: "after it was denied twice", tell: func(s *story) {
			s.batch(s.notRun(write, "x", regie.NotRunDenied))
			s.batch(s.notRun(write, "x", regie.NotRunDenied))
		}, tool: write},
	} {
		t.Run(c.name, c.check)
	}
}

// TestGuardUnknown: a call whose like has no known outcome must be asked about, for the whole
// session (decision 5).
func TestGuardUnknown(t *testing.T) {
	for _, c := range []guardCase{
		{name: "the same", tell: func(s *story) { s.batch(s.unknown(send, "x")) }, tool: send, want: "ask"},
		{name: "the same in a later round", tell: func(s *story) {
			s.batch(s.unknown(send, "x"), s.notRun(write, "x", regie.NotRunInterrupted))
			s.newRound()
			s.batch(s.done(write, "x", "ok"))
		}, tool: send, want: "ask"},
		{name: "the same that was edited", tell: func(s *story) { s.batch(edited(s.unknown(send, "y"), "x")) }, tool: send, want: "ask"},
		{name: "the same after a repetition that succeeded", tell: func(s *story) {
			s.batch(s.unknown(send, "x"))
			s.batch(s.done(send, "x", "sent"))
			s.user()
		}, tool: send, want: "ask"},
		{name: "another", tell: func(s *story) { s.batch(s.unknown(send, "y")) }, tool: send},
		{name: "one that was edited into another", tell: func(s *story) { s.batch(edited(s.unknown(send, "x"), "y")) }, tool: send},
		{name: "one that a person has settled", tell: func(s *story) {
			call := s.unknown(send, "x")
			s.batch(call)
			call.State, call.Error = regie.CallFailed, &regie.CallError{Code: regie.CodeToolError, Message: "it did not happen", Retryable: true}
			s.batch(call)
		}, tool: send},
	} {
		t.Run(c.name, c.check)
	}
}
