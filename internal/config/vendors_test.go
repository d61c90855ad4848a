package config

import (
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestWire: whose ways a server has follows from what the settings say, from a vendor's domain and
// nothing that only looks like one, or from the provider's name.
func TestWire(t *testing.T) {
	for _, c := range []struct {
		name, vendor, address, want string
	}{
		{"lab", "", "https://api.groq.com/openai/v1", "groq"},
		{"lab", "", "https://API.Groq.COM./openai/v1", "groq"},
		{"lab", "", "https://eu.api.mistral.ai:443/v1", "mistral"},
		{"lab", "", "https://openrouter.ai/api/v1", "openrouter"},
		{"lab", "", "https://deepseek.com/v1", "deepseek"},
		{"lab", "", "https://api.perplexity.ai", "perplexity"},
		{"openai", "", "https://api.openai.com/v1", "openai"},
		{"lab", "", "https://notopenai.com/v1", ""},
		{"lab", "", "https://openai.com.evil.example/v1", ""},
		{"lab", "", "https://evil.example/openai.com", ""},
		{"lab", "", "https://evil.example/?h=openai.com", ""},
		{"lab", "", "https://openai.com@evil.example/v1", ""},
		{"lab", "", "https://xgroq.com/v1", ""},
		{"lab", "", "http://127.0.0.1:1234/v1", ""}, // where LM Studio listens, and many others
		{"lab", "vllm", "https://api.groq.com/openai/v1", "vllm"},
		{"lmstudio", "", "http://10.0.0.7:1234/v1", "lmstudio"},
		{"groq", "", "http://127.0.0.1:9/v1", "groq"},
		{"groq", "", "https://api.mistral.ai/v1", "mistral"},
		{"openai", "", "http://127.0.0.1:8000/v1", ""}, // so is any server called that nobody has named
		{"anthropic", "", "http://127.0.0.1:8000/v1", ""},
		{"lab", "", "://", ""},
	} {
		p := Provider{Name: c.name, Type: ProviderOpenAI, Vendor: c.vendor, BaseURL: c.address}
		if got := p.Wire(); got != c.want {
			t.Errorf("%s %q at %s: %q, want %q", c.name, c.vendor, c.address, got, c.want)
		}
	}
	for name, v := range vendors {
		if (v.key != "") != (v.large != "") || (v.large == "") != (v.medium == "") || (v.large == "") != (v.small == "") {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestAsking is what a file may say of how a model is asked.
func TestAsking(t *testing.T) {
	c, err := load(t, `
providers:
  groq: {service_tier: flex}
  own: {type: openai, base_url: "http://127.0.0.1:1/v1", service_tier: batch-2}
  claude: {type: anthropic, service_tier: standard_only}
agents: {main: {provider: groq, reasoning_effort: xhigh, parallel_tool_calls: false}}
`, map[string]string{"GROQ_API_KEY": "g"})
	if err != nil {
		t.Fatal(err)
	}
	agent := c.File.Agents["main"]
	if agent.ReasoningEffort != "xhigh" || agent.ParallelToolCalls == nil || *agent.ParallelToolCalls || c.Model != "openai/gpt-oss-120b" || c.APIKey != "g" {
		t.Errorf("%+v, model %s", agent, c.Model)
	}
	for name, want := range map[string]string{"groq": "flex", "own": "batch-2", "claude": "standard_only"} {
		if p, _ := c.Named(name); p.ServiceTier != want || p.Origin["service_tier"] != c.Origin["file"] {
			t.Errorf("%s: %+v", name, p)
		}
	}
	same, err := load(t, "providers: {groq: {service_tier: auto}}\nagents: {main: {provider: groq}}", map[string]string{"GROQ_API_KEY": "g"})
	if err != nil || same.FingerprintOf("groq") != c.FingerprintOf("groq") {
		t.Errorf("another tier keeps runs that wait from going on (%v): a run has its own", err)
	}
	for content, says := range map[string]string{
		"agents: {main: {reasoning_effort: very}}":               "use none, minimal, low",
		"agents: {main: {parallel_tool_calls: [no]}}":            "a list was found where true or false belongs",
		"providers: {local: {type: ollama, service_tier: flex}}": "no setting service_tier",
	} {
		if _, err := load(t, content, nil); regie.CodeOf(err) != regie.CodeBadRequest || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", content, err, says)
		}
	}
}
