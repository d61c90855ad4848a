package ollama_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/ollama"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// asker sends requests to a server that answers with what it is given.
func asker(t *testing.T) func(stream string) (*provider.Reply, error) {
	t.Helper()
	return wiretest.Asker(t, "m", "/api/chat", "application/x-ndjson", func(address string) (provider.Provider, error) {
		return ollama.New(ollama.Config{Name: "test", BaseURL: address})
	})
}

func ask(t *testing.T, stream string) (*provider.Reply, error) {
	t.Helper()
	return asker(t)(stream)
}

func user(text string) provider.Turn {
	return provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: text}}}
}

func sketch(reply *provider.Reply) string {
	var out []string
	for _, part := range reply.Parts {
		switch part.Type {
		case regie.PartCall:
			out = append(out, fmt.Sprintf("%s %s(%s)", part.Call.ID, part.Call.Name, part.Call.Arguments))
		default:
			out = append(out, fmt.Sprintf("%s:%s", part.Type, part.Text))
		}
	}
	return strings.Join(out, " ") + fmt.Sprintf(" [%s %d/%d]", reply.StopReason, reply.Usage.Input, reply.Usage.Output)
}

func TestTraps(t *testing.T) {
	const done = `{"message":{"content":""},"done":true}`
	call := func(id, name, arguments string) string {
		return `{"message":{"tool_calls":[{` + id + `"function":{"name":"` + name + `","arguments":` + arguments + `}}]},"done":false}`
	}
	for name, c := range map[string]struct{ stream, want string }{
		"no ids":                   {call("", "f", `{"x":1}`) + "\n" + call("", "g", `{}`) + "\n" + done, ` f({"x":1})  g({})`},
		"several in one line":      {`{"message":{"tool_calls":[{"function":{"name":"f","arguments":{}}},{"function":{"name":"g","arguments":{"a":"b"}}}]}}` + "\n" + done, ` f({})  g({"a":"b"})`},
		"calls in the last line":   {`{"message":{"tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done":true,"done_reason":"stop"}`, " f({}) [stop"},
		"arguments as a string":    {call("", "f", `"{\"x\":1}"`) + "\n" + done, `f({"x":1})`},
		"no arguments":             {call("", "f", `null`) + "\n" + done, `f({})`},
		"blank lines, CRLF":        {"\r\n" + `{"message":{"content":"a"}}` + "\r\n\r\n" + done + "\r\n", "text:a [stop 0/0]"},
		"one object, not a stream": {`{"message":{"content":"a","thinking":"t"},"done":true,"done_reason":"stop","prompt_eval_count":4,"eval_count":2}`, "thinking:t text:a [stop 4/2]"},
		"a long line":              {`{"message":{"content":"` + strings.Repeat("x", 300_000) + `"}}` + "\n" + done, "text:xxx"},
		"NUL and bad bytes":        {`{"message":{"content":"a\u0000b` + "\xff" + `"}}` + "\n" + done, "text:a\uFFFDb\uFFFD"},
		"counts that are none":     {`{"message":{"content":"a"},"done":true,"done_reason":"stop","prompt_eval_count":"x","eval_count":1.5}`, "text:a [stop 0/0]"},
		"counts beyond reason":     {`{"message":{"content":"a"},"done":true,"done_reason":"stop","prompt_eval_count":-7,"eval_count":9223372036854775807}`, "text:a [stop 0/1099511627776]"},
		"cut at its limit":         {`{"message":{"content":"a"},"done":true,"done_reason":"length"}`, "text:a [length"},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := ask(t, c.stream)
			if err != nil {
				t.Fatal(err)
			}
			if got := sketch(reply); !strings.Contains(got, c.want) {
				t.Errorf("got %.300s, want %s", got, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		stream string
		code   regie.Code
	}{
		"never done":            {call("", "f", `{}`) + "\n", regie.CodeTruncatedStream},
		"arguments are a list":  {call("", "f", `[]`) + "\n" + done, regie.CodeBadReply},
		"half a string":         {call("", "f", `"{\"x\":"`) + "\n" + done, regie.CodeBadReply},
		"garbage":               {"<html>\n", regie.CodeBadReply},
		"an error in the midst": {`{"message":{"content":"a"}}` + "\n" + `{"error":"an error was encountered while running the model: unexpected EOF"}` + "\n", regie.CodeProviderBusy},
		"a call it cannot read": {`{"error":"error parsing tool call: raw='{' err=unexpected end of JSON input"}` + "\n", regie.CodeBadReply},
		"a line without end":    {`{"message":{"content":"` + strings.Repeat("x", 9<<20), regie.CodeReplyTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := ask(t, c.stream)
			if failed, ok := errors.AsType[*provider.Error](err); reply != nil || !ok || failed.Code != c.code {
				t.Errorf("got %v, %v, want %s", reply, err, c.code)
			}
		})
	}
}

// TestRequest is a thread as it goes over the wire: one system message, results that name their
// tool, own thinking beside calls only.
func TestRequest(t *testing.T) {
	warm := 0.5
	r := ollama.NewRequest(provider.Head{
		Model: "m", Level1: "You are.", Level2: "They are.", MaxOutput: 100_000, Temperature: &warm,
		Tools: []provider.Tool{{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)}},
	}, ollama.Options{Context: 32768, KeepAlive: "10m"})
	thinking := func(who, text string) provider.Part {
		return provider.Part{Type: regie.PartThinking, Provider: who, Text: text}
	}
	r.Append(user("go"),
		provider.Turn{Role: provider.RoleAssistant, Parts: []provider.Part{
			thinking("ollama", "hm"), thinking("anthropic", "not yours"),
			{Type: regie.PartText, Text: "I look."},
			{Type: regie.PartCall, Call: &provider.Call{ID: "a", Name: "f", Arguments: `{"x": 1}`}},
			{Type: regie.PartCall, Call: &provider.Call{ID: "b", Name: "g", Arguments: "no"}},
		}},
		provider.Turn{Role: provider.RoleTool, Results: []provider.Result{{CallID: "a", Content: "é"}, {CallID: "b", Content: "", IsError: true}}},
		provider.Turn{Role: provider.RoleAssistant, Parts: []provider.Part{thinking("ollama", "old"), {Type: regie.PartText, Text: "Done."}}}, user("more"))
	want := `{"model":"m","stream":true,"keep_alive":"10m",` +
		`"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}],"messages":[` +
		`{"role":"system","content":"You are.\n\nThey are."},{"role":"user","content":"go"},` +
		`{"role":"assistant","content":"I look.","thinking":"hm","tool_calls":[{"id":"a","function":{"index":0,"name":"f","arguments":{"x": 1}}},{"id":"b","function":{"index":1,"name":"g","arguments":{}}}]},` +
		`{"role":"tool","content":"é","tool_name":"f","tool_call_id":"a"},{"role":"tool","content":"","tool_name":"g","tool_call_id":"b"},` +
		`{"role":"assistant","content":"Done."},{"role":"user","content":"more"}],"options":{"num_predict":16384,"num_ctx":32768,"temperature":0.5}}`
	if diff := cmp.Diff(want, string(r.Body())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := strict.Ollama(r.Body()); err != nil {
		t.Error(err)
	}
	for old, wrong := range map[string]string{
		`"tool_name":"g"`: `"tool_name":"f"`, `"role":"user","content":"more"`: `"role":"assistant","content":"more"`, `"num_predict":16384`: `"num_predict":0`,
		`{"role":"tool","content":"","tool_name":"g","tool_call_id":"b"},`: ``, `"arguments":{}`: `"arguments":"{}"`, `"model":"m"`: `"model":""`,
		`"stream":true`: `"stream":true,"stream":true`, `"content":"go"`: `"content":""`, `"num_ctx":32768`: `"num_ctx":16384`,
	} {
		if !strings.Contains(want, old) || strict.Ollama([]byte(strings.Replace(want, old, wrong, 1))) == nil {
			t.Errorf("%s in place of %s was taken", wrong, old)
		}
	}
}

// TestWhatAModelCan asks the server, once, and keeps within what the model has.
func TestWhatAModelCan(t *testing.T) {
	asked, answer := 0, `{"capabilities":["completion","tools"],"model_info":{"llama.context_length":8192}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		if answer == "" {
			http.Error(w, `{"error":"model 'm' not found"}`, http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	made := func(context int) *ollama.Provider {
		p, err := ollama.New(ollama.Config{Name: "ollama", BaseURL: server.URL, Context: context})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := made(0)
	if c := p.Capabilities("m"); !c.NativeTools || c.Thinking || c.ContextTokens != 8192 || p.Capabilities("m") != c || asked != 1 {
		t.Errorf("%+v, asked %d times", c, asked)
	}
	if c := made(4096).Capabilities("m"); c.ContextTokens != 4096 {
		t.Errorf("the setting: %+v", c)
	}
	answer = `{"capabilities":["completion","thinking"],"model_info":{"a.context_length":1000000}}`
	if c := made(0).Capabilities("m"); c.NativeTools || !c.Thinking || c.ContextTokens != ollama.DefaultContext {
		t.Errorf("a model without tools: %+v", c)
	}
	answer = ""
	before := asked
	p = made(0)
	if first, second := p.Capabilities("m"), p.Capabilities("m"); !first.NativeTools || second != first || asked != before+2 {
		t.Error("what is not known is assumed, and asked again")
	}
}

// TestWhatToDo: errors that need something done say what.
func TestWhatToDo(t *testing.T) {
	for said, want := range map[string]string{"model 'm' not found": "ollama pull", "m does not support tools": "--dialect json"} {
		status := http.StatusNotFound
		if strings.Contains(said, "tools") {
			status = http.StatusBadRequest
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":"`+said+`"}`, status)
		}))
		p, err := ollama.New(ollama.Config{BaseURL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.Open(provider.Head{Model: "m", MaxOutput: 1})
		if err != nil {
			t.Fatal(err)
		}
		c.Append(user("go"))
		if _, err := c.Send(t.Context(), nil); provider.CodeOf(err) != regie.CodeProviderRejected || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", said, err)
		}
		server.Close()
	}
}
