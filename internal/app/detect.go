package app

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

const (
	// knockTime bounds the looking for a server on this machine: where nothing listens that is
	// known at once.
	knockTime = 300 * time.Millisecond
	// detectTime bounds what one that listens may take for its list, so that the first screen is
	// there within a second (spec 10.1).
	detectTime = 900*time.Millisecond - knockTime
)

// Found is what was found without asking anybody but this machine (spec 10.1).
type Found struct {
	// Keys are the configured providers that could answer: those of the files, and those whose key
	// is in the environment.
	Keys []string
	// Ollama is where it was looked for; OllamaOrigin says why there.
	Ollama, OllamaOrigin string
	// Elsewhere says that Ollama's address is another machine's, which is not asked.
	Elsewhere bool
	// Running says that it answered, with Models.
	Running bool
	Models  []provider.Model
	// Slow says that something listens there, and has not answered in time.
	Slow bool
}

// Detect looks for models: in the settings, and for Ollama on this machine. Where nothing listens
// it takes at most 300 ms, else less than a second. Nobody else is asked.
func Detect(ctx context.Context, c config.Config, env func(string) string) Found {
	var f Found
	for _, name := range c.ProviderNames() {
		if p, _ := c.Named(name); usable(p) {
			f.Keys = append(f.Keys, name)
		}
	}
	f.Ollama, f.OllamaOrigin = config.OllamaAddress(env)
	if u, err := url.Parse(f.Ollama); err != nil || !wire.IsLoopback(u.Hostname()) {
		f.Elsewhere = true
		return f
	}
	if !listens(ctx, f.Ollama) {
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, detectTime)
	defer cancel()
	models, err := list(ctx, config.Provider{
		Name: config.ProviderOllama,
		Type: config.ProviderOllama, BaseURL: f.Ollama,
	})
	f.Running, f.Models, f.Slow = err == nil, models, err != nil && ctx.Err() != nil
	return f
}

// listens reports whether anything takes connections at an address of this machine.
func listens(ctx context.Context, address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
	}
	ctx, cancel := context.WithTimeout(ctx, knockTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(port, "80")))
	if err == nil {
		_ = conn.Close() // it was only knocked at
	}
	return err == nil
}

// usable reports whether a provider can be asked as it is: a server of others wants a key, and one
// of its own. An address that is none is told so by who asks it.
func usable(p config.Provider) bool {
	u, err := url.Parse(p.BaseURL)
	return p.APIKey != "" && p.ForeignKey() == "" || p.BaseURL != "" &&
		(err != nil || u.Host == "" || wire.IsLoopback(u.Hostname()))
}

// list asks a provider for its models.
func list(ctx context.Context, settings config.Provider) ([]provider.Model, error) {
	if err := settings.Keyless(); err != nil {
		return nil, err
	}
	p, err := newProvider(settings, 0)
	if err != nil {
		return nil, err
	}
	lister, ok := p.(provider.Lister)
	if !ok {
		return nil, regie.Errorf(regie.CodeInternal, "the provider %s has no list of models", settings.Name)
	}
	return lister.Models(ctx)
}

// capable are the models that can call tools, in their order; without any, none.
func capable(models []provider.Model) (names []string) {
	for i := range models {
		if models[i].NativeTools {
			names = append(names, models[i].Name)
		}
	}
	return names
}

// Settle chooses a model where the settings name none and there is exactly one that could be meant;
// it reports whether it did. Where the provider is named and its model is not, a server on this
// machine is asked for its models.
func Settle(ctx context.Context, c *config.Config, env func(string) string) (found Found, chose bool) {
	switch {
	case c.Provider != "" && c.Model != "":
		return found, false
	case c.Provider != "":
		return found, settleModel(ctx, c)
	}
	found = Detect(ctx, *c, env)
	names := capable(found.Models)
	known := false
	for _, name := range found.Keys {
		p, _ := c.Named(name)
		known = known || strings.TrimRight(p.BaseURL, "/") == found.Ollama
	}
	switch {
	case len(found.Keys) == 1 && (known || len(names) == 0):
		p, _ := c.Named(found.Keys[0])
		c.Choose(p, "", cmp.Or(p.Origin["api_key"], p.Origin["base_url"], p.Origin["type"]))
		if c.Model == "" {
			settleModel(ctx, c)
		}
		return found, true
	case len(found.Keys) == 0 && len(names) > 0:
		p := config.Provider{
			Name: config.ProviderOllama, Type: config.ProviderOllama, BaseURL: found.Ollama,
			Origin: map[string]string{"base_url": found.OllamaOrigin, "type": "default"},
		}
		c.Choose(p, names[0], "ollama")
		return found, true
	}
	return found, false
}

// settleModel asks a server on this machine for its models and takes the newest that can call
// tools.
func settleModel(ctx context.Context, c *config.Config) bool {
	p, ok := c.Named(c.Provider)
	u, err := url.Parse(p.BaseURL)
	if !ok || err != nil || !wire.IsLoopback(u.Hostname()) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, detectTime)
	defer cancel()
	models, err := list(ctx, p)
	names := capable(models)
	if err != nil || len(names) == 0 || p.Type != config.ProviderOllama && len(names) > 1 {
		return false
	}
	c.Choose(p, names[0], p.BaseURL)
	return true
}

// ModelInfo is a model with what it can do.
type ModelInfo struct {
	Name          string `json:"name"`
	Tools         bool   `json:"tools"`
	Thinking      bool   `json:"thinking"`
	Embeds        bool   `json:"embeds,omitempty"`
	ContextTokens int    `json:"context_tokens,omitempty"` // 0 = unknown
	MaxOutput     int    `json:"max_output,omitempty"`     // tokens; 0 = unknown
	Chosen        bool   `json:"chosen,omitempty"`
	Price         Price  `json:"price"`
}

// Price is what a model costs, in millionths of a US dollar for a million tokens; the rates mean
// nothing unless Known (spec 6.3).
type Price struct {
	Known       bool  `json:"known"`
	Input       int64 `json:"input_microusd"`
	CachedInput int64 `json:"cached_input_microusd"`
	CacheWrite  int64 `json:"cache_write_microusd"`
	Output      int64 `json:"output_microusd"`
	// UpTo is the largest prompt that the rates are for, in tokens; 0 bounds it not.
	UpTo int64 `json:"up_to_tokens,omitempty"`
}

// priceOf is what a model of a provider costs: a free one nothing, unless the file says otherwise
// (decision 29).
func priceOf(c *config.Config, provider, model string, free bool) Price {
	p, stated, known := c.Price(provider, model)
	if free && !stated {
		return Price{Known: true}
	}
	if !known {
		return Price{}
	}
	return Price{
		Known: true, Input: p.Input, CachedInput: p.CachedInput, CacheWrite: p.CacheWrite,
		Output: p.Output, UpTo: p.UpTo,
	}
}

// ProviderInfo is a configured provider as it stands: where it comes from, whether it answers, and
// what it has.
type ProviderInfo struct {
	Name      string     `json:"name"`
	Type      string     `json:"type"`
	API       string     `json:"api,omitempty"` // of type openai: chat or responses
	BaseURL   string     `json:"base_url,omitempty"`
	HasKey    bool       `json:"has_key"`
	Chosen    bool       `json:"chosen"`
	Local     bool       `json:"local"` // on this machine
	Reachable bool       `json:"reachable"`
	Code      regie.Code `json:"code,omitempty"`
	Error     string     `json:"error,omitempty"`
	// what Error says, for people; nil where another engine has asked
	Failure error          `json:"-"`
	Said    regie.Sentence `json:"-"` // what Error says where another engine has asked
	// whose ways it has on the wire; empty where nobody knows
	Vendor string            `json:"vendor,omitempty"`
	Tier   string            `json:"service_tier,omitempty"` // empty leaves it to the account
	Sizes  map[string]string `json:"sizes,omitempty"`        // small, medium, large and other names for models
	Models []ModelInfo       `json:"models,omitempty"`
	Origin map[string]string `json:"origin,omitempty"`
}

// ListModels asks every configured provider, side by side, what it has; a provider without its key
// is not asked. Each is given the timeout.
func ListModels(ctx context.Context, c config.Config, timeout time.Duration) []ProviderInfo {
	names := c.ProviderNames()
	out := make([]ProviderInfo, len(names))
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { out[i] = inspect(ctx, &c, name, timeout) })
	}
	group.Wait()
	return out
}

// inspect asks a provider what it has; within is how long ctx leaves it for that.
func inspect(ctx context.Context, c *config.Config, name string, within time.Duration) ProviderInfo {
	p, _ := c.Named(name)
	info := ProviderInfo{
		Name: name, Type: p.Type, API: p.Speaks(), BaseURL: p.BaseURL, HasKey: p.APIKey != "",
		Chosen: name == c.Provider, Sizes: p.Models, Origin: p.Origin,
		Vendor: p.Wire(), Tier: p.ServiceTier,
	}
	if u, err := url.Parse(p.BaseURL); err == nil {
		info.Local = wire.IsLoopback(u.Hostname())
	}
	if err := p.Keyless(); err != nil {
		info.Code, info.Error, info.Failure = regie.CodeProviderAuth, err.Error(), err
		return info
	}
	if !usable(p) {
		info.Code = regie.CodeProviderAuth
		return info
	}
	models, err := list(ctx, p)
	if errors.Is(err, context.DeadlineExceeded) {
		err = regie.Errorf(regie.CodeTimeout, "%s did not answer within %s", p.BaseURL, within.String())
	}
	if err != nil {
		info.Code, info.Error, info.Failure = provider.CodeOf(err), err.Error(), err
		return info
	}
	info.Reachable = true
	for i := range models {
		m := &models[i]
		info.Models = append(info.Models, ModelInfo{
			Name: m.Name, Tools: m.NativeTools, Thinking: m.Thinking, Embeds: m.Embeds,
			ContextTokens: m.ContextTokens, MaxOutput: m.MaxOutput,
			Chosen: info.Chosen && m.Name == c.Model, Price: priceOf(c, name, m.Name, m.Free),
		})
	}
	return info
}

// tryTime bounds the trying of a provider.
const tryTime = 20 * time.Second

// TryProvider asks a provider of settings that are not stored yet for its models: whether it is
// there, and takes the key.
func TryProvider(ctx context.Context, p config.Provider) ([]ModelInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	info := inspect(ctx, &config.Config{Providers: map[string]config.Provider{p.Name: p}}, p.Name, tryTime)
	if info.Code == "" {
		return info.Models, nil
	}
	if info.Error == "" {
		return nil, regie.Errorf(info.Code, "%s wants a key", p.BaseURL)
	}
	return nil, regie.Errorf(info.Code, "%s", info.Failure)
}
