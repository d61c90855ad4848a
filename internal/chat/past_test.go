package chat

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

// TestPast writes commands of a round that has ended: what a person has found out since, what was erased, and the last ones of very many calls.
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

// TestGreeting begins a chat with and without a model that is known.
func TestGreeting(t *testing.T) {
	for model, want := range map[string]string{
		"":      "main in /work. /help lists what you can type, Ctrl-D leaves.",
		"small": "main in /work, model small. /help lists what you can type, Ctrl-D leaves.",
	} {
		var c Chat
		c.Text = text.New("en")
		c.Request.Agent, c.Request.Root, c.Request.Model = "main", "/work", model
		if got := c.greeting(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
