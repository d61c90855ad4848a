package config

import (
	"cmp"
	"strings"

	"github.com/regie-run/regie"
)

// Fallback is a provider that goes on where an agent's own does not answer, with its model.
type Fallback struct{ Provider, Model string }

// Fallbacks returns the fallbacks of an agent in order (spec 3.6). It returns CodeBadRequest for a
// provider that is not configured or has no known model.
func (c *Config) Fallbacks(name string, agent *Agent) ([]Fallback, error) {
	if len(agent.Fallback) == 0 {
		return nil, nil
	}
	if agent.Provider == "" { // else whatever is chosen on a command line would bring others with it
		return nil, regie.Errorf(regie.CodeBadRequest,
			"the fallback of the agent %s needs its provider: name the primary one with agents.%s.provider", name, name)
	}
	var out []Fallback
	for _, entry := range agent.Fallback {
		provider, model, _ := strings.Cut(entry, "/")
		p, configured := c.Providers[provider]
		switch {
		case provider == agent.Provider:
			return nil, regie.Errorf(regie.CodeBadRequest, "the fallback of the agent %s names %s, which is its provider",
				name, provider)
		case provider == ProviderDemo:
			model = ProviderDemo
		case !configured:
			return nil, regie.Errorf(regie.CodeBadRequest,
				"the fallback of the agent %s names %q, which is not configured: use %s", name, provider,
				strings.Join(c.ProviderNames(), ", "))
		}
		model = cmp.Or(p.Models[model], model, p.Models[agent.Model], p.Models[DefaultSize])
		if model == "" {
			return nil, regie.Errorf(regie.CodeBadRequest,
				"the fallback of the agent %s names %s, of which no model is known: write %s/MODEL, or give it models",
				name, provider, provider)
		}
		out = append(out, Fallback{provider, model})
	}
	return out, nil
}
