package compat

import (
	"strings"
	"testing"
)

// parsers read the three kinds of request.
var parsers = map[string]func(string) (*agentRequest, error){
	APIChat:      func(s string) (*agentRequest, error) { return parseChat([]byte(s)) },
	APIResponses: func(s string) (*agentRequest, error) { return parseResponses([]byte(s)) },
	APIMessages:  func(s string) (*agentRequest, error) { return parseMessages([]byte(s)) },
}

const hiSaid = `"messages":[{"role":"user","content":"hi"}]`

// TestIgnoredKeys: what no agent heeds is named, in whatever spelling, and what would have another
// effect than its client means is refused.
func TestIgnoredKeys(t *testing.T) {
	for _, c := range []struct{ api, body, ignored, param string }{
		{APIChat, `{"model":"main",` + hiSaid + `,"temprature":0,"Temperature":0,"odd":null}`, "Temperature temprature", ""},
		{APIResponses, `{"model":"main","input":"hi","text":{"format":{"type":"json_schema"}}}`, "", "text.format"},
		{APIMessages, `{"model":"main",` + hiSaid + `,"thread":{"type":"continue","previous_message_id":"x"}}`, "", "thread.previous_message_id"},
	} {
		a, err := parsers[c.api](c.body)
		if paramOf(err) != c.param || (err == nil) != (c.param == "") || err == nil && strings.Join(a.ignored, " ") != c.ignored {
			t.Errorf("%s: %v (param %q)", c.body, err, paramOf(err))
		}
	}
}

// TestClientsBodies takes what clients in use send: as they write it, with what they echo of
// answers before.
func TestClientsBodies(t *testing.T) {
	for name, c := range map[string]struct{ api, body string }{
		"openai, all at once": {APIChat, `{"model":"main",` + hiSaid + `,"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false},"store":false,"metadata":{"a":"b"},"user":"u",
			"service_tier":"auto","prompt_cache_key":"k","safety_identifier":"s","parallel_tool_calls":true,"seed":1,"logit_bias":{},"n":1,"logprobs":false,"stop":null,"functions":null,"moderation":null,"verbosity":"low"}`},
		"an answer said back": {APIChat, `{"model":"main","messages":[{"role":"user","content":"hi","name":"u"},{"role":"assistant","content":"Hm.","refusal":null,"annotations":[],"audio":null,"function_call":null,
			"tool_calls":[{"id":"a","type":"function","index":0,"function":{"name":"f","arguments":"{}"}}],"reasoning_content":"x"},{"role":"tool","tool_call_id":"a","name":"f","content":"y"}]}`},
		"Zed and aider":       {APIChat, `{"model":"main",` + hiSaid + `,"temperature":0,"prompt_cache_key":"x","parallel_tool_calls":false,"reasoning_effort":"low"}`},
		"clients of gateways": {APIChat, `{"model":"main",` + hiSaid + `,"reasoning":{"effort":"low"},"usage":{"include":true},"provider":{"order":[]},"transforms":[],"include_reasoning":true}`},
		"of local servers":    {APIChat, `{"model":"main",` + hiSaid + `,"top_k":40,"min_p":0.05,"repetition_penalty":1.1,"keep_alive":"5m","chat_template_kwargs":{"enable_thinking":false}}`},
		"Codex": {APIResponses, `{"model":"main","instructions":"Be brief.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],"tools":[{"type":"function","name":"shell","description":"d","strict":false,"parameters":{}}],
			"tool_choice":"auto","parallel_tool_calls":false,"reasoning":{"effort":"medium","summary":"auto"},"store":false,"stream":true,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","text":{"verbosity":"medium"},"client_metadata":{"a":"b"}}`},
		"an output said back": {APIResponses, `{"model":"main","input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"r","summary":[],"encrypted_content":"x"},{"type":"message","id":"m","status":"completed","role":"assistant","phase":"final",
			"content":[{"type":"output_text","text":"Hm.","annotations":[],"logprobs":[]}]},{"type":"function_call","id":"fc","status":"completed","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"y"}]}`},
		"Claude Code": {APIMessages, `{"model":"main","max_tokens":9,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],
			"metadata":{"user_id":"u"},"thinking":{"type":"enabled","budget_tokens":5},"betas":["x"],"context_management":{"edits":[]},"stream":true,"temperature":1,"tools":[{"name":"f","description":"d","input_schema":{},"eager_input_streaming":true,"cache_control":{"type":"ephemeral"}}]}`},
		"a message said back": {APIMessages, `{"model":"main","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"y"},{"type":"text","text":"Hm.","citations":null},
			{"type":"tool_use","id":"a","name":"f","input":{},"caller":{"type":"direct"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"y","cache_control":{"type":"ephemeral"}}]}]}]}`},
	} {
		if a, err := parsers[c.api](c.body); err != nil || len(a.messages) == 0 {
			t.Errorf("%s: %v (param %q)", name, err, paramOf(err))
		}
	}
}
