package config

import (
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// providerTypes are the types of an entry below providers, in the order of the search for a key in
// the environment.
var providerTypes = []string{ProviderAnthropic, ProviderOpenAI, ProviderGemini, ProviderOllama}

// TypeNames are the names of the types that are configured below providers.
func TypeNames() []string { return slices.Clone(providerTypes) }

// KeyVariables returns the variables that are searched for a key without any configuration.
func KeyVariables() (out []string) {
	for _, name := range providerTypes {
		if key := vendors[name].key; key != "" {
			out = append(out, key)
		}
	}
	return out
}

// checkType returns CodeBadRequest for an unknown type, and for a setting that the type does not
// have; path is the file that the entry is from.
func (p *Provider) checkType(path string) error {
	if !slices.Contains(providerTypes, p.Type) {
		return regie.Errorf(regie.CodeBadRequest, "the provider %s (in %s) has no known type: use %s", p.Name,
			path, strings.Join(providerTypes, ", "))
	}
	ollama, openAI := p.Type == ProviderOllama, p.Type == ProviderOpenAI
	for _, setting := range []struct {
		key         string
		given, fits bool
	}{
		{"api", p.API != "", openAI},
		{"service_tier", p.ServiceTier != "", openAI || p.Type == ProviderAnthropic},
		{"num_ctx", p.NumCtx != 0, ollama},
		{"keep_alive", p.KeepAlive != "", ollama},
	} {
		if setting.given && !setting.fits {
			return regie.Errorf(regie.CodeBadRequest,
				"the provider %s (in %s) is of type %s, which has no setting %s: leave it out", p.Name, path, p.Type,
				setting.key)
		}
	}
	return nil
}
