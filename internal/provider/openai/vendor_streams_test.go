package openai_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// TestReasoningDetails: what OpenRouter says of thinking comes together from its pieces and goes
// back unchanged, to the same model and nobody else.
func TestReasoningDetails(t *testing.T) {
	reply, err := askVendor(t, "openrouter", "a/b", stream("stop",
		`{"content":"","reasoning":"I ","reasoning_details":[{"type":"reasoning.text","text":"I ","signature":null,"id":"r1","format":"anthropic-claude-v1","index":0}]}`,
		`{"content":"","reasoning":"weigh.","reasoning_details":[{"type":"reasoning.text","text":"weigh.","format":"anthropic-claude-v1","index":0}]}`,
		`{"content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.text","signature":"c2ln","format":"anthropic-claude-v1","index":0}]}`,
		`{"content":"","reasoning_details":[{"type":"reasoning.encrypted","data":"AAEC","format":"openai-responses-v1","index":1,"id":null}]}`,
		`{"content":"Hello."}`)+done)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"format":"anthropic-claude-v1","id":"r1","index":0,"signature":"c2ln","text":"I weigh.","type":"reasoning.text"},{"data":"AAEC","format":"openai-responses-v1","id":null,"index":1,"type":"reasoning.encrypted"}]`
	if got := sketch(reply); !strings.Contains(got, "thinking:I weigh. text:Hello.") {
		t.Errorf("got %s", got)
	}
	turn := provider.Turn{Role: provider.RoleAssistant, Parts: reply.Parts}
	for _, to := range []struct {
		vendor, model string
		goes          bool
	}{{"openrouter", "a/b", true}, {"openrouter", "c/d", false}, {"", "a/b", false}, {"deepseek", "a/b", false}} {
		body := string(openai.Body(to.vendor, provider.Head{Model: to.model, MaxOutput: 9}, provider.Tail{}, wiretest.Said(provider.RoleUser, "go"), turn, wiretest.Said(provider.RoleUser, "on")))
		if strings.Contains(body, `"reasoning_details":`+want) != to.goes || strings.Contains(body, "c2ln") != to.goes {
			t.Errorf("to %s of %s: %s", to.model, to.vendor, body)
		}
	}
	// Encrypted thinking alone is a part that nobody can read and that goes back all the same.
	reply, err = askVendor(t, "openrouter", "a/b", stream("stop", `{"reasoning_details":[{"type":"reasoning.encrypted","data":"AAEC"}]}`, `{"content":"Hi."}`)+done)
	if err != nil || len(reply.Parts) != 2 || reply.Parts[0].Text != "" || !strings.Contains(string(reply.Parts[0].Opaque), "AAEC") {
		t.Errorf("got %+v, %v", reply, err)
	}
	// What is no list costs nobody the answer.
	reply, err = askVendor(t, "openrouter", "a/b", stream("stop", `{"content":"Hi.","reasoning_details":"much"}`)+done)
	if err != nil || reply.Parts[0].Text != "Hi." || len(reply.Parts) != 1 {
		t.Errorf("got %+v, %v", reply, err)
	}
}

// TestSources: what an answer is from keeps its numbers, whatever a server says instead of
// addresses.
func TestSources(t *testing.T) {
	chunk := func(more string) string {
		return `data: {"id":"1","model":"sonar","object":"chat.completion","choices":[{"index":0,"finish_reason":null,"message":{"role":"assistant","content":"x"},"delta":{"role":"assistant","content":"x"}}]` + more + "}\r\n\r\n"
	}
	const end = `data: {"choices":[{"index":0,"finish_reason":"stop","delta":{"role":"assistant","content":""}}]}` + "\r\n\r\n"
	for name, c := range map[string]struct {
		stream string
		want   []provider.Source
	}{
		"a page":                {chunk(`,"citations":["https://a.example"],"search_results":[{"title":"A  \u001b[31mpage","url":"https://a.example","date":"2025-01-01"}]`) + end, []provider.Source{{Title: "A [31mpage", URL: "https://a.example"}}},
		"the last list wins":    {chunk(`,"search_results":[{"title":"Old","url":"https://o.example"}]`) + chunk(`,"search_results":[{"title":"New","url":"https://n.example"}]`) + end, []provider.Source{{Title: "New", URL: "https://n.example"}}},
		"no addresses":          {chunk(`,"search_results":[{"url":"javascript:alert(1)"},{"url":"file:///etc/passwd"},{"url":"https://c.example"}]`) + end, []provider.Source{{}, {}, {URL: "https://c.example"}}},
		"none":                  {chunk(`,"citations":"none","search_results":7`) + end, nil},
		"from another vendor's": {chunk(``) + end, nil},
	} {
		reply, err := askVendor(t, "perplexity", "sonar", c.stream)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, reply.Sources); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestBrokenOff: what a vendor says where it broke a reply off itself is no end of it.
func TestBrokenOff(t *testing.T) {
	for vendor, reason := range map[string]string{"deepseek": "insufficient_system_resource", "mistral": "error", "openrouter": "error"} {
		reply, err := askVendor(t, vendor, "m", stream(reason, `{"content":"And so"}`)+done)
		if failed, ok := errors.AsType[*provider.Error](err); reply != nil || !ok || failed.Code != regie.CodeProviderBusy || !failed.Retryable || failed.Partial != "And so" {
			t.Errorf("%s: %+v, %v", vendor, reply, err)
		}
	}
	for name, c := range map[string]struct {
		data      string
		code      regie.Code
		retryable bool
	}{
		"a provider's error":    {`{"id":"g","error":{"code":"server_error","message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`, regie.CodeProviderBusy, true},
		"in the choice":         {`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":429,"message":"slow down"}}]}`, regie.CodeProviderBusy, true},
		"no credit, by number":  {`{"error":{"code":402,"message":"pay"}}`, regie.CodeProviderQuota, false},
		"the key, by number":    {`{"error":{"code":401,"message":"who"}}`, regie.CodeProviderAuth, false},
		"the request":           {`{"error":{"code":400,"message":"what"}}`, regie.CodeProviderRejected, false},
		"too large, midway":     {`{"error":{"code":400,"message":"maximum context length is 8 tokens"}}`, regie.CodeContextTooLarge, false},
		"a call that is broken": {`{"error":{"message":"Failed to call a function","code":"tool_use_failed"}}`, regie.CodeBadReply, true},
	} {
		_, err := askVendor(t, "openrouter", "m", "data: "+c.data+"\n\n"+done)
		if failed, ok := errors.AsType[*provider.Error](err); !ok || failed.Code != c.code || failed.Retryable != c.retryable {
			t.Errorf("%s: %v (%s)", name, err, provider.CodeOf(err))
		}
	}
}

// TestHouseRules takes a legal request of each vendor and breaks one of its rules: a validator that
// sees nothing would hold nobody to anything.
func TestHouseRules(t *testing.T) {
	const (
		head    = `{"model":"m","max_tokens":5000,"messages":[`
		user    = `{"role":"user","content":"q"}`
		calls   = `{"role":"assistant","content":null,"tool_calls":[{"id":"abcDEF123","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		result  = `{"role":"tool","tool_call_id":"abcDEF123","content":"x"}`
		said    = `{"role":"assistant","content":"a"}`
		tool    = `,"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}]}`
		systems = `{"role":"system","content":"s"},{"role":"system","content":"s"},`
	)
	thinks := strings.Replace(calls, `null,`, `null,"reasoning_content":"",`, 1)
	for name, c := range map[string]struct{ vendor, body, want string }{
		"an id":                       {"mistral", head + user + "," + strings.ReplaceAll(calls+","+result, "abcDEF123", "call_1") + "]}", "length of 9"},
		"a user after a result":       {"mistral", head + user + "," + calls + "," + result + "," + user + "]}", "unexpected role user after role tool"},
		"two users":                   {"mistral", head + user + "," + user + "]}", "unexpected role user after role user"},
		"what Mistral does not know":  {"mistral", `{"stream_options":{"include_usage":true},` + head[1:] + user + "]}", "stream_options"},
		"the other bound":             {"mistral", `{"model":"m","max_completion_tokens":9,"messages":[` + user + "]}", "max_completion_tokens"},
		"thinking that is missing":    {"deepseek", head + user + "," + calls + "," + result + "]}", "reasoning_content is there: false"},
		"thinking out of a loop":      {"deepseek", head + user + "," + strings.Replace(said, `"a"`, `"a","reasoning_content":"x"`, 1) + "," + user + "]}", "reasoning_content is there: true"},
		"thinking for somebody else":  {"groq", head + user + "," + thinks + "," + result + "]}", "only DeepSeek"},
		"details for somebody else":   {"", head + user + "," + strings.Replace(said, `"a"`, `"a","reasoning_details":[{"type":"x"}]`, 1) + "," + user + "]}", "only OpenRouter"},
		"details that are none":       {"openrouter", head + user + "," + strings.Replace(said, `"a"`, `"a","reasoning_details":[]`, 1) + "," + user + "]}", "no list"},
		"few tokens beside tools":     {"groq", strings.Replace(head, "5000", "3999", 1) + user + "]" + tool, "at least 4000"},
		"raw thinking beside tools":   {"groq", `{"reasoning_format":"raw",` + head[1:] + user + "]" + tool, "raw beside tools"},
		"an effort beside tools":      {"openai", `{"model":"gpt-5.4","max_completion_tokens":9,"reasoning_effort":"low","messages":[` + user + "]" + tool, "not taken of gpt-5.4"},
		"no effort beside tools":      {"openai", `{"model":"gpt-5.6-sol","max_completion_tokens":9,"messages":[` + user + "]" + tool, "not taken of gpt-5.6-sol"},
		"two systems":                 {"llamacpp", head + systems + user + "]}", "two system messages"},
		"tools":                       {"perplexity", head + user + "]" + tool, "tools or results"},
		"results":                     {"perplexity", head + user + "," + calls + "," + result + "]}", "tools or results"},
		"two replies":                 {"perplexity", head + user + "," + said + "," + said + "," + user + "]}", "unexpected role assistant"},
		"a reply first":               {"perplexity", head + said + "," + user + "]}", "unexpected role assistant after role system"},
		"a tier that is not theirs":   {"deepseek", `{"service_tier":"flex",` + head[1:] + user + "]}", "service_tier"},
		"one call, where it is no":    {"lmstudio", `{"parallel_tool_calls":false,` + head[1:] + user + "]}", "parallel_tool_calls"},
		"a switch that is not theirs": {"mistral", `{"thinking":{"type":"enabled"},` + head[1:] + user + "]}", "thinking"},
	} {
		if !json.Valid([]byte(c.body)) {
			t.Fatalf("%s: no JSON: %s", name, c.body)
		}
		if err := strict.ChatVendor(c.vendor, []byte(c.body)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestMistralGuests: a model of Mistral behind another server has Mistral's rules, because its
// template has.
func TestMistralGuests(t *testing.T) {
	turns := thread("vllm", "m")
	for _, vendor := range []string{"openrouter", "vllm", "lmstudio", "llamacpp"} {
		for model, legal := range map[string]bool{"mistralai/Devstral-Small-2": true, "Ministral-8B": true, "qwen3-32b": false} {
			body := openai.Body(vendor, provider.Head{Model: model, MaxOutput: 9}, provider.Tail{}, turns...)
			asMistral := []byte(strings.Replace(string(body), `"stream_options":{"include_usage":true},`, "", 1))
			if err := strict.ChatVendor("mistral", asMistral); (err == nil) != legal {
				t.Errorf("%s at %s: %v", model, vendor, err)
			}
		}
	}
}
