package wiretest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Golden holds JSON to a file below testdata, where it is broken into lines to be read; -update
// writes it anew.
func Golden(tb testing.TB, name string, got []byte) {
	tb.Helper()
	var lines bytes.Buffer
	if err := json.Indent(&lines, got, "", "  "); err != nil {
		tb.Fatalf("%s: %v in %s", name, err, got)
	}
	lines.WriteByte('\n')
	file := filepath.Join("testdata", name+".json")
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700),
			os.WriteFile(file, lines.Bytes(), 0o600)); err != nil {
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(string(want), lines.String()); diff != "" {
		tb.Errorf("%s (-update writes it anew), -want +got:\n%s", name, diff)
	}
}

// Streams holds what a codec makes of each recorded stream, whole, to a file in testdata/replies:
// the reply with its calls, arguments, usage and stop reason, or the error. A stream that is cut
// after any byte gives no reply: no half call ever runs (spec 12.6, trap 1). asker returns a
// function that sends one request to a server that answers with a stream.
func Streams(t *testing.T, asker func(*testing.T) func(stream string) (*provider.Reply, error), patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		for name, data := range Recorded(t, pattern) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ask := asker(t)
				Golden(t, filepath.Join("replies", name), decoded(t, ask, data))
				for cut := range len(bytes.TrimRight(data, "\n")) {
					if reply, err := ask(string(data[:cut])); reply != nil || err == nil {
						t.Fatalf("cut after %d of %d bytes: %+v", cut, len(data), reply)
					}
				}
			})
		}
	}
}

func decoded(tb testing.TB, ask func(stream string) (*provider.Reply, error), stream []byte) []byte {
	tb.Helper()
	type failure struct {
		Code      regie.Code  `json:"code"`
		Retryable bool        `json:"retryable"`
		Message   string      `json:"message"`
		Partial   string      `json:"partial"`
		Usage     regie.Usage `json:"usage"`
	}
	var out struct {
		Reply *provider.Reply `json:"reply,omitempty"`
		Error *failure        `json:"error,omitempty"`
	}
	reply, err := ask(string(stream))
	out.Reply = reply
	if err != nil {
		failed, ok := errors.AsType[*provider.Error](err)
		if !ok || reply != nil {
			tb.Fatalf("%v, %v", reply, err)
		}
		out.Error = &failure{failed.Code, failed.Retryable, failed.Message, failed.Partial, failed.Usage}
	}
	got, err := json.Marshal(out)
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

func text(s string) provider.Part { return provider.Part{Type: regie.PartText, Text: s} }

// Said is a turn of one text.
func Said(role provider.Role, s string) provider.Turn {
	return provider.Turn{Role: role, Parts: []provider.Part{text(s)}}
}

func called(id, name, arguments string) provider.Part {
	return provider.Part{Type: regie.PartCall, Call: &provider.Call{ID: id, Name: name, Arguments: arguments}}
}

// Head declares two tools and says all that a golden request can show.
func Head(model string) provider.Head {
	return provider.Head{
		Model: model, Level1: "You are.", Level2: "They are.", MaxOutput: 2000, ReasoningEffort: "medium",
		Tools: []provider.Tool{
			{Name: "files__list_files", Description: "List.", Parameters: json.RawMessage(`{"type":"object"}`)},
			{
				Name: "files__read_file", Description: "Read.",
				Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`),
			},
		},
	}
}

// Thread is one thread with all that vendors differ in: thinking of their own, which own makes, and
// of others, two calls at once, a call that failed, a person who speaks between a result and the
// next reply, two replies and two messages in a row.
func Thread(own func(text string) provider.Part) []provider.Turn {
	foreign := provider.Part{Type: regie.PartThinking, Text: "Nothing.", Provider: "elsewhere"}
	return []provider.Turn{
		Said(provider.RoleUser, "What is in notes/?"),
		{Role: provider.RoleAssistant, Parts: []provider.Part{
			own("I look and I read."), text("I look."), called("call_1", "files__list_files", `{"path":"notes"}`),
			called("abcDEF123", "files__read_file", `{"path":"é.md"}`),
		}},
		{Role: provider.RoleTool, Results: []provider.Result{
			{CallID: "call_1", Content: "a.md"},
			{CallID: "abcDEF123", Content: "there is no é.md", IsError: true},
		}},
		{Role: provider.RoleAssistant, Parts: []provider.Part{called("call_01a1fd57-6d04-72ce-bd06-a3e1e4eaf8989999",
			"files__read_file", `{"path":"a.md"}`)}},
		{Role: provider.RoleTool, Results: []provider.Result{
			{CallID: "call_01a1fd57-6d04-72ce-bd06-a3e1e4eaf8989999", Content: "one \"line\""},
		}},
		{Role: provider.RoleAssistant, Parts: []provider.Part{own("That is all."), text("One line.")}},
		Said(provider.RoleUser, "And now?"),
		{Role: provider.RoleAssistant, Parts: []provider.Part{foreign, text("Nothing.")}},
		Said(provider.RoleAssistant, "Still nothing."),
		Said(provider.RoleUser, "Look again,"),
		Said(provider.RoleUser, "please."),
		{Role: provider.RoleAssistant, Parts: []provider.Part{called("last", "files__list_files", `{}`)}},
		{Role: provider.RoleTool, Results: []provider.Result{{CallID: "last", Content: ""}}},
		Said(provider.RoleUser, "Stop that."),
	}
}
