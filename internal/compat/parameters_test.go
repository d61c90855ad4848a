package compat

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// parsers read the three kinds of request.
var parsers = map[string]func(string) (*agentRequest, error){
	APIChat:      func(s string) (*agentRequest, error) { return parseChat([]byte(s)) },
	APIResponses: func(s string) (*agentRequest, error) { return parseResponses([]byte(s)) },
	APIMessages:  func(s string) (*agentRequest, error) { return parseMessages([]byte(s)) },
}

const hiSaid = `"messages":[{"role":"user","content":"hi"}]`

// TestStrays refuses keys that nobody knows, in another spelling too, wherever they stand, and
// names them.
func TestStrays(t *testing.T) {
	for _, c := range []struct{ api, body, param string }{
		{APIChat, `{"model":"main",` + hiSaid + `,"temprature":0}`, "temprature"},
		{APIChat, `{"model":"main",` + hiSaid + `,"Temperature":0}`, "Temperature"},
		{APIChat, `{"model":"main",` + hiSaid + `,"odd":null}`, "odd"},
		{APIChat, `{"model":"main",` + hiSaid + `,"moderation":{"a":1}}`, "moderation"},
		{APIChat, `{"model":"main",` + hiSaid + `,"guided_json":{"a":1}}`, "guided_json"},
		{APIChat, `{"model":"main",` + hiSaid + `,"stream_options":{"include_usage":true,"odd":1}}`, "stream_options.odd"},
		{APIChat, `{"model":"main","messages":[{"role":"user","content":"hi","Content":"x"}]}`, "messages[0].Content"},
		{APIChat, `{"model":"main","messages":[{"role":"user","content":[{"type":"text","text":"hi","Text":1}]}]}`, "messages[0].content[0].Text"},
		{APIResponses, `{"model":"main","input":[{"role":"user","content":[{"type":"input_text","text":"hi","TYPE":1}]}]}`, "input[0].content[0].TYPE"},
		{APIChat, `{"model":"main","messages":[{"role":"assistant","tool_calls":[{"id":"a","odd":1,"function":{"name":"f"}}]}]}`, "messages[0].tool_calls[0].odd"},
		{APIChat, `{"model":"main",` + hiSaid + `,"tools":[{"type":"function","function":{"name":"a","params":{}}}]}`, "tools[0].function.params"},
		{APIResponses, `{"model":"main","input":"hi","messages":[]}`, "messages"},
		{APIResponses, `{"model":"main","input":"hi","reasoning":{"efort":"low"}}`, "reasoning.efort"},
		{APIResponses, `{"model":"main","input":"hi","text":{"formt":{}}}`, "text.formt"},
		{APIResponses, `{"model":"main","input":"hi","tools":[{"type":"function","name":"a","input_schema":{}}]}`, "tools[0].input_schema"},
		{APIResponses, `{"model":"main","input":[{"role":"user","content":"hi","text":"x"}]}`, "input[0].text"},
		{APIMessages, `{"model":"main",` + hiSaid + `,"max_token":9}`, "max_token"},
		{APIMessages, `{"model":"main",` + hiSaid + `,"thread":{"type":"join"}}`, "thread"},
		{APIMessages, `{"model":"main",` + hiSaid + `,"compaction":{"a":1}}`, "compaction"},
		{APIMessages, `{"model":"main",` + hiSaid + `,"output_config":{"efort":"low"}}`, "output_config.efort"},
		{APIMessages, `{"model":"main",` + hiSaid + `,"tool_choice":{"type":"auto","odd":1}}`, "tool_choice.odd"},
		{APIMessages, `{"model":"main",` + hiSaid + `,"tools":[{"name":"a","parameters":{}}]}`, "tools[0].parameters"},
		{APIMessages, `{"model":"main","messages":[{"role":"user","content":[{"type":"text","text":"hi","Is_Error":1}]}]}`, "messages[0].content[0].Is_Error"},
		{APIMessages, `{"model":"main","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"hi","Text":1}]}]}]}`, "messages[0].content[0].content[0].Text"},
		{APIMessages, `{"model":"main","messages":[{"role":"user","content":"hi","odd":1}]}`, "messages[0].odd"},
	} {
		_, err := parsers[c.api](c.body)
		if paramOf(err) != c.param || regie.CodeOf(err) != regie.CodeBadRequest || !strings.Contains(err.Error(), c.param) && unsupported[c.param].IsZero() {
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

// TestSDKParameters compares what vendors' own clients can write with what is known here: nothing
// of it is a stray.
func TestSDKParameters(t *testing.T) {
	for file, c := range map[string]struct{ api, name string }{
		"openai/resources/chat/completions/completions.d.ts":        {APIChat, "ChatCompletionCreateParamsBase"},
		"openai/resources/responses/responses.d.ts":                 {APIResponses, "ResponseCreateParamsBase"},
		"@anthropic-ai/sdk/resources/messages/messages.d.ts":        {APIMessages, "MessageCreateParamsBase"},
		"@anthropic-ai/sdk/resources/beta/messages/messages.d.ts":   {APIMessages, "MessageCreateParamsBase"},
		"@anthropic-ai/sdk/resources/beta/messages/messages.d.ts#2": {APIMessages, "MessageCountTokensParams"},
	} {
		path, _, _ := strings.Cut(file, "#")
		source, err := os.ReadFile(filepath.Join("testdata", "npm", "node_modules", filepath.FromSlash(path)))
		if errors.Is(err, os.ErrNotExist) && os.Getenv("REGIE_CI") != "1" {
			t.Skip("the clients of npm are not there: make npm installs them")
		}
		_, body, found := strings.Cut(string(source), "export interface "+c.name+" ")
		body, _, ends := strings.Cut(body, "\n}")
		names := regexp.MustCompile(`(?m)^    (\w+)\??:`).FindAllStringSubmatch(body, -1)
		if err != nil || !found || !ends || len(names) < 10 {
			t.Fatalf("%s: %v, %d parameters", file, err, len(names))
		}
		for _, name := range names {
			body := `{"model":"main",` + hiSaid
			if c.api == APIResponses {
				body = `{"model":"main","input":"hi"`
			}
			if strings.Contains(body, `"`+name[1]+`":`) {
				continue
			}
			if _, err := parsers[c.api](body + `,"` + name[1] + `":null}`); err != nil {
				t.Errorf("%s: %s: %v", path, name[1], err)
			}
		}
	}
}
