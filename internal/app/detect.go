package app

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// detectTime bounds what a server on this machine may take for its list, so that the first screen
// is there within a second (spec 10.1).
const detectTime = 900 * time.Millisecond

// Found is the result of a search on this machine alone (spec 10.1).
type Found struct {
	// Keys are the configured providers that could answer: those of the files, and those with a key
	// in the environment.
	Keys []string
	// Ollama is where it was looked for; OllamaOrigin says why there.
	Ollama, OllamaOrigin string
	// Elsewhere says that Ollama's address is another machine's, which is not asked.
	Elsewhere bool
	// Running says that it answered, with Models.
	Running bool
	Models  []provider.Model
}

// Detect looks for models in the settings and for Ollama on this machine. It takes less than a
// second and contacts no other machine.
func Detect(ctx context.Context, c config.Config, env func(string) string) Found {
	var f Found
	for _, name := range c.ProviderNames() {
		if p, _ := c.Named(name); isUsable(p) {
			f.Keys = append(f.Keys, name)
		}
	}
	f.Ollama, f.OllamaOrigin = config.OllamaAddress(env)
	if !isLocal(f.Ollama) {
		f.Elsewhere = true
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, detectTime)
	defer cancel()
	models, err := listModels(ctx, config.Provider{
		Name: config.ProviderOllama,
		Type: config.ProviderOllama, BaseURL: f.Ollama,
	})
	f.Running, f.Models = err == nil, models
	return f
}

// isLocal reports whether the address of a server is on this machine.
func isLocal(address string) bool {
	u, err := url.Parse(address)
	return err == nil && wire.IsLoopback(u.Hostname())
}

// isUsable reports whether a provider can be called as configured: a remote server needs a key of
// its own. An invalid address fails in the call.
func isUsable(p config.Provider) bool {
	u, err := url.Parse(p.BaseURL)
	return p.APIKey != "" && p.ForeignKey() == "" || p.BaseURL != "" &&
		(err != nil || u.Host == "" || wire.IsLoopback(u.Hostname()))
}

// listModels asks a provider for its models.
func listModels(ctx context.Context, settings config.Provider) ([]provider.Model, error) {
	if err := settings.Keyless(); err != nil {
		return nil, err
	}
	p, err := newProvider(settings, 0)
	if err != nil {
		return nil, err
	}
	lister, ok := p.(provider.Lister)
	if !ok {
		return nil, regie.Errorf(regie.CodeInternal, "the provider %s does not list its models", settings.Name)
	}
	return lister.Models(ctx)
}

// callingModels returns the models that can call tools, in their order; without any, none.
func callingModels(models []provider.Model) (names []string) {
	for i := range models {
		if models[i].NativeTools {
			names = append(names, models[i].Name)
		}
	}
	return names
}

// Settle chooses a model where the settings name none and only one candidate exists; it reports
// whether it did. For a named provider on this machine without a model it lists the server's
// models.
func Settle(ctx context.Context, c *config.Config, env func(string) string) (found Found, chose bool) {
	switch {
	case c.Provider != "" && c.Model != "":
		return found, false
	case c.Provider != "":
		return found, settleModel(ctx, c)
	}
	found = Detect(ctx, *c, env)
	names := callingModels(found.Models)
	known := slices.ContainsFunc(found.Keys, func(name string) bool {
		p, _ := c.Named(name)
		return strings.TrimRight(p.BaseURL, "/") == found.Ollama
	})
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
	if !ok || !isLocal(p.BaseURL) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, detectTime)
	defer cancel()
	models, err := listModels(ctx, p)
	names := callingModels(models)
	if err != nil || len(names) == 0 || p.Type != config.ProviderOllama && len(names) > 1 {
		return false
	}
	c.Choose(p, names[0], p.BaseURL)
	return true
}

// priceOf returns the price of a model: zero for a free one unless the file gives a price (decision
// 29); nil where it is unknown.
func priceOf(c *config.Config, provider, model string, free bool) *dispatch.ModelPrice {
	p, stated, known := c.Price(provider, model)
	switch {
	case free && !stated:
		return &dispatch.ModelPrice{}
	case !known:
		return nil
	}
	return &dispatch.ModelPrice{
		Input: p.Input, CachedInput: p.CachedInput, CacheWrite: p.CacheWrite, Output: p.Output, UpTo: p.UpTo,
	}
}

// ProviderInfo describes a configured provider: its source, whether it answers, and its models.
// About a provider of a remote Regie only that server's report is known.
type ProviderInfo struct {
	dispatch.ProviderModels
	API     string `json:"api,omitempty"` // of type openai: chat or responses
	BaseURL string `json:"base_url,omitempty"`
	HasKey  bool   `json:"has_key"`
	Local   bool   `json:"local"` // on this machine
	// Failure is what Error says.
	Failure error `json:"-"`
	// the vendor on the wire; empty where it is unknown
	Vendor string            `json:"vendor,omitempty"`
	Tier   string            `json:"service_tier,omitempty"` // empty leaves it to the account
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
		group.Go(func() { out[i] = inspectProvider(ctx, &c, name, timeout) })
	}
	group.Wait()
	return out
}

// inspectProvider asks a provider what it has; within is how long ctx leaves it for that.
func inspectProvider(ctx context.Context, c *config.Config, name string, within time.Duration) ProviderInfo {
	p, _ := c.Named(name)
	info := ProviderInfo{
		ProviderModels: dispatch.ProviderModels{
			Name: name, Type: cmp.Or(p.Type, name), Chosen: name == c.Provider, Sizes: p.Models,
			Models: []dispatch.ModelView{},
		},
		API: p.Speaks(), BaseURL: p.BaseURL, HasKey: p.APIKey != "", Origin: p.Origin, Vendor: p.Wire(),
		Tier: p.ServiceTier, Local: isLocal(p.BaseURL),
	}
	failed := func(code regie.Code, err error) ProviderInfo {
		info.Code, info.Error, info.Failure, info.Said = code, err.Error(), err, regie.SentenceOf(err)
		return info
	}
	if err := p.Keyless(); err != nil {
		return failed(regie.CodeProviderAuth, err)
	}
	if !isUsable(p) {
		info.Code = regie.CodeProviderAuth
		return info
	}
	models, err := listModels(ctx, p)
	if errors.Is(err, context.DeadlineExceeded) {
		err = regie.Errorf(regie.CodeTimeout, "%s did not answer within %s", p.BaseURL, within.String())
	}
	if err != nil {
		return failed(provider.CodeOf(err), err)
	}
	info.Reachable = true
	for i := range models {
		m := &models[i]
		info.Models = append(info.Models, dispatch.ModelView{
			Name: m.Name, Tools: m.NativeTools, Thinking: m.Thinking, Embeds: m.Embeds,
			ContextTokens: m.ContextTokens, MaxOutput: m.MaxOutput,
			Chosen: info.Chosen && m.Name == c.Model, Price: priceOf(c, name, m.Name, m.Free),
		})
	}
	return info
}

// tryTime bounds the trying of a provider.
const tryTime = 20 * time.Second

// askModels asks a provider of settings that are not stored yet for its models: whether it is
// there, and takes the key.
func askModels(ctx context.Context, p config.Provider) ([]dispatch.ModelView, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	info := inspectProvider(ctx, &config.Config{Providers: map[string]config.Provider{p.Name: p}}, p.Name, tryTime)
	if info.Code == "" {
		return info.Models, nil
	}
	if info.Error == "" {
		return nil, regie.Errorf(info.Code, "%s needs a key", p.BaseURL)
	}
	return nil, regie.Errorf(info.Code, "%s", info.Failure)
}

// listTime is what a provider has to list its models for a client.
const listTime = 5 * time.Second

// listModels lists the models of each configured provider for clients.
func (e *Engine) listModels(ctx context.Context) ([]dispatch.ProviderModels, error) {
	out := []dispatch.ProviderModels{}
	chosen := false
	for _, p := range ListModels(ctx, e.config, listTime) {
		chosen = chosen || p.Chosen
		out = append(out, p.ProviderModels)
	}
	if e.config.Provider != "" && !chosen { // one that needs no settings: the demo, a recording
		out = append(out, dispatch.ProviderModels{
			Name: e.config.Provider, Type: e.config.Provider, Chosen: true, Reachable: true,
			Models: []dispatch.ModelView{
				{Name: e.config.Model, Chosen: true, Tools: true, Price: &dispatch.ModelPrice{}},
			},
		})
	}
	return out, ctx.Err()
}

// ServedModels converts the models of a server's providers to the form of local ones.
func ServedModels(list []dispatch.ProviderModels) (out []ProviderInfo) {
	for _, p := range list {
		out = append(out, ProviderInfo{ProviderModels: p, HasKey: p.Reachable})
	}
	return out
}
