package config

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// openAIHost is where OpenAI's own server is; those of its regions stand below it.
const openAIHost = "api.openai.com"

// vendor holds the defaults of a vendor: the address, the variable of the key, and its large,
// medium and small model. Models age faster than programs, so these names serve only where nothing
// else names a model. The codec knows how the vendor deviates on the wire and gets only its name
// (see Wire).
type vendor struct {
	kind, address, key string
	large, medium      string
	small              string
}

// vendors are those that need no more than a name. Model names are from November 2026.
var vendors = map[string]vendor{
	"anthropic": {
		ProviderAnthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY",
		"claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5",
	},
	"openai": {
		ProviderOpenAI, "https://api.openai.com/v1", "OPENAI_API_KEY",
		"gpt-5.5", "gpt-5.4", "gpt-5.4-mini",
	},
	"gemini": {
		ProviderGemini, "https://generativelanguage.googleapis.com", "GEMINI_API_KEY",
		"gemini-3.1-pro-preview", "gemini-3.5-flash", "gemini-3.1-flash-lite",
	},
	"groq": {
		ProviderOpenAI, "https://api.groq.com/openai/v1", "GROQ_API_KEY",
		"openai/gpt-oss-120b", "openai/gpt-oss-120b", "openai/gpt-oss-20b",
	},
	"deepseek": {
		ProviderOpenAI, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY",
		"deepseek-v4-pro", "deepseek-flash", "deepseek-flash",
	},
	"mistral": {
		ProviderOpenAI, "https://api.mistral.ai/v1", "MISTRAL_API_KEY",
		"mistral-large-latest", "mistral-medium-latest", "mistral-small-latest",
	},
	"openrouter": {
		ProviderOpenAI, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY",
		"anthropic/claude-opus-5.5", "anthropic/claude-sonnet-5.5", "openai/gpt-5.4-mini",
	},
	"perplexity": {
		ProviderOpenAI, "https://api.perplexity.ai", "PERPLEXITY_API_KEY",
		"sonar-reasoning-pro", "sonar-pro", "sonar",
	},
	"vllm":     {kind: ProviderOpenAI},
	"lmstudio": {kind: ProviderOpenAI, address: "http://127.0.0.1:1234/v1"},
	"llamacpp": {kind: ProviderOpenAI, address: "http://127.0.0.1:8080/v1"},
	"ollama":   {kind: ProviderOllama, address: "http://127.0.0.1:11434"},
}

// Vendors returns the sorted names of the vendors with servers of a type.
func Vendors(kind string) []string {
	var out []string
	for name, v := range vendors {
		if kind == "" || v.kind == kind {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Wire returns the vendor of a server, one of Vendors of its type, or "" where it is unknown. The
// setting decides, else the address if it lies in a vendor's domain, else the provider's name
// unless that is only its type.
func (p *Provider) Wire() string {
	if p.Vendor != "" {
		return p.Vendor
	}
	if name := vendorAt(p.BaseURL, Vendors(p.Type)); name != "" {
		return name
	}
	if known, ok := vendors[p.Name]; ok && known.kind == p.Type && p.Name != p.Type {
		return p.Name
	}
	return ""
}

// hostDomain returns what the vendor's hosts end in; empty for a server of one's own.
func (v vendor) hostDomain() string {
	u, err := url.Parse(v.address)
	if err != nil || net.ParseIP(u.Hostname()) != nil {
		return ""
	}
	labels := strings.Split(u.Hostname(), ".")
	return strings.Join(labels[max(0, len(labels)-2):], ".")
}
