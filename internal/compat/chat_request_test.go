package compat

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// TestParseChat refuses what would be silently wrong, with the parameter named.
func TestParseChat(t *testing.T) {
	const hi = `"model":"main","messages":[{"role":"user","content":"hi"}]`
	for body, param := range map[string]string{
		`{` + hi + `,"n":2}`:                                                     "n",
		`{` + hi + `,"logprobs":true}`:                                           "logprobs",
		`{` + hi + `,"top_logprobs":3}`:                                          "top_logprobs",
		`{` + hi + `,"modalities":["text","audio"]}`:                             "modalities",
		`{` + hi + `,"audio":{"voice":"x"}}`:                                     "audio",
		`{` + hi + `,"response_format":{"type":"json_object"}}`:                  "response_format",
		`{` + hi + `,"stop":"x"}`:                                                "stop",
		`{` + hi + `,"logit_bias":{"1":2}}`:                                      "logit_bias",
		`{` + hi + `,"functions":[{"name":"f"}]}`:                                "functions",
		`{` + hi + `,"web_search_options":{"a":1}}`:                              "web_search_options",
		`{` + hi + `,"tool_choice":"required"}`:                                  "tool_choice",
		`{` + hi + `,"tool_choice":{"type":"function","function":{"name":"f"}}}`: "tool_choice",
		`{` + hi + `,"tools":[{"type":"custom"}]}`:                               "tools[0].type",
		`{` + hi + `,"tools":[{"type":"function","function":{"name":"a b"}}]}`:   "tools[0].function.name",
		`{` + hi + `,"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}]}`: "tools[1].function.name",
		`{` + hi + `,"model":"x"}`:                                                                                    "model",
		`{` + hi + `,"metadata":{"a":1}}`:                                                                             "metadata.a",
		`{"model":"main","messages":[]}`:                                                                              "messages",
		`{"messages":[{"role":"user","content":"hi"}]}`:                                                               "model",
		`{"model":"main","messages":[{"role":"wizard","content":"hi"}]}`:                                              "messages[0].role",
		`{"model":"main","messages":[{"role":"user","content":" "}]}`:                                                 "messages[0].content",
		`{"model":"main","messages":[{"role":"user","content":7}]}`:                                                   "messages[0].content",
		`{"model":"main","messages":[{"role":"user","role":"user"}]}`:                                                 "messages[0].role",
		`{"model":"main","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"input_audio"}]}]}`: "messages[0].content[1].type",
		`{"model":"main","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"custom"}]}]}`:                "messages[0].tool_calls[0]",
		`{"model":7,"messages":[]}`:                                                                                   "model",
		`[]`:                                                                                                          "",
		`{` + hi + `,"deep":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`:                       "",
		``:                     "",
		`{` + hi + `} x`:       "",
		"{\"model\":\"\xff\"}": "",
	} {
		_, err := parseChat([]byte(body))
		var p *problem
		if !errors.As(err, &p) || p.param != param || regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%s: %v (param %q, want %q)", body, err, paramOf(err), param)
		}
	}
	a, err := parseChat([]byte(`{` + hi + `,"n":1,"temperature":1,"max_tokens":5,"seed":null,"stop":null,"tool_choice":"none","tools":[{"type":"function","function":{"name":"a"}}]}`))
	if err != nil || strings.Join(a.ignored, " ") != "max_tokens temperature" || len(a.tools) != 0 {
		t.Errorf("%+v %v", a, err)
	}
}

func paramOf(err error) string {
	if p, ok := errors.AsType[*problem](err); ok {
		return p.param
	}
	return ""
}

// TestParseResponses does so with the other format.
func TestParseResponses(t *testing.T) {
	for body, param := range map[string]string{
		`{"model":"main","input":""}`:                                                   "input",
		`{"model":"main","input":[]}`:                                                   "input",
		`{"model":"main"}`:                                                              "input",
		`{"input":"hi"}`:                                                                "model",
		`{"model":"main","input":"hi","background":true}`:                               "background",
		`{"model":"main","input":"hi","conversation":"c"}`:                              "conversation",
		`{"model":"main","input":"hi","prompt":{"id":"p"}}`:                             "prompt",
		`{"model":"main","input":"hi","top_logprobs":2}`:                                "top_logprobs",
		`{"model":"main","input":"hi","text":{"format":{"type":"json_schema"}}}`:        "text.format",
		`{"model":"main","input":"hi","tools":[{"type":""}]}`:                           "tools[0].type",
		`{"model":"main","input":"hi","previous_response_id":"resp_x"}`:                 "previous_response_id",
		`{"model":"main","input":[{"type":"item_reference"}]}`:                          "input[0].id",
		`{"model":"main","input":[{"type":"item_reference","id":7}]}`:                   "input",
		`{"model":"main","input":[{"role":"user","content":[{"type":"input_image"}]}]}`: "input[0].content[0].type",
		`{"model":"main","input":[{"type":"function_call","call_id":"a","name":""}]}`:   "input[0]",
	} {
		_, err := parseResponses([]byte(body))
		if paramOf(err) != param || regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%s: %v (param %q, want %q)", body, err, paramOf(err), param)
		}
	}
}

// TestImports holds a history to its pairs of calls and results.
func TestImports(t *testing.T) {
	user, call := message{ImportedMessage: regie.ImportedMessage{Role: regie.ImportedUser, Text: "hi"}}, func(ids ...string) message {
		m := message{ImportedMessage: regie.ImportedMessage{Role: regie.ImportedAssistant}}
		for _, id := range ids {
			m.Calls = append(m.Calls, regie.ImportedCall{ID: id, Name: "f", Arguments: "{}"})
		}
		return m
	}
	result := func(id string) message {
		return message{ImportedMessage: regie.ImportedMessage{Role: roleTool}, results: []clientResult{{id, "r" + id, "here"}}}
	}
	for name, c := range map[string]struct {
		messages []message
		ok       bool
		text     string
		history  int
	}{
		"a message":                  {[]message{user}, true, "hi", 0},
		"a conversation":             {[]message{user, {ImportedMessage: regie.ImportedMessage{Role: regie.ImportedAssistant, Text: "yes"}}, user}, true, "hi", 2},
		"calls with results":         {[]message{user, call("a", "b"), result("b"), result("a"), user}, true, "hi", 2},
		"results at the end":         {[]message{user, call("a"), result("a")}, true, "", 2},
		"nothing":                    {nil, false, "", 0},
		"a call without a result":    {[]message{user, call("a", "b"), result("a"), user}, false, "", 0},
		"without one at the end":     {[]message{user, call("a")}, false, "", 0},
		"a result of nobody's call":  {[]message{user, result("a")}, false, "", 0},
		"a result first":             {[]message{result("a"), user}, false, "", 0},
		"two results of a call":      {[]message{user, call("a"), result("a"), result("a")}, false, "", 0},
		"two calls of one id":        {[]message{user, call("a", "a"), result("a"), result("a")}, false, "", 0},
		"the assistant has the word": {[]message{user, {ImportedMessage: regie.ImportedMessage{Role: regie.ImportedAssistant, Text: "yes"}}}, false, "", 0},
	} {
		history, text, err := importHistory(c.messages)
		if (err == nil) != c.ok || text != c.text || c.ok && len(history) != c.history {
			t.Errorf("%s: %d messages, %q, %v", name, len(history), text, err)
		}
	}
}

// TestIDs gives ids back as they were made, and nothing of others.
func TestIDs(t *testing.T) {
	session, call := regie.NewID(), regie.NewID()
	if s, c, ok := unpackID(callPrefix, callID(session, call)); !ok || s != session || c != call {
		t.Error("a call's id does not come back")
	}
	for _, text := range []string{"", "call_", "call_abc", callID(session, call) + "A", "resp_" + callID(session, call)[5:]} {
		if _, _, ok := unpackID(callPrefix, text); ok {
			t.Errorf("%q is taken for an id", text)
		}
	}
	if again := idOf("a", "b"); idOf("a", "b") != again || idOf("a", "b") == idOf("ab") {
		t.Error("ids of words")
	}
}

// FuzzChat reads any request of Chat Completions: what is taken has a model, messages and legal
// names.
func FuzzChat(f *testing.F) {
	f.Add([]byte(`{"model":"main","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]}`))
	f.Add([]byte(`{"model":"main","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseChat(data)
		holds(t, a, err)
	})
}

// FuzzResponses reads any request of Responses.
func FuzzResponses(f *testing.F) {
	f.Add([]byte(`{"model":"main","input":"hi","previous_response_id":"resp_x"}`))
	f.Add([]byte(`{"model":"main","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseResponses(data)
		holds(t, a, err)
	})
}

func holds(t *testing.T, a *agentRequest, err error) {
	t.Helper()
	if err != nil {
		if regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("refused with %v", err)
		}
		return
	}
	if a.model == "" || len(a.messages) == 0 {
		t.Errorf("%+v", a)
	}
	history, text, err := importHistory(a.messages)
	if err != nil {
		return
	}
	if text == "" && (len(history) == 0 || len(history[len(history)-1].Calls) == 0) {
		t.Errorf("nothing is said: %+v", history)
	}
}

// FuzzHead reads what is passed on: it stays one JSON object, with the provider's name of the model
// and all else as it was.
func FuzzHead(f *testing.F) {
	f.Add([]byte(`{"model":"far/x","messages":[],"stream":true,"max_tokens":5}`))
	f.Add([]byte(`{ "stream_options" : {"include_usage":false} , "model":"far/x","stream":true }`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := readHead(data, func(string) bool { return true })
		if err != nil {
			return
		}
		h.setMember("model", jsontext.Value(`"x"`))
		out := h.encodeRequest(len(data))
		var before, after map[string]any
		if !jsontext.Value(out).IsValid() || json.Unmarshal(data, &before) != nil || json.Unmarshal(out, &after) != nil {
			t.Fatalf("%s became %s", data, out)
		}
		before["model"] = "x"
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%s became %s", data, out)
		}
	})
}
