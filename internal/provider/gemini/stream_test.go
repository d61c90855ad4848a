package gemini_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/gemini"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// asker returns a function that sends one request to a server, which answers with a status and a
// body.
func asker(t *testing.T) func(status int, body string) (*provider.Reply, error) {
	t.Helper()
	var status int
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() != "/v1beta/tunedModels/a%20b:streamGenerateContent" || r.URL.Query().Get("alt") != "sse" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if status != http.StatusOK {
			w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	p, err := gemini.New(gemini.Config{Name: "test", BaseURL: server.URL, APIKey: "AIza-canary-key"})
	if err != nil {
		t.Fatal(err)
	}
	tools := []provider.Tool{{Name: "files__read_file", Parameters: json.RawMessage(`{"type":"object"}`)}, {Name: "7zip__list", Parameters: json.RawMessage(`{"type":"object"}`)}}
	c, err := p.Open(provider.Head{Model: "tunedModels/a b", MaxOutput: 100, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	c.Append(user("go"))
	return func(code int, answer string) (*provider.Reply, error) {
		status, body = code, answer
		return c.Send(t.Context(), nil)
	}
}

func sketch(reply *provider.Reply) string {
	var out []string
	for _, part := range reply.Parts {
		said := fmt.Sprintf("%s:%s", part.Type, part.Text)
		if part.Call != nil {
			said = fmt.Sprintf("%s %s(%s)", part.Call.ID, part.Call.Name, part.Call.Arguments)
		}
		if part.Opaque != nil {
			said += "#" + part.Provider + string(part.Opaque)
		}
		out = append(out, said)
	}
	u := reply.Usage
	return strings.Join(out, " ") + fmt.Sprintf(" [%s %d/%d cached %d thought %d]", reply.StopReason, u.Input, u.Output, u.CacheRead, u.Reasoning)
}

// TestSignaturesGoBack has the next request carry each signature on the very part that had it.
func TestSignaturesGoBack(t *testing.T) {
	ask := asker(t)
	for name, want := range map[string]string{
		"calls.sse":  `{"text":"I read both."},{"functionCall":{"id":"k3a","name":"files__read_file","args":{"path":"a \"é\".md"}},"thoughtSignature":"CqEBAdHtim8="},{"functionCall":{"id":"k3b","name":"_7zip__list","args":{}}}]`,
		"answer.sse": `{"text":"The answer is 42."},{"text":"","thoughtSignature":"EjQKMgEM"}]`,
	} {
		reply, err := ask(http.StatusOK, string(wiretest.Recorded(t, name)[name]))
		if err != nil {
			t.Fatal(err)
		}
		turns := []provider.Turn{user("go"), assistant(reply.Parts...), user("more")}
		if name == "calls.sse" {
			turns[2] = provider.Turn{Role: provider.RoleTool, Results: []provider.Result{{CallID: "k3a", Content: "x"}, {CallID: "k3b", Content: "y"}}}
		}
		if got := body(t, provider.Head{Model: "gemini-3.5-flash", MaxOutput: 10}, turns...); !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
}

func TestTraps(t *testing.T) {
	ask := asker(t)
	event := func(object string) string { return "data: " + object + "\r\n\r\n" }
	parts := func(parts string) string {
		return event(`{"candidates":[{"index":0,"content":{"role":"model","parts":[` + parts + `]}}]}`)
	}
	end := func(reason string) string {
		return event(`{"candidates":[{"index":0,"finishReason":"` + reason + `"}],"usageMetadata":{"promptTokenCount":3,"toolUsePromptTokenCount":1,"candidatesTokenCount":2}}`)
	}
	for name, c := range map[string]struct{ stream, want string }{
		"no id":                          {parts(`{"functionCall":{"name":"f","args":{"a":1}}}`) + end("STOP"), ` f({"a":1}) [STOP 4/2`},
		"no arguments":                   {parts(`{"functionCall":{"name":"f"}}`) + end("STOP"), ` f({}) [STOP`},
		"a module that does not exist":   {parts(`{"functionCall":{"name":"default_api.files__read_file","args":{}}},{"functionCall":{"name":"default_api:_7zip__list","args":{}}}`) + end("STOP"), " files__read_file({})  7zip__list({})"},
		"a tool that is not there":       {parts(`{"functionCall":{"name":"default_api.f","args":{}}}`) + end("STOP"), " default_api.f({})"},
		"usage behind the end":           {parts(`{"text":"a"}`) + event(`{"candidates":[{"finishReason":"STOP"}]}`) + event(`{"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":-5}}`), "text:a [STOP 7/0"},
		"usage that is no number":        {parts(`{"text":"a"}`) + event(`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":"many"}}`), "text:a [STOP 0/0"},
		"usage beyond reason":            {parts(`{"text":"a"}`) + event(`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"candidatesTokenCount":9223372036854775807,"thoughtsTokenCount":9223372036854775807}}`), "text:a [STOP 0/2199023255552"},
		"a reason in each chunk":         {event(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`) + event(`{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`), "text:ab [STOP"},
		"another candidate":              {parts(`{"text":"a"}`) + event(`{"candidates":[{"index":1,"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`) + end("STOP"), "text:a [STOP"},
		"parts of new kinds":             {parts(`{"executableCode":{"code":"x"}},{"text":"a"},{"inlineData":{}}`) + end("STOP"), "text:a [STOP"},
		"a signed text between others":   {parts(`{"text":"a"}`) + parts(`{"text":"b","thoughtSignature":"s"}`) + parts(`{"text":"c"}`) + end("STOP"), `text:a text:b#gemini{"thoughtSignature":"s"} text:c [STOP`},
		"a signature alone":              {parts(`{"text":"a"}`) + parts(`{"thoughtSignature":"s"}`) + end("STOP"), `text:a text:#gemini{"thoughtSignature":"s"} [STOP`},
		"out of tokens":                  {parts(`{"text":"a"}`) + end("MAX_TOKENS"), "text:a [MAX_TOKENS"},
		"held back midway":               {parts(`{"text":"a"}`) + end("SAFETY"), "text:a [SAFETY"},
		"an unspecified block reason":    {event(`{"promptFeedback":{"blockReason":"BLOCK_REASON_UNSPECIFIED"}}`) + parts(`{"text":"a"}`) + end("STOP"), "text:a [STOP"},
		"arguments as text, NUL, strays": {parts(`{"functionCall":{"name":"f\u0000","args":"{\"a\":1}"}}`) + end("STOP"), " f\uFFFD({\"a\":1})"},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := ask(http.StatusOK, c.stream)
			if err != nil {
				t.Fatal(err)
			}
			if got := sketch(reply); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %.300s, want %s", got, c.want)
			}
			if want := strings.Contains(c.stream, "MAX_TOKENS") || strings.Contains(c.stream, "SAFETY"); reply.Cut != want {
				t.Errorf("cut: %v", reply.Cut)
			}
			if want := strings.Contains(c.stream, "SAFETY"); reply.HeldBack != want {
				t.Errorf("held back: %v", reply.HeldBack)
			}
		})
	}
	for name, c := range map[string]struct {
		stream    string
		code      regie.Code
		retryable bool
	}{
		"no reason for the end":   {parts(`{"functionCall":{"name":"f","args":{}}}`), regie.CodeTruncatedStream, true},
		"the prompt is blocked":   {event(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3}}`), regie.CodeProviderRejected, false},
		"all is held back":        {end("RECITATION"), regie.CodeProviderRejected, false},
		"a call that is none":     {end("MALFORMED_FUNCTION_CALL"), regie.CodeBadReply, true},
		"a reason of next year":   {parts(`{"text":"a"}`) + end("SHORT_OF_WORDS"), regie.CodeBadReply, true},
		"nothing":                 {end("STOP"), regie.CodeEmptyReply, true},
		"a signature and no more": {parts(`{"text":"","thoughtSignature":"s"}`) + end("STOP"), regie.CodeEmptyReply, true},
		"arguments as a list":     {parts(`{"functionCall":{"name":"f","args":[1]}}`) + end("STOP"), regie.CodeBadReply, true},
		"garbage":                 {"data: <html>\n\n", regie.CodeBadReply, true},
		"an error midway":         {parts(`{"text":"a"}`) + event(`{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`), regie.CodeProviderBusy, true},
		"a refusal midway":        {event(`{"error":{"code":400,"message":"Request contains an invalid argument.","status":"INVALID_ARGUMENT"}}`), regie.CodeProviderRejected, false},
		"no right, midway":        {event(`{"error":{"code":403,"message":"Permission denied","status":"PERMISSION_DENIED"}}`), regie.CodeProviderAuth, false},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := ask(http.StatusOK, c.stream)
			if failed, ok := errors.AsType[*provider.Error](err); reply != nil || !ok || failed.Code != c.code || failed.Retryable != c.retryable {
				t.Errorf("got %v, %+v, want %s", reply, err, c.code)
			}
		})
	}
}

// TestRefusals: what the API says in the body of an error and nowhere else (spec 12.6, trap 7).
func TestRefusals(t *testing.T) {
	ask := asker(t)
	quota := func(id string) string {
		return `{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"m","quotaId":"` + id + `"}]},` +
			`{"@type":"type.googleapis.com/google.rpc.Help","links":[{"description":"d","url":"u"}]},` +
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}`
	}
	for name, c := range map[string]struct {
		status    int
		body      string
		code      regie.Code
		retryable bool
		wish      time.Duration
		says      string
	}{
		"too many a minute": {429, quota("GenerateRequestsPerMinutePerProjectPerModel"), regie.CodeProviderBusy, true, 34500 * time.Millisecond, "exceeded your current quota"},
		"too many a day":    {429, quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), regie.CodeProviderQuota, false, 34500 * time.Millisecond, "exceeded your current quota"},
		"the key": {
			400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`,
			regie.CodeProviderAuth, false, 0, "check the API key: API key not valid",
		},
		"a list, as where it does not stream": {404, `[{"error":{"code":404,"message":"models/x is not found for API version v1beta","status":"NOT_FOUND"}}]`, regie.CodeProviderRejected, false, 0, "models/x is not found"},
		"too long": {
			400, `{"error":{"code":400,"message":"The input token count (1048700) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`,
			regie.CodeContextTooLarge, false, 0, "exceeds the maximum",
		},
		"overloaded":         {503, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, regie.CodeProviderBusy, true, 0, "overloaded"},
		"a wish past reason": {429, `{"error":{"message":"x","details":[{"retryDelay":"999999h"},{"retryDelay":"-3s"},{"retryDelay":7}]}}`, regie.CodeProviderBusy, true, 0, "x"},
		"the key, quoted":    {403, `{"error":{"code":403,"message":"Key AIza-canary-key is blocked","status":"PERMISSION_DENIED"}}`, regie.CodeProviderAuth, false, 0, "Key [the API key] is blocked"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask(c.status, c.body)
			failed, ok := errors.AsType[*provider.Error](err)
			if !ok || failed.Code != c.code || failed.Retryable != c.retryable || failed.RetryAfter != c.wish || !strings.Contains(failed.Message, c.says) {
				t.Errorf("got %+v", failed)
			}
		})
	}
}

// TestEffort is what each generation is told of how hard to think, and a strict server of that
// model takes it.
func TestEffort(t *testing.T) {
	for model, by := range map[string]map[string]string{
		"gemini-3.5-flash":       {"": `{"includeThoughts":true}`, "none": `"thinkingLevel":"minimal"`, "medium": `"thinkingLevel":"medium"`, "max": `"thinkingLevel":"high"`},
		"gemini-3.1-pro-preview": {"none": `"thinkingLevel":"low"`, "minimal": `"thinkingLevel":"low"`, "high": `"thinkingLevel":"high"`},
		"gemini-2.5-pro":         {"none": `"thinkingBudget":128`, "low": `"thinkingBudget":1024`, "xhigh": `"thinkingBudget":24576`},
		"gemini-2.5-flash-lite":  {"": "", "none": `{"thinkingBudget":0}`, "minimal": `"includeThoughts":true,"thinkingBudget":512`},
		"gemini-2.0-flash":       {"": "", "high": ""},
		"gemma-3-27b-it":         {"high": ""},
	} {
		for effort, want := range by {
			r, err := gemini.NewRequest(provider.Head{Model: model, MaxOutput: 10}, gemini.Options{Thinking: gemini.ThinkingOf(model, effort)})
			if err != nil {
				t.Fatal(err)
			}
			r.Append(user("go"))
			got := string(r.Body())
			if !strings.Contains(got, want) || want == "" && strings.Contains(got, "thinkingConfig") {
				t.Errorf("%s, %q: %s", model, effort, got)
			}
			if err := strict.Gemini(model, r.Body()); err != nil {
				t.Errorf("%s, %q: %v in %s", model, effort, err, got)
			}
		}
	}
}

// TestModels lists what generates content, by the names that people use.
func TestModels(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1beta/models" || r.Header.Get("X-Goog-Api-Key") != "k" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"models":[{"name":"models/gemini-3.5-flash","inputTokenLimit":1048576,"outputTokenLimit":65536,"supportedGenerationMethods":["generateContent"],"thinking":true},` +
			`{"name":"models/embedding-001","supportedGenerationMethods":["embedContent"]},{"name":"models/gemini-2.0-flash","supportedGenerationMethods":["countTokens","generateContent"]}]}`))
	}))
	defer server.Close()
	p, err := gemini.New(gemini.Config{BaseURL: server.URL + "/v1beta/", APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	models, err := p.Models(t.Context())
	want := []provider.Model{
		{Name: "gemini-3.5-flash", Capabilities: provider.Capabilities{NativeTools: true, Thinking: true, ContextTokens: 1048576, MaxOutput: 65536}},
		{Name: "gemini-2.0-flash", Capabilities: provider.Capabilities{NativeTools: true}},
	}
	if diff := cmp.Diff(want, models); err != nil || diff != "" {
		t.Errorf("%v\n-want +got:\n%s", err, diff)
	}
	for model, thinks := range map[string]bool{
		"gemini-3.5-flash": true, "models/gemini-3.1-pro-preview": true, "gemini-2.5-pro": true, "gemini-2.5-flash-lite": false, "gemini-3.1-flash-lite": true,
		"gemini-2.0-flash": false, "gemma-3-27b-it": false, "gemini-99999999999999999999": false,
	} {
		if p.Capabilities(model).Thinking != thinks {
			t.Errorf("%s: %v", model, !thinks)
		}
	}
}
