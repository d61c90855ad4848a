package config

import (
	"maps"
)

// ClientProvider is the provider that a client chose, with its settings and its resolved key: what
// it hands to the engine of its data directory for its own runs (decision 54). No rule, limit, hook
// or server of a client's configuration goes with it.
type ClientProvider struct {
	Provider Provider `json:"provider" required:"true"`
	// KeyFrom names the source of the key, or is the key itself where a file holds it, as
	// FingerprintOf counts it.
	KeyFrom string `json:"key_from,omitempty"`
	Model   string `json:"model,omitempty"`
	Replay  string `json:"replay,omitempty"`
	Record  string `json:"record,omitempty"`
}

// ClientProvider returns what a client with these settings hands to another process's engine; ok is
// false where it chose no provider, or the demo, which is the same everywhere.
func (c *Config) ClientProvider() (out ClientProvider, ok bool) {
	if c.Provider == "" || c.Provider == ProviderDemo || c.Server != "" {
		return ClientProvider{}, false
	}
	p, _ := c.Named(c.Provider)
	if p.Keyless() != nil { // its runs are told why
		p.APIKey = ""
	}
	configured := c.Providers[c.Provider]
	return ClientProvider{p, configured.keyNamed(), c.Model, c.Replay, c.Record}, true
}

// With returns these settings with a client's provider as the chosen one. It returns CodeBadRequest
// for an invalid address.
func (c *Config) With(in ClientProvider) (Config, error) {
	out, p := *c, in.Provider
	if p.Name != ProviderReplay {
		if err := checkAddress(p.BaseURL, p.Name); err != nil {
			return Config{}, err
		}
	}
	out.Provider, out.BaseURL, out.APIKey, out.Model = p.Name, p.BaseURL, p.APIKey, in.Model
	out.Replay, out.Record = in.Replay, in.Record
	out.Origin = maps.Clone(c.Origin)
	out.Providers = maps.Clone(c.Providers)
	if out.Providers == nil {
		out.Providers = map[string]Provider{}
	}
	p.APIKeyEnv, p.keyFrom, p.Origin = "", &in.KeyFrom, map[string]string{} // a variable of the client's
	out.Providers[p.Name] = p
	return out, nil
}
