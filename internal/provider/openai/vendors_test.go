package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// serve answers as a vendor's server and returns the provider for it.
func serve(t *testing.T, vendor string, answer http.HandlerFunc) *openai.Provider {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	p, err := openai.New(openai.Config{Name: "x", Vendor: vendor, BaseURL: server.URL + "/v1", APIKey: "sk-canary"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// askVendor sends one request to a model of a vendor that answers with a stream.
func askVendor(t *testing.T, vendor, model, stream string) (*provider.Reply, error) {
	t.Helper()
	p := serve(t, vendor, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream)
	})
	c, err := p.Open(provider.Head{Model: model, MaxOutput: 100})
	if err != nil {
		t.Fatal(err)
	}
	c.Append(wiretest.Said(provider.RoleUser, "go"))
	return c.Send(t.Context(), nil)
}

// TestVendorErrors is what vendors answer where something is wrong, as their documentation or their
// users show it: which it is, and what a person reads.
func TestVendorErrors(t *testing.T) {
	for _, c := range []struct {
		vendor     string
		status     int
		body, says string
		code       regie.Code
		retryable  bool
	}{
		// A key, and a model, that are not there.
		{"openai", 401, `{"error":{"message":"Incorrect API key provided: sk-no.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, "check the API key", regie.CodeProviderAuth, false},
		{"openai", 404, `{"error":{"message":"The model 'gpt-9' does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}`, "gpt-9", regie.CodeProviderRejected, false},
		{"groq", 401, `{"error":{"message":"Invalid API Key","type":"invalid_request_error","code":"invalid_api_key"}}`, "check the API key", regie.CodeProviderAuth, false},
		{"groq", 404, `{"error":{"message":"The model 'x' does not exist or you do not have access to it.","type":"invalid_request_error","code":"model_not_found"}}`, "does not exist", regie.CodeProviderRejected, false},
		{"deepseek", 401, `{"error":{"message":"Authentication Fails, Your api key is invalid","type":"authentication_error","param":null,"code":"invalid_request_error"}}`, "check the API key", regie.CodeProviderAuth, false},
		{"deepseek", 400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, "Model Not Exist", regie.CodeProviderRejected, false},
		{"mistral", 401, `{"detail":"Unauthorized"}`, "check the API key: Unauthorized", regie.CodeProviderAuth, false},
		{"mistral", 400, `{"object":"error","message":"Invalid model: nope","type":"invalid_model","param":null,"code":"1500"}`, "Invalid model: nope", regie.CodeProviderRejected, false},
		{"openrouter", 401, `{"error":{"message":"User not found.","code":401}}`, "User not found", regie.CodeProviderAuth, false},
		{"openrouter", 400, `{"error":{"message":"nope/nope is not a valid model ID","code":400},"user_id":"u"}`, "not a valid model ID", regie.CodeProviderRejected, false},
		{"vllm", 404, `{"error":{"message":"The model 'x' does not exist.","type":"NotFoundError","param":null,"code":404}}`, "does not exist", regie.CodeProviderRejected, false},
		{"vllm", 404, `{"object":"error","message":"The model 'x' does not exist.","type":"NotFoundError","param":null,"code":404}`, "does not exist", regie.CodeProviderRejected, false},
		{"lmstudio", 404, `{"error":"Model \"x\" not found"}`, `Model "x" not found`, regie.CodeProviderRejected, false},
		{"llamacpp", 401, `{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}`, "check the API key", regie.CodeProviderAuth, false},
		{"perplexity", 401, "<html>\r\n<head><title>401 Authorization Required</title></head>\r\n</html>", "check the API key", regie.CodeProviderAuth, false},
		{"perplexity", 400, `{"error":{"message":"Invalid model 'nope'.","type":"invalid_model","code":400}}`, "Invalid model", regie.CodeProviderRejected, false},

		// Money.
		{"openai", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, "no credit left", regie.CodeProviderQuota, false},
		{"deepseek", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, "no credit left: Insufficient Balance", regie.CodeProviderQuota, false},
		{"openrouter", 402, `{"error":{"message":"Insufficient credits","code":402}}`, "Insufficient credits", regie.CodeProviderQuota, false},
		{"mistral", 402, `{"detail":"Payment required"}`, "no credit left", regie.CodeProviderQuota, false},

		// A prompt that is too large.
		{"vllm", 400, `{"error":{"message":"This model's maximum context length is 32768 tokens. However, you requested 40000 tokens","type":"BadRequestError","code":400}}`, "larger than the model's window", regie.CodeContextTooLarge, false},
		{"llamacpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`, "larger than the model's window", regie.CodeContextTooLarge, false},
		{"lmstudio", 400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}`, "larger than the model's window", regie.CodeContextTooLarge, false},
		{"mistral", 400, `{"object":"error","message":"Prompt contains 300000 tokens, too large for model with 131072 maximum context length","type":"invalid_request_prompt","code":"3051"}`, "larger than the model's window", regie.CodeContextTooLarge, false},
		{"openrouter", 400, `{"error":{"message":"This endpoint's maximum context length is 131072 tokens.","code":400}}`, "larger than the model's window", regie.CodeContextTooLarge, false},

		// Their own fault, or the model's.
		{"groq", 400, `{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=f>"}}`, "Failed to call a function", regie.CodeBadReply, true},
		{"groq", 498, `{"error":{"message":"Flex tier capacity exceeded","type":"capacity_exceeded"}}`, "capacity exceeded", regie.CodeProviderBusy, true},
		{"groq", 429, `{"error":{"message":"Rate limit reached for model","type":"tokens","code":"rate_limit_exceeded"}}`, "Rate limit", regie.CodeProviderBusy, true},
		{"llamacpp", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, "Loading model", regie.CodeProviderBusy, true},
		{"openrouter", 502, `{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"{\"error\":{\"message\":\"Overloaded\"}}","provider_name":"Anthropic"}}}`, "Provider returned error (Anthropic: Overloaded)", regie.CodeProviderBusy, true},

		// What the request has wrong, in the words of who says it.
		{"openrouter", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"object\":\"error\",\"message\":\"Unexpected role 'tool' after role 'user'\",\"type\":\"invalid_request_message_order\",\"code\":\"3230\"}","provider_name":"Mistral"}}}`, "(Mistral: Unexpected role 'tool' after role 'user')", regie.CodeProviderRejected, false},
		{"openrouter", 403, `{"error":{"message":"Your input was flagged","code":403,"metadata":{"reasons":["violence"],"flagged_input":"…","provider_name":"OpenAI"}}}`, "moderation or a rule of the account: Your input was flagged (OpenAI: violence)", regie.CodeProviderRejected, false},
		{"mistral", 422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error"}`, "extra_forbidden", regie.CodeProviderRejected, false},
		{"vllm", 400, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}`, "--dialect json", regie.CodeProviderRejected, false},
		{"llamacpp", 500, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`, "--dialect json", regie.CodeProviderRejected, false},
		{"perplexity", 400, `{"error":{"message":"After the (optional) system message(s), user or tool message(s) should alternate with assistant message(s).","type":"invalid_message","code":400}}`, "should alternate", regie.CodeProviderRejected, false},
	} {
		p := serve(t, c.vendor, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		conversation, err := p.Open(provider.Head{Model: "m", MaxOutput: 100})
		if err != nil {
			t.Fatal(err)
		}
		conversation.Append(wiretest.Said(provider.RoleUser, "go"))
		_, err = conversation.Send(t.Context(), nil)
		failed, ok := errors.AsType[*provider.Error](err)
		if !ok || failed.Code != c.code || failed.Retryable != c.retryable || failed.Status != c.status || !strings.Contains(failed.Message, c.says) {
			t.Errorf("%s %d %s:\n%v (%s, again: %v), want %s: %s", c.vendor, c.status, c.body, err, provider.CodeOf(err), failed != nil && failed.Retryable, c.code, c.says)
		}
	}
}

// TestVendorLists is what vendors' lists of models say, from their documentation.
func TestVendorLists(t *testing.T) {
	known := provider.Capabilities{NativeTools: true}
	with := func(change func(c *provider.Capabilities)) provider.Capabilities {
		c := known
		change(&c)
		return c
	}
	for _, c := range []struct {
		vendor string
		bodies map[string]string
		want   map[string]provider.Capabilities
	}{
		{"openai", map[string]string{"/v1/models": `{"object":"list","data":[{"id":"gpt-5.4","object":"model","created":1686935002,"owned_by":"openai"}]}`}, map[string]provider.Capabilities{"gpt-5.4": known}},
		{
			"groq",
			map[string]string{"/v1/models": `{"data":[{"id":"openai/gpt-oss-120b","active":true,"context_window":131072,"public_apps":null,"max_completion_tokens":65536}]}`},
			map[string]provider.Capabilities{"openai/gpt-oss-120b": with(func(c *provider.Capabilities) { c.ContextTokens, c.MaxOutput, c.LeastOutput = 131072, 65536, 4000 })},
		},
		{
			"mistral",
			map[string]string{"/v1/models": `{"data":[{"id":"mistral-medium-latest","capabilities":{"completion_chat":true,"function_calling":true,"reasoning":true},"max_context_length":262144,"type":"base"},{"id":"mistral-embed","capabilities":{"completion_chat":false,"function_calling":false},"max_context_length":8192}]}`},
			map[string]provider.Capabilities{
				"mistral-medium-latest": with(func(c *provider.Capabilities) { c.ContextTokens, c.Thinking = 262144, true }),
				"mistral-embed":         with(func(c *provider.Capabilities) { c.ContextTokens, c.NativeTools = 8192, false }),
			},
		},
		{
			"openrouter",
			map[string]string{"/v1/models": `{"data":[{"id":"a/b","context_length":200000,"top_provider":{"context_length":200000,"max_completion_tokens":64000,"is_moderated":true},"architecture":{"modality":"text+image->text","input_modalities":["image","text"]},"supported_parameters":["max_tokens","tools","reasoning"]},{"id":"c/d","context_length":null,"top_provider":{"max_completion_tokens":null},"supported_parameters":["max_tokens"]}]}`},
			map[string]provider.Capabilities{
				"a/b": with(func(c *provider.Capabilities) {
					c.ContextTokens, c.MaxOutput, c.Thinking, c.Images = 200000, 64000, true, true
				}),
				"c/d": with(func(c *provider.Capabilities) { c.NativeTools = false }),
			},
		},
		{
			"vllm",
			map[string]string{"/v1/models": `{"object":"list","data":[{"id":"qwen3","object":"model","owned_by":"vllm","root":"qwen3","parent":null,"max_model_len":32768,"permission":[]}]}`},
			map[string]provider.Capabilities{"qwen3": with(func(c *provider.Capabilities) { c.ContextTokens, c.Free = 32768, true })},
		},
		{
			"lmstudio",
			map[string]string{
				"/v1/models":     `{"data":[{"id":"qwen3","object":"model"},{"id":"nomic","object":"model"}],"object":"list"}`,
				"/api/v0/models": `{"object":"list","data":[{"id":"qwen3","type":"vlm","state":"loaded","max_context_length":131072,"loaded_context_length":4096,"capabilities":["tool_use"]},{"id":"nomic","type":"embeddings","state":"not-loaded","max_context_length":2048}]}`,
			},
			map[string]provider.Capabilities{
				"qwen3": with(func(c *provider.Capabilities) { c.ContextTokens, c.Free, c.Images = 4096, true, true }),
				"nomic": with(func(c *provider.Capabilities) {
					c.ContextTokens, c.NativeTools, c.Free, c.Embeds = 2048, false, true, true
				}),
			},
		},
		{
			"llamacpp",
			map[string]string{
				"/v1/models": `{"models":[{"name":"q.gguf"}],"object":"list","data":[{"id":"q.gguf","object":"model","meta":{"vocab_type":2,"n_ctx_train":131072,"n_params":8030261312}}]}`,
				"/props":     `{"default_generation_settings":{"id":0,"n_ctx":8192},"total_slots":1,"modalities":{"vision":true,"audio":false}}`,
			},
			map[string]provider.Capabilities{"q.gguf": with(func(c *provider.Capabilities) { c.ContextTokens, c.Free, c.Images = 8192, true, true })},
		},
	} {
		p := serve(t, c.vendor, func(w http.ResponseWriter, r *http.Request) {
			body, ok := c.bodies[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, body)
		})
		models, err := p.Models(t.Context())
		if err != nil {
			t.Errorf("%s: %v", c.vendor, err)
			continue
		}
		got := map[string]provider.Capabilities{}
		for _, m := range models {
			got[m.Name] = m.Capabilities
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.vendor, diff)
		}
		// These servers are asked before the first prompt is made, so that none is larger than it
		// takes, and images are shown to models that take them.
		asked := slices.Contains([]string{"vllm", "lmstudio", "llamacpp", "openrouter"}, c.vendor)
		for name, can := range c.want {
			if got := p.Capabilities(name); asked && (got.ContextTokens != can.ContextTokens || got.Images != can.Images) ||
				!asked && (got.ContextTokens != 0 || got.Images) {
				t.Errorf("%s: the window of %s is %d, images %v", c.vendor, name, got.ContextTokens, got.Images)
			}
		}
	}
}

// TestEffort is what each vendor is told of how hard to think.
func TestEffort(t *testing.T) {
	const tools = true
	for _, c := range []struct {
		vendor, model, effort string
		tools                 bool
		want                  string
	}{
		{"", "m", "high", tools, `"reasoning_effort":"high"`},
		{"", "m", "", tools, ``},
		{"openai", "gpt-5.5", "", tools, ``},
		{"openai", "gpt-5.6-terra", "", tools, `"reasoning_effort":"none"`},
		{"openai", "gpt-6", "", tools, `"reasoning_effort":"none"`},
		{"openai", "gpt-5.6-terra", "", false, ``},
		{"openai", "gpt-5.6-terra", "max", false, `"reasoning_effort":"xhigh"`},
		{"openai", "o4-mini", "low", tools, `"reasoning_effort":"low"`},
		{"groq", "qwen/qwen3-32b", "", false, `"reasoning_format":"parsed"`},
		{"groq", "qwen/qwen3-32b", "high", tools, `"reasoning_effort":"default"`},
		{"groq", "qwen/qwen3-32b", "", tools, ``},
		{"groq", "qwen/qwen3-32b", "none", false, `"reasoning_format":"parsed","reasoning_effort":"none"`},
		{"groq", "openai/gpt-oss-20b", "none", tools, `"reasoning_effort":"low"`},
		{"groq", "openai/gpt-oss-20b", "max", tools, `"reasoning_effort":"high"`},
		{"deepseek", "deepseek-flash", "none", tools, `"thinking":{"type":"disabled"}`},
		{"deepseek", "deepseek-flash", "max", tools, `"thinking":{"type":"enabled"},"reasoning_effort":"max"`},
		{"mistral", "mistral-small-latest", "low", tools, `"reasoning_effort":"high"`},
		{"mistral", "mistral-small-latest", "none", tools, `"reasoning_effort":"none"`},
		{"mistral", "mistral-large-latest", "minimal", tools, `"reasoning_effort":"high"`},
		{"mistral", "magistral-medium-latest", "high", tools, ``},
		{"openrouter", "a/b", "max", tools, `"reasoning":{"effort":"xhigh"}`},
		{"vllm", "qwen3", "none", tools, `"chat_template_kwargs":{"enable_thinking":false}`},
		{"vllm", "gpt-oss", "xhigh", tools, `"reasoning_effort":"high"`},
		{"llamacpp", "q", "minimal", tools, `"chat_template_kwargs":{"enable_thinking":true,"reasoning_effort":"low"}`},
		{"perplexity", "sonar-reasoning-pro", "none", false, `"reasoning_effort":"minimal"`},
	} {
		head := provider.Head{Model: c.model, MaxOutput: 5000, ReasoningEffort: c.effort}
		if c.tools {
			head.Tools = []provider.Tool{{Name: "f", Parameters: json.RawMessage(`{"type":"object"}`)}}
		}
		body := string(openai.Body(c.vendor, head, provider.Tail{}, wiretest.Said(provider.RoleUser, "go")))
		_, rest, _ := strings.Cut(body, `":5000,`)
		got, _, _ := strings.Cut(rest, `"tools":`)
		got, _, _ = strings.Cut(got, `"messages":`)
		if got = strings.TrimSuffix(got, ","); got != c.want {
			t.Errorf("%s %s, effort %q, tools %v: %s, want %s", c.vendor, c.model, c.effort, c.tools, got, c.want)
		}
		if err := strict.ChatVendor(c.vendor, []byte(body)); err != nil {
			t.Errorf("%s %s, effort %q: %v", c.vendor, c.model, c.effort, err)
		}
	}
}

// TestNoToolsNoCalls: a vendor without calls is not asked for some.
func TestNoToolsNoCalls(t *testing.T) {
	p, err := openai.New(openai.Config{Name: "x", BaseURL: "https://api.perplexity.ai", Vendor: "perplexity"})
	if err != nil {
		t.Fatal(err)
	}
	if p.Capabilities("sonar").NativeTools {
		t.Error("it makes calls")
	}
	if _, err := p.Open(provider.Head{Model: "sonar", MaxOutput: 9, Tools: []provider.Tool{{Name: "f"}}}); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Errorf("tools are taken: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Models(ctx); err == nil {
		t.Error("a list without a server")
	}
}
