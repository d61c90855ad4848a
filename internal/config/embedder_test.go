package config

import (
	"strings"
	"testing"
)

// TestEmbedder: the embedder is a configured provider, with its address and key and what command
// lines make of them; Ollama needs no entry.
func TestEmbedder(t *testing.T) {
	const file = `
providers:
  lab: {type: openai, base_url: "http://127.0.0.1:1/v1", api_key_env: LAB_KEY, models: {vectors: lab-embed}}
  claude: {type: anthropic}
embedder: {EMBEDDER}
`
	env := map[string]string{"LAB_KEY": "k", "OLLAMA_HOST": "10.0.0.7", "OPENAI_API_KEY": "o"}
	for embedder, want := range map[string]struct{ provider, address, key, model, refused string }{
		"provider: lab, model: m":                   {"lab", "http://127.0.0.1:1/v1", "k", "m", ""},
		"provider: lab, model: vectors":             {"lab", "http://127.0.0.1:1/v1", "k", "lab-embed", ""},
		"provider: ollama, model: nomic-embed-text": {"ollama", "http://10.0.0.7:11434", "", "nomic-embed-text", ""},
		// by its key in the environment
		"provider: openai, model: m":               {"openai", "https://api.openai.com/v1", "o", "m", ""},
		"provider: lab, model: m, dimensions: 512": {"lab", "http://127.0.0.1:1/v1", "k", "m", ""},
		"model: m":                  {refused: "embedder.provider is missing"},
		"provider: lab":             {refused: "embedder.model is missing"},
		"provider: lab, model: ' '": {refused: "embedder.model is missing"},
		"provider: lab, model: m, dimensions: -1":    {refused: "embedder.dimensions must be"},
		"provider: lab, model: m, dimensions: 99999": {refused: "embedder.dimensions must be"},
		"provider: claude, model: m":                 {refused: "has no embeddings"},
		"provider: demo, model: m":                   {refused: "has no embeddings"},
		"provider: gemini, model: m":                 {refused: "which is not configured: use claude, lab, ollama, openai"},
		"provider: lab, modl: m":                     {refused: "did you mean model?"},
	} {
		c, err := load(t, strings.Replace(file, "EMBEDDER", embedder, 1), env)
		if want.refused != "" {
			if err == nil || !strings.Contains(err.Error(), want.refused) {
				t.Errorf("%s: %v", embedder, err)
			}
			continue
		}
		p, e, ok := c.Embedding()
		if err != nil || ok != (want.model != "") || p.Name != want.provider || p.BaseURL != want.address || p.APIKey != want.key || e.Model != want.model {
			t.Errorf("%s: %+v %+v, %v", embedder, p, e, err)
		}
		if ok != (c.Origin["embedder"] != "") || c.Provider != "" {
			t.Errorf("%s: from %q, and %q is chosen", embedder, c.Origin["embedder"], c.Provider)
		}
	}
}
