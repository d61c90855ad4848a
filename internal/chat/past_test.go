package chat

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

// TestPast writes commands of a round that has ended: what a person has found out since, what was
// erased, and the last ones of very many calls.
func TestPast(t *testing.T) {
	unknown := regie.CallError{Code: regie.CodeOutcomeUnknown, Message: "nobody knows"}
	command := func(call regie.Call) []store.ExchangeView {
		call.Tool, call.Arguments = "shell.shell_exec", `{"command": "make"}`
		return []store.ExchangeView{{Exchange: regie.Exchange{Reason: regie.ExchangeCommand}, Calls: []regie.Call{call}}}
	}
	many := make([]regie.Call, maxPastCalls+5)
	for i := range many {
		many[i] = regie.Call{Tool: "files.read_file", State: regie.CallSucceeded}
	}
	over := make([]regie.Call, 10)
	for i := range over {
		over[i] = regie.Call{Tool: "files.read_file", State: regie.CallNotRun, NotRun: regie.NotRunOverLimit}
	}
	for name, c := range map[string]struct {
		exchanges []store.ExchangeView
		round     regie.Round
		want      []string
	}{
		"failed": {exchanges: command(regie.Call{State: regie.CallSucceeded, Result: regie.CommandExit + "2\n"}), want: []string{"  ✗ shell.shell_exec make 0.0 ms  exit code 2", "  │ exit code: 2"}},
		"worked": {exchanges: command(regie.Call{State: regie.CallSucceeded, Result: regie.CommandExit + "0\n"}), want: []string{"  ✓ shell.shell_exec make 0.0 ms", "  │ exit code: 0"}},
		"erased": {exchanges: command(regie.Call{State: regie.CallSucceeded}), want: []string{"  (1 call: regie runs show )"}},
		"happened": {
			exchanges: command(regie.Call{State: regie.CallSucceeded, Error: &unknown, Resolution: &regie.Resolution{As: regie.ResolvedHappened, By: "ada"}}),
			want:      []string{"  ✓ shell.shell_exec make 0.0 ms (ada found out: happened)"},
		},
		"did not happen": {
			exchanges: command(regie.Call{State: regie.CallFailed, Error: &unknown, Resolution: &regie.Resolution{As: regie.ResolvedDidNotHappen, By: "ada"}}),
			want:      []string{"  ✗ shell.shell_exec make 0.0 ms (ada found out: did_not_happen)"},
		},
		"open": {exchanges: command(regie.Call{State: regie.CallStarted})},
		"many": {
			exchanges: []store.ExchangeView{{Calls: many[:4]}, {Calls: many[4:]}},
			want:      append([]string{"  (calls before these: 5; regie runs show )"}, slices.Repeat([]string{"  ✓ files.read_file 0.0 ms"}, maxPastCalls)...),
		},
		"over the limit": {
			exchanges: []store.ExchangeView{{Calls: over}}, round: regie.Round{State: regie.RoundEnded, End: regie.EndInterrupted},
			want: append(slices.Repeat([]string{"  – files.read_file 0.0 ms OVER_LIMIT"}, maxOverLimit), "  – and more calls over the limit: 7", "interrupted"),
		},
	} {
		var out bytes.Buffer
		s := Stream{Out: &out, Err: &out, Text: text.New("en")}
		s.Past(&Past{Rounds: []store.RoundView{{Round: c.round, Exchanges: c.exchanges}}})
		want := ""
		if len(c.want) > 0 {
			want = strings.Join(c.want, "\n") + "\n"
		}
		if got := out.String(); got != want {
			t.Errorf("%s:\n%swant:\n%s", name, got, want)
		}
	}
}

// TestPastNumbers: what a message named has a number in a chat that is opened again, before the
// calls of the model, as it had when it ran.
func TestPastNumbers(t *testing.T) {
	named := regie.Call{ID: regie.NewID(), Tool: "files.read_file", Arguments: `{"path": "a"}`, State: regie.CallSucceeded}
	called := regie.Call{ID: regie.NewID(), Tool: "files.write_file", Arguments: `{"path": "b"}`, State: regie.CallSucceeded}
	view := store.RoundView{Enrichments: []store.EnrichmentView{{Calls: []regie.Call{named}}}, Exchanges: []store.ExchangeView{{Calls: []regie.Call{called}}}}
	var out bytes.Buffer
	var calls Calls
	calls.Past(&view)
	s := Stream{Out: &out, Err: &out, Text: text.New("en"), Mark: calls.Mark}
	s.Past(&Past{Rounds: []store.RoundView{view}})
	if got, want := out.String(), "  ✓ files.read_file a 0.0 ms  [1]\n  ✓ files.write_file b 0.0 ms  [2]\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestGreeting begins a chat with and without a model that is known.
func TestGreeting(t *testing.T) {
	for model, want := range map[string]string{
		"":      "main in /work. /help lists what you can type, Ctrl-D leaves.",
		"small": "main in /work, model small. /help lists what you can type, Ctrl-D leaves.",
	} {
		c := Chat{Conversation: &Conversation{}}
		c.Text = text.New("en")
		c.Request.Agent, c.Request.Root, c.Request.Model = "main", "/work", model
		if got := c.greeting(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestPastFork writes what a fork was made from: what had been taken back there does not read as if
// it counted.
func TestPastFork(t *testing.T) {
	copied := &regie.Copied{}
	user := func(text string, gone bool) store.MessageView {
		return store.MessageView{Message: regie.Message{Sender: regie.SenderUser, Text: text, Copied: copied}, Superseded: gone}
	}
	reply := func(text string, gone bool) store.MessageView {
		m := regie.Message{Sender: regie.SenderAI, AI: &regie.AIReply{Parts: []regie.Part{{Type: regie.PartText, Text: text}}}, Copied: copied}
		return store.MessageView{Message: m, Superseded: gone}
	}
	view := store.SessionView{Thread: []store.MessageView{user("one", false), reply("First.", false), user("wrong", true), reply("Done.", true), user("two", false), reply("Second.", false)}}
	view.ForkedFrom = &regie.ForkPoint{Seq: 9}
	var out bytes.Buffer
	s := Stream{Out: &out, Err: &out, Text: text.New("en")}
	s.Past(&Past{View: view, most: 2})
	_, got, _ := strings.Cut(out.String(), "\n") // where it was forked
	if want := "› one\nFirst.\n  (taken back before the fork: 2 messages)\n› two\nSecond.\n"; got != want {
		t.Errorf("\n%swant:\n%s", got, want)
	}
}

// TestPastForkCalls numbers the calls that a fork has of what it was forked from, and unfolds them:
// no round of its own has them.
func TestPastForkCalls(t *testing.T) {
	call := regie.Call{ID: regie.NewID(), RoundID: regie.NewID(), Tool: "files.read_file", State: regie.CallSucceeded, Result: "what was read"}
	gone := regie.Call{ID: regie.NewID(), RoundID: call.RoundID, Tool: "files.read_file", State: regie.CallSucceeded, Result: "what was taken back"}
	message := func(superseded bool, calls ...regie.Call) store.MessageView {
		return store.MessageView{Message: regie.Message{Sender: regie.SenderAI, AI: &regie.AIReply{}, Copied: &regie.Copied{}}, Superseded: superseded, Calls: calls}
	}
	view := store.SessionView{Thread: []store.MessageView{message(true, gone), message(false, call)}}
	view.ForkedFrom = &regie.ForkPoint{Seq: 9}
	var calls Calls
	past := Past{View: view, most: 2}
	calls.Copies(&past)
	var out bytes.Buffer
	s := Stream{Out: &out, Err: &out, Text: text.New("en"), Mark: calls.Mark}
	s.Past(&past)
	if !strings.Contains(out.String(), "[1]") || calls.Mark(gone.ID) != "" {
		t.Errorf("it has no number: %s", out.String())
	}
	found, err := calls.Read(1)(t.Context(), nil)
	if err != nil || found.Result != "what was read" {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestPastMessages writes what was said during a round where it stood, what a stop gave back, and
// what a reply had said that was cut off.
func TestPastMessages(t *testing.T) {
	round, first := regie.NewID(), regie.NewID()
	message := func(m regie.Message) store.MessageView {
		m.RoundID = round
		return store.MessageView{Message: m}
	}
	reply := func(text string) *regie.Message {
		return &regie.Message{ID: regie.NewID(), RoundID: round, Sender: regie.SenderAI, AI: &regie.AIReply{Parts: []regie.Part{{Type: regie.PartText, Text: text}}}}
	}
	trigger := regie.Message{ID: first, RoundID: round, Sender: regie.SenderUser, Text: "go"}
	one, two := reply("I look."), reply("I see.")
	for name, c := range map[string]struct {
		thread []store.MessageView
		view   store.RoundView
		back   []Queued
		want   string
	}{
		"queued together": {
			thread: []store.MessageView{message(trigger), message(regie.Message{ID: regie.NewID(), Sender: regie.SenderUser, Text: "and this"}), message(*one)},
			view:   store.RoundView{Exchanges: []store.ExchangeView{{Reply: one}}},
			want:   "› go\n› and this\nI look.\n",
		},
		"steered": {
			thread: []store.MessageView{message(trigger), message(*one), message(regie.Message{ID: regie.NewID(), Sender: regie.SenderUser, Text: "no,\nthat"}), message(*two)},
			view: store.RoundView{Exchanges: []store.ExchangeView{
				{Reply: one, Calls: []regie.Call{{Tool: "files.read_file", State: regie.CallSucceeded}}}, {Reply: two},
			}},
			want: "› go\nI look.\n  ✓ files.read_file 0.0 ms\n› no,\n  that\nI see.\n",
		},
		"steered at the end, and said after the actions": {
			thread: []store.MessageView{
				message(trigger), message(*one), message(regie.Message{ID: regie.NewID(), Sender: regie.SenderAI, Text: "All is done."}),
				message(regie.Message{ID: regie.NewID(), Sender: regie.SenderUser, Text: "stop"}),
			},
			view: store.RoundView{Exchanges: []store.ExchangeView{{Reply: one}}, Round: regie.Round{State: regie.RoundEnded, End: regie.EndInterrupted}},
			want: "› go\nI look.\nAll is done.\n› stop\ninterrupted\n",
		},
		"not for the model": {
			thread: []store.MessageView{message(trigger), message(regie.Message{ID: regie.NewID(), Sender: regie.SenderUser, Text: "aside", ExcludeFromPrompt: true}), message(*one)},
			view:   store.RoundView{Exchanges: []store.ExchangeView{{Reply: one}}},
			want:   "› go\nI look.\n",
		},
		"cut off": {
			thread: []store.MessageView{message(trigger)},
			view: store.RoundView{
				Exchanges: []store.ExchangeView{{Attempts: []regie.Attempt{{Partial: "lost"}, {Partial: "now writing\x1b[2J"}}}},
				Round:     regie.Round{State: regie.RoundEnded, End: regie.EndInterrupted},
			},
			want: "› go\nnow writing\ninterrupted\n",
		},
		"tried again": {
			thread: []store.MessageView{message(trigger), message(*one)},
			view:   store.RoundView{Exchanges: []store.ExchangeView{{Attempts: []regie.Attempt{{Partial: "lost"}}, Reply: one}}},
			want:   "› go\nI look.\n",
		},
		"given back": {
			thread: []store.MessageView{message(trigger)},
			view:   store.RoundView{Round: regie.Round{State: regie.RoundEnded, End: regie.EndStopped}},
			back:   []Queued{{regie.NewID(), "later"}},
			want:   "› go\nnot sent, the agent never read it:\n› later\nstopped\n",
		},
	} {
		var out bytes.Buffer
		s := Stream{Out: &out, Err: &out, Text: text.New("en")}
		c.view.Trigger, c.view.Round.ID = &trigger, round
		s.Past(&Past{View: store.SessionView{Thread: c.thread}, Rounds: []store.RoundView{c.view}, back: map[regie.ID][]Queued{round: c.back}})
		if got := out.String(); got != c.want {
			t.Errorf("%s:\n%swant:\n%s", name, got, c.want)
		}
	}
}

// TestAsTheyCame has calls in the order of their results, as who was there saw them: what needed
// nothing to fail came before what was read.
func TestAsTheyCame(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	calls := []regie.Call{
		{Tool: "read", State: regie.CallSucceeded, SettledAt: at(2)},
		{Tool: "waits", State: regie.CallProposed},
		{Tool: "list", State: regie.CallSucceeded, SettledAt: at(2)},
		{Tool: "none", State: regie.CallNotRun, SettledAt: at(1)},
	}
	var order []string
	for _, call := range asTheyCame(calls) {
		order = append(order, call.Tool)
	}
	if got := strings.Join(order, " "); got != "none read list waits" || calls[0].Tool != "read" {
		t.Errorf("%s, and what was given is changed: %v", got, calls[0].Tool != "read")
	}
}
