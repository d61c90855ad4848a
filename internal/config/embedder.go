package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// Embedder is what turns texts into vectors, for the search by meaning (spec 8.3, 13). Without one
// that search is lexical.
type Embedder struct {
	// Provider is the name of a configured provider, or ollama where that runs on this machine.
	Provider string `yaml:"provider"`
	// Model is its embedding model: a name, or one of the provider's models.
	Model string `yaml:"model"`
	// Dimensions is how many a vector is to have, for models that can shorten theirs; 0 leaves it
	// to the model.
	Dimensions int `yaml:"dimensions"`
}

// settleEmbedder takes what the file says of the embedder, with the address and key of its
// provider.
func (c *Config) settleEmbedder(env func(string) string) error {
	e, path := c.File.Embedder, c.sourceOf("embedder")
	if e == (Embedder{}) {
		return nil
	}
	c.Origin["embedder"] = path
	p, configured := c.Named(e.Provider)
	switch {
	case !configured && e.Provider == ProviderOllama:
		p = Provider{Name: ProviderOllama, Origin: map[string]string{}}
		p.BaseURL, p.Origin["base_url"] = OllamaAddress(env)
		if err := p.completeProvider(env, p.Origin["base_url"]); err != nil {
			return err
		}
	case e.Provider == ProviderDemo || e.Provider == ProviderReplay || p.Type == ProviderAnthropic:
		return regie.Errorf(regie.CodeBadRequest,
			"embedder.provider in %s is %s, which has no embeddings: use Ollama, an OpenAI-compatible server or Gemini",
			path, e.Provider)
	case !configured:
		return regie.Errorf(regie.CodeBadRequest, "embedder.provider in %s names %q, which is not configured: use %s",
			path, e.Provider,
			strings.Join(slices.Compact(slices.Sorted(slices.Values(append(c.ProviderNames(), ProviderOllama)))), ", "))
	}
	e.Model = cmp.Or(p.Models[e.Model], e.Model)
	c.embedder, c.embeds = p, e
	return nil
}

// Embedding returns the provider for embeddings, with its address and key, and the model and
// options to request. ok is false where none is configured.
func (c *Config) Embedding() (p Provider, e Embedder, ok bool) {
	p = c.embedder
	p.Origin = maps.Clone(p.Origin)
	return p, c.embeds, c.embeds.Model != ""
}
