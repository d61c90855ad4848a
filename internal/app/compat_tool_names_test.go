package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/compat"
)

// TestCompatToolNames has a model call a client's tool by the name that its client gave it. What is
// stored has the canonical name.
func TestCompatToolNames(t *testing.T) {
	t.Parallel()
	m := newModel(t,
		replyWith("", call{"x", "get_wether", `{"place":"Bern"}`}),
		replyWith("", call{"w", "get_weather", `{"place":"Bern"}`}),
		replyWith("Sun."), replyWith("More."))
	d := newHarness(t, m).door()
	messages := []any{message("user", "weather?")}
	first := d.chat(map[string]any{"messages": messages, "tools": weather}, nil)
	c := first.Choices[0]
	if len(c.Message.ToolCalls) != 1 || c.Message.ToolCalls[0].Function.Name != "get_weather" {
		t.Fatalf("%s", first.body)
	}
	if asked := m.last(); !strings.Contains(asked, `"name":"get_weather"`) || !strings.Contains(asked, "did you mean get_weather?") ||
		strings.Contains(asked, "client_") || strings.Contains(asked, "client.") {
		t.Errorf("%s", asked)
	}
	messages = append(messages, map[string]any{"role": "assistant", "tool_calls": c.Message.ToolCalls},
		map[string]any{"role": "tool", "tool_call_id": c.Message.ToolCalls[0].ID, "content": "sun"})
	if second := d.chat(map[string]any{"messages": messages, "tools": weather}, nil); second.Choices[0].Message.Content != "Sun." {
		t.Errorf("%s", second.body)
	}
	// A request without the tool shows the same thread.
	third := d.chat(map[string]any{"messages": []any{message("user", "more")}}, header{compat.HeaderSession: first.header.Get(compat.HeaderSession)})
	if !strings.Contains(m.last(), `"name":"get_weather"`) {
		t.Errorf("%s", m.last())
	}
	view := d.session(third)
	var names []string
	for _, entry := range view.Thread {
		for _, call := range entry.Calls {
			if call.State == regie.CallSucceeded {
				names = append(names, call.Tool)
			}
		}
	}
	if strings.Join(names, " ") != "client.get_weather" {
		t.Errorf("stored: %v", names)
	}
	d.rebuilds(view)
}

// TestMessagesContextLast has an application speak behind the results of its tools: the session
// goes on, and the model reads it.
func TestMessagesContextLast(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("", call{"w", "get_weather", `{}`}), replyWith("Sun."))
	d := newHarness(t, m).door()
	const head = `{"model":"main","max_tokens":9,"tools":[{"name":"get_weather","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"weather?"}`
	first := d.do(http.MethodPost, passMessages, head+`]}`, nil)
	_, id, _ := strings.Cut(first.body, `"id":"call_`)
	id, _, _ = strings.Cut(id, `"`)
	second := d.do(http.MethodPost, passMessages, head+`,{"role":"assistant","content":[{"type":"tool_use","id":"call_`+id+`","name":"get_weather","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_`+id+`","content":"sun"}]},{"role":"system","content":"It is noon."}]}`, nil)
	if second.status != http.StatusOK || second.header.Get(compat.HeaderSession) != first.header.Get(compat.HeaderSession) || !strings.Contains(second.body, "Sun.") {
		t.Fatalf("%d %s", second.status, second.body)
	}
	if asked := m.last(); !strings.Contains(asked, "[CLIENT_CONTEXT]") || strings.Index(asked, "It is noon.") < strings.Index(asked, `"sun"`) {
		t.Errorf("%s", asked)
	}
	d.rebuilds(d.session(second))
}
