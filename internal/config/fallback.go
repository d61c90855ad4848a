package config

import (
	"cmp"
	"strings"

	"github.com/regie-run/regie"
)

// Fallback is a provider that goes on where an agent's own does not answer, with its model.
type Fallback struct{ Provider, Model string }

// Fallbacks are those of an agent, in their order (spec 3.6). It returns CodeBadRequest for a
// provider that is not configured, or of which no model is known.
func (c *Config) Fallbacks(name string) ([]Fallback, error) {
	agent := c.File.Agents[name]
	if len(agent.Fallback) == 0 {
		return nil, nil
	}
	path := c.sourceOf("agents.main.fallback")
	if agent.Provider == "" { // else whatever is chosen on a command line would bring others with it
		return nil, regie.Errorf(regie.CodeBadRequest,
			"agents.%s.fallback in %s needs agents.%s.provider: name the provider that they stand in for", name, path,
			name)
	}
	var out []Fallback
	for _, entry := range agent.Fallback {
		provider, model, _ := strings.Cut(entry, "/")
		p, configured := c.Providers[provider]
		switch {
		case provider == agent.Provider:
			return nil, regie.Errorf(regie.CodeBadRequest, "agents.%s.fallback in %s names %s, which is its provider",
				name, path, provider)
		case provider == ProviderDemo:
			model = ProviderDemo
		case !configured:
			return nil, regie.Errorf(regie.CodeBadRequest,
				"agents.%s.fallback in %s names %q, which is not configured: use %s", name, path, provider,
				strings.Join(c.ProviderNames(), ", "))
		}
		model = cmp.Or(p.Models[model], model, p.Models[agent.Model], p.Models[DefaultSize])
		if model == "" {
			return nil, regie.Errorf(regie.CodeBadRequest,
				"agents.%s.fallback in %s names %s, of which no model is known: write %s/MODEL, or give it models",
				name, path, provider, provider)
		}
		out = append(out, Fallback{provider, model})
	}
	return out, nil
}

// FallsBack reports whether an agent's fallbacks stand in for a provider: they do for the one that
// the file names, not for one that a command line or a variable has put in its place, whose owner
// may want that its words go nowhere else.
func (c *Config) FallsBack(name, provider string) bool {
	return provider != "" && c.File.Agents[name].Provider == provider
}
