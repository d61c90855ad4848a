package compat

import (
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestParseMessages refuses what would be silently wrong, with the parameter named.
func TestParseMessages(t *testing.T) {
	const hi = `"model":"main","max_tokens":9,"messages":[{"role":"user","content":"hi"}]`
	content := func(role, blocks string) string {
		return `{"model":"main","messages":[{"role":"` + role + `","content":` + blocks + `}]}`
	}
	for body, param := range map[string]string{
		`{` + hi + `,"stop_sequences":["x"]}`:                                                      "stop_sequences",
		`{` + hi + `,"output_config":{"format":{"type":"json_schema"}}}`:                           "output_config.format",
		`{` + hi + `,"output_format":{"type":"json_schema"}}`:                                      "output_format",
		`{` + hi + `,"container":"c"}`:                                                             "container",
		`{` + hi + `,"mcp_servers":[{"url":"x"}]}`:                                                 "mcp_servers",
		`{` + hi + `,"inference_geo":"us"}`:                                                        "inference_geo",
		`{` + hi + `,"tool_choice":{"type":"any"}}`:                                                "tool_choice.type",
		`{` + hi + `,"tool_choice":{"type":"tool","name":"f"}}`:                                    "tool_choice.type",
		`{` + hi + `,"tool_choice":"auto"}`:                                                        "tool_choice",
		`{` + hi + `,"tools":[{"type":"web_search_20250305","name":"w"}]}`:                         "tools[0].type",
		`{` + hi + `,"tools":[{"name":"a b"}]}`:                                                    "tools[0].name",
		`{` + hi + `,"tools":[{"name":"a"},{"name":"a"}]}`:                                         "tools[1].name",
		`{` + hi + `,"metadata":{"user_id":1}}`:                                                    "metadata.user_id",
		`{` + hi + `,"system":[{"type":"image"}]}`:                                                 "system[0].type",
		`{` + hi + `,"system":7}`:                                                                  "system",
		`{` + hi + `,"max_tokens":1}`:                                                              "max_tokens",
		`{"model":"main","messages":[]}`:                                                           "messages",
		`{"model":"main","messages":[` + strings.Repeat(`{},`, maxMessages) + `{}]}`:               "messages",
		`{"messages":[{"role":"user","content":"hi"}]}`:                                            "model",
		content("tool", `"x"`):                                                                     "messages[0].role",
		content("user", `" "`):                                                                     "messages[0].content",
		content("user", `[]`):                                                                      "messages[0].content",
		content("user", `7`):                                                                       "messages[0].content",
		content("user", `[7]`):                                                                     "messages[0].content",
		content("user", `[{"type":"text","text":7}]`):                                              "messages[0].content",
		content("user", `[{"type":"text","text":"a"},{"type":"image"}]`):                           "messages[0].content[1].type",
		content("user", `[{"type":"document"}]`):                                                   "messages[0].content[0].type",
		content("user", `[{"type":"tool_use","id":"a","name":"f","input":{}}]`):                    "messages[0].content[0].type",
		content("user", `[{"type":"thinking","thinking":"hm"}]`):                                   "messages[0].content[0].type",
		content("user", `[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"a"}]`):   "messages[0].content[1]",
		content("user", `[{"type":"tool_result","tool_use_id":"a","content":[{"type":"audio"}]}]`): "messages[0].content[0].content[0].type",
		content("assistant", `[{"type":"tool_use","id":"a","name":"f","input":"{}"}]`):             "messages[0].content[0].input",
		content("assistant", `[{"type":"tool_use","id":"a","name":"f"}]`):                          "messages[0].content[0].input",
		content("assistant", `[{"type":"tool_use","id":"a","name":"f g","input":{}}]`):             "messages[0]",
		content("assistant", `[{"type":"server_tool_use","id":"a","name":"f","input":{}}]`):        "messages[0].content[0].type",
		content("assistant", `[{"type":"tool_result","tool_use_id":"a"}]`):                         "messages[0].content[0].type",
		`[]`:                   "",
		``:                     "",
		`{` + hi + `} x`:       "",
		"{\"model\":\"\xff\"}": "",
	} {
		_, err := parseMessages([]byte(body))
		if err == nil || paramOf(err) != param || regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%.200s: %v (param %q, want %q)", body, err, paramOf(err), param)
		}
	}
}

// TestReadMessages is what a conversation of an Anthropic client becomes.
func TestReadMessages(t *testing.T) {
	a, err := parseMessages([]byte(`{"model":"main","max_tokens":9,"stream":true,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Be kind."}],
		"metadata":{"user_id":"u","session_id":"s"},"thinking":{"type":"adaptive"},"output_config":{"effort":"low","format":null},"stop_sequences":[],"top_k":5,
		"tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"strict":true},{"type":"custom","name":"g","input_schema":{}}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true},
		"messages":[{"role":"user","content":"hi"},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"f","input":{"p": 1}},{"type":"tool_use","id":"b","name":"g","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"no"},{"type":"text","text":"way"}]},{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"and"},{"type":"text","text":"now?"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(a.ignored, " ") != "max_tokens thinking top_k" || len(a.tools) != 2 || string(a.tools[0].Parameters) != `{"type":"object"}` || !a.oneCall ||
		a.effort != "low" || !a.stream || a.metadata["session_id"] != "s" {
		t.Errorf("%+v", a)
	}
	history, text, err := importHistory(a.messages)
	if err != nil || text != "and\nnow?" || len(history) != 3 {
		t.Fatalf("%+v %q %v", history, text, err)
	}
	calls := history[2].Calls
	if history[0].Role != regie.ImportedContext || history[0].Text != "Be brief.\nBe kind." || history[2].Text != "I look." || len(calls) != 2 ||
		calls[0].Arguments != `{"p": 1}` || calls[0].Result != "" || calls[1].Result != "The tool failed.\nno\nway" {
		t.Errorf("%+v", history)
	}
	none, err := parseMessages([]byte(`{"model":"main","messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"none"}}`))
	if err != nil || len(none.tools) != 0 {
		t.Errorf("%+v %v", none, err)
	}
}

// TestParseMessages_ContextLast has an application speak last: behind a question, and behind
// results.
func TestParseMessages_ContextLast(t *testing.T) {
	const (
		system = `{"role":"system","content":"It is noon."}`
		call   = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
		result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"tool_reference","tool_name":"g"},{"type":"image","source":{}},{"type":"text","text":"x"}]}]}`
	)
	for messages, want := range map[string]struct {
		roles, text string
	}{
		`{"role":"user","content":"hi"},` + system:                                    {"context", "hi"},
		`{"role":"user","content":"hi"},` + system + `,` + system:                     {"context context", "hi"},
		`{"role":"user","content":"a"},` + system + `,{"role":"user","content":"b"}`:  {"user context", "b"},
		`{"role":"user","content":"hi"},` + call + `,` + result + `,` + system:        {"user assistant", regie.ClientContextMark + "It is noon."},
		`{"role":"user","content":"hi"},` + system + `,` + call + `,` + result:        {"user context assistant", ""},
		`{"role":"user","content":"hi"},{"role":"assistant","content":"y"},` + system: {"", "refused"},
		system: {"", "refused"},
	} {
		a, err := parseMessages([]byte(`{"model":"main","messages":[` + messages + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		history, text, err := importHistory(a.messages)
		var roles []string
		for i := range history {
			roles = append(roles, string(history[i].Role))
			for _, call := range history[i].Calls {
				if want := "[the tool g can be called now]\n[the tool returned a part of the type image, which the model cannot see here]\nx"; call.Result != want {
					t.Errorf("%q", call.Result)
				}
			}
		}
		if err != nil {
			text = "refused"
		}
		if strings.Join(roles, " ") != want.roles || text != want.text {
			t.Errorf("%s: %v %q %v", messages, roles, text, err)
		}
	}
}

// FuzzMessages reads any request of Messages.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"model":"main","max_tokens":9,"system":"s","messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f","input_schema":{}}]}`))
	f.Add([]byte(`{"model":"main","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"text","text":"y"}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseMessages(data)
		holds(t, a, err)
	})
}
