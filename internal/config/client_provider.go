package config

import (
	"maps"
)

// ClientProvider is the provider that a client chose, with its settings and its resolved key: what
// it hands to the engine of its data directory for its own runs (decision 54). No rule, limit, hook
// or server of a client's configuration goes with it.
type ClientProvider struct {
	Name    string `json:"name" required:"true"`
	Type    string `json:"type,omitempty"`
	Vendor  string `json:"vendor,omitempty"`
	API     string `json:"api,omitempty"`
	BaseURL string `json:"base_url,omitempty"`
	APIKey  string `json:"api_key,omitempty"`
	// KeyFrom is where the key stands, or the key itself where a file holds it, as FingerprintOf
	// counts it.
	KeyFrom     string            `json:"key_from,omitempty"`
	Model       string            `json:"model,omitempty"`
	Models      map[string]string `json:"models,omitempty"`
	NumCtx      int               `json:"num_ctx,omitempty"`
	KeepAlive   string            `json:"keep_alive,omitempty"`
	ServiceTier string            `json:"service_tier,omitempty"`
	Prices      map[string]Rates  `json:"prices,omitempty"`
	Replay      string            `json:"replay,omitempty"`
	Record      string            `json:"record,omitempty"`
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
	return ClientProvider{
		Name: p.Name, Type: p.Type, Vendor: p.Vendor, API: p.API, BaseURL: p.BaseURL, APIKey: p.APIKey,
		KeyFrom: configured.keyNamed(), Model: c.Model, Models: p.Models, NumCtx: p.NumCtx, KeepAlive: p.KeepAlive,
		ServiceTier: p.ServiceTier, Prices: p.Prices, Replay: c.Replay, Record: c.Record,
	}, true
}

// With returns these settings with a client's provider in place of the chosen one. It returns
// CodeBadRequest for an address that is none.
func (c *Config) With(in ClientProvider) (Config, error) {
	out := *c
	if in.Name != ProviderReplay {
		if err := checkAddress(in.BaseURL, in.Name); err != nil {
			return Config{}, err
		}
	}
	out.Provider, out.BaseURL, out.APIKey, out.Model = in.Name, in.BaseURL, in.APIKey, in.Model
	out.Replay, out.Record = in.Replay, in.Record
	out.Origin = maps.Clone(c.Origin)
	out.Providers = maps.Clone(c.Providers)
	if out.Providers == nil {
		out.Providers = map[string]Provider{}
	}
	out.Providers[in.Name] = Provider{
		Name: in.Name, Type: in.Type, Vendor: in.Vendor, API: in.API, BaseURL: in.BaseURL, APIKey: in.APIKey,
		Models: in.Models, NumCtx: in.NumCtx, KeepAlive: in.KeepAlive, ServiceTier: in.ServiceTier, Prices: in.Prices,
		keyFrom: &in.KeyFrom, Origin: map[string]string{},
	}
	return out, nil
}
