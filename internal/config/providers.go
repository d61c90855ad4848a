package config

import (
	"cmp"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// Provider is a model API as the settings have it (spec 13).
type Provider struct {
	Name string `yaml:"-"`
	// Type is the API, one of TypeNames; it may be left out where the name is one of them.
	Type string `yaml:"type,omitempty"`
	// Vendor names the vendor of a server of type openai. It gives the default address and the
	// variable of the key.
	Vendor string `yaml:"vendor,omitempty"`
	// API selects an API of a server of type openai: chat or responses. Speaks gives the default.
	API     string `yaml:"api,omitempty"`
	BaseURL string `yaml:"base_url,omitempty"`
	// APIKeyEnv is the variable that holds the key.
	APIKeyEnv string `yaml:"api_key_env,omitempty"`
	// APIKey is the key itself, only in the private file of regie setup, and never printed. In a
	// file it can be keyring:NAME, a reference to the keyring of the operating system.
	APIKey string `yaml:"api_key,omitempty"`
	// Models are names for models: small, medium, large (spec 6.3) or others.
	Models map[string]string `yaml:"models,omitempty"`
	// NumCtx is the size of the context that an Ollama model is loaded with, in tokens; 0 leaves it
	// to us.
	NumCtx int `yaml:"num_ctx,omitempty"`
	// KeepAlive is how long Ollama keeps a model in memory, as it writes it: 10m, 0, -1.
	KeepAlive string `yaml:"keep_alive,omitempty"`
	// Images says whether its models take images. Left out, it is true for the models of
	// Anthropic, Gemini and OpenAI at their own addresses, and elsewhere where the server says so.
	Images *bool `yaml:"images,omitempty"`
	// ServiceTier is how the vendor serves and prices requests, in its own word.
	ServiceTier string `yaml:"service_tier,omitempty"`
	// Prices are what its models cost, by name, or AnyModel for all others; they go before the
	// built-in list (spec 6.3).
	Prices map[string]Rates `yaml:"prices,omitempty"`
	// keyFrom is what keyNamed returns of a client's provider, nil of one that is configured here.
	keyFrom *string
	// unset says that the variable of APIKeyEnv is not set.
	unset bool
	// written says that a file holds the key itself.
	written bool
	// away says why the key cannot be read that the keyring is to have.
	away error
	// Origin says where each value comes from: a file, a variable, "default".
	Origin map[string]string `yaml:"-" json:"-"`
}

// Same reports whether two stored providers are the same.
func (p *Provider) Same(other Provider) bool {
	return p.Type == other.Type && p.Vendor == other.Vendor && p.API == other.API && p.BaseURL == other.BaseURL &&
		p.APIKey == other.APIKey && p.APIKeyEnv == other.APIKeyEnv && maps.Equal(p.Models, other.Models)
}

// The APIs that a server of type openai can be asked in.
const (
	APIChat      = "chat"      // Chat Completions
	APIResponses = "responses" // Responses
)

// Speaks returns the API of a server of type openai: the configured one, else Responses at OpenAI's
// own address and Chat Completions everywhere else. It is empty for the other types, which have
// one.
func (p *Provider) Speaks() string {
	if p.Type != ProviderOpenAI || p.API != "" {
		return p.API
	}
	if u, err := url.Parse(p.BaseURL); err == nil && (u.Hostname() == openAIHost ||
		strings.HasSuffix(u.Hostname(), "."+openAIHost)) {
		return APIResponses
	}
	return APIChat
}

// DefaultSize is the size of model that is used where nothing names one.
const DefaultSize = "medium"

// ModelOf is the model that a provider has under a name, which may be that of a size; a server may
// have a model that is called so itself.
func (c *Config) ModelOf(provider, model string) string {
	return cmp.Or(c.Providers[provider].Models[model], model)
}

// collectProviders gathers the providers of both files and of the keys in the environment.
func (c *Config) collectProviders(env func(string) string) error {
	c.Providers = map[string]Provider{}
	for _, from := range []struct {
		file File
		path func(key string) string
	}{{c.setup, func(string) string { return c.Origin["setup"] }}, {c.File, c.sourceOf}} {
		for name, p := range from.file.Providers {
			p.Name, p.Origin = name, map[string]string{}
			if err := p.completeProvider(env, from.path("providers."+name)); err != nil {
				return err
			}
			if key := c.Providers[name].APIKey; p.APIKey == "" && p.APIKeyEnv == "" &&
				p.BaseURL == c.Providers[name].BaseURL {
				p.away, p.written = c.Providers[name].away, c.Providers[name].written
				// that regie setup stored for the same address
				p.APIKey, p.Origin["api_key"] = key, c.Providers[name].Origin["api_key"]
			}
			c.Providers[name] = p
		}
	}
	for _, name := range providerTypes { // one is used by itself when its key is in the environment
		key := vendors[name].key
		if _, configured := c.Providers[name]; configured || key == "" || env(key) == "" {
			continue
		}
		p := Provider{Name: name, Origin: map[string]string{}}
		if err := p.completeProvider(env, key); err != nil {
			return err
		}
		c.Providers[name] = p
	}
	return nil
}

// completeProvider fills in what follows from the rest, and refuses what cannot be used; path is
// where the provider is from.
func (p *Provider) completeProvider(env func(string) string, path string) error {
	for name, set := range map[string]bool{
		"type": p.Type != "", "api": p.API != "", "base_url": p.BaseURL != "",
		"api_key": p.APIKey != "", "models": p.Models != nil,
		"service_tier": p.ServiceTier != "",
	} {
		if set {
			p.Origin[name] = path
		}
	}
	known, isKnown := vendors[p.Vendor]
	if p.Vendor != "" && (!isKnown || p.Type != "" && known.kind != p.Type) {
		return regie.Errorf(regie.CodeBadRequest,
			"the provider %s (in %s) is of the vendor %q, which is not known for its type: use one of %s, or leave vendor out", p.Name, path, p.Vendor, strings.Join(Vendors(p.Type), ", "))
	}
	if !isKnown {
		if known, isKnown = vendors[p.Name]; isKnown && p.Type != "" && known.kind != p.Type {
			known, isKnown = vendor{}, false
		}
	}
	if p.Type == "" {
		p.Type, p.Origin["type"] = known.kind, "default"
	}
	if err := p.checkType(path); err != nil {
		return err
	}
	if !isKnown {
		known = vendors[p.Type]
		if p.BaseURL == "" && p.Type == ProviderOpenAI {
			return regie.Errorf(regie.CodeBadRequest,
				"the provider %s (in %s) has no address: give it a base_url, or a vendor", p.Name, path)
		}
	}
	if p.BaseURL == "" {
		p.BaseURL, p.Origin["base_url"] = known.address, "default"
	}
	if err := checkAddress(p.BaseURL, path); err != nil {
		return err
	}
	p.written = p.APIKey != "" && p.APIKeyEnv == "" && !inKeyring(p.APIKey)
	if err := p.readKeyring(path); err != nil {
		return err
	}
	p.findKey(env, known)
	if p.BaseURL == known.address && known.large != "" {
		sizes := map[string]string{"large": known.large, DefaultSize: known.medium, "small": known.small}
		maps.Copy(sizes, p.Models)
		p.Models = sizes
	}
	return nil
}

// checkValues holds what is written of a provider to what can be meant.
func (p *Provider) checkValues() error {
	for size, model := range p.Models {
		if strings.TrimSpace(model) == "" {
			return regie.Errorf(regie.CodeBadRequest, "models.%s names no model: name one, or leave it out", size)
		}
	}
	return nil
}

// Keyless returns CodeProviderAuth for a provider without a usable key: its variable is not set,
// the keyring does not give it, or it belongs to another vendor. No request is sent without the
// right key.
func (p *Provider) Keyless() error {
	if err := p.checkKey(); err != nil {
		return err
	}
	if p.APIKey == "" && p.away != nil {
		return regie.Errorf(regie.CodeProviderAuth,
			"the key of the provider %s is in the keyring, which does not return it (%s): unlock it, or run regie setup again", p.Name, p.away.Error())
	}
	if !p.unset || p.APIKey != "" {
		return nil
	}
	return regie.Errorf(regie.CodeProviderAuth,
		"the provider %s takes its key from the variable %s, which is not set: set it, or take api_key_env out", p.Name,
		p.APIKeyEnv)
}

// findKey finds the key: the variable that the settings name, else the vendor's own, which is only
// ever sent to the vendor.
func (p *Provider) findKey(env func(string) string, known vendor) {
	variable := p.APIKeyEnv
	if variable == "" && p.APIKey == "" && p.away == nil && p.BaseURL == known.address {
		variable = known.key
	}
	if variable == "" {
		return
	}
	if p.APIKey = env(variable); p.APIKey != "" {
		p.Origin["api_key"] = variable
	}
	p.unset = p.APIKey == "" && p.APIKeyEnv != ""
}

// keyNamed returns the key as the settings give it: the key itself from a file, else a reference.
func (p *Provider) keyNamed() string {
	switch {
	case p.keyFrom != nil:
		return *p.keyFrom
	case p.written:
		return p.APIKey
	case p.APIKeyEnv != "":
		return "env:" + p.APIKeyEnv
	case p.KeptInKeyring() != "":
		return p.Origin["api_key"]
	default:
		return ""
	}
}

// CompleteAddress puts http:// before the address of a server on this machine that has no scheme.
// Any other address stays: http would show a key to the network.
func CompleteAddress(address string) string {
	u, err := url.Parse("http://" + address)
	if err != nil || strings.Contains(address, "://") {
		return address
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return "http://" + address
	}
	return address
}

func checkAddress(address, origin string) error {
	u, err := url.Parse(address)
	if err == nil && u.User != nil { // addresses are shown
		return regie.Errorf(regie.CodeBadRequest,
			"the address of a server (from %s) must not contain a password: give the key in its own variable",
			origin)
	}
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return regie.Errorf(regie.CodeBadRequest,
			"the address %q (from %s) is not that of a server: write it like http://127.0.0.1:8000/v1", address, origin)
	}
	return nil
}

// Named returns a provider by its name. The chosen one has the address and key that variables and
// flags give it.
func (c *Config) Named(name string) (Provider, bool) {
	p, ok := c.Providers[name]
	if !ok {
		p = Provider{Name: name, Type: vendors[name].kind, Origin: map[string]string{}}
		ok = name == c.Provider
	}
	if name == c.Provider {
		if p.BaseURL != c.BaseURL { // a key is for the address that it is configured with
			p.unset, p.away = false, nil
		}
		p.BaseURL, p.APIKey = c.BaseURL, c.APIKey
		origins := map[string]string{}
		maps.Copy(origins, p.Origin)
		for _, field := range []string{"base_url", "api_key"} {
			if origin := c.Origin[field]; origin != "" {
				origins[field] = origin
			}
		}
		p.Origin = origins
	}
	return p, ok
}

// ProviderNames are the names of what is configured, sorted; demo and replay need nothing and are
// not among them.
func (c *Config) ProviderNames() []string {
	names := slices.Collect(maps.Keys(c.Providers))
	if vendors[c.Provider].kind != "" && !slices.Contains(names, c.Provider) {
		names = append(names, c.Provider)
	}
	slices.Sort(names)
	return names
}

// Choose takes a provider, and a model of it where one is named; origin says why.
func (c *Config) Choose(p Provider, model, origin string) {
	if c.Providers == nil {
		c.Providers = map[string]Provider{}
	}
	if p.Origin == nil {
		p.Origin = map[string]string{}
	}
	c.Providers[p.Name] = p
	c.Provider, c.Origin["provider"] = p.Name, origin
	c.BaseURL, c.APIKey = p.BaseURL, p.APIKey
	for _, field := range []string{"base_url", "api_key"} {
		c.Origin[field] = p.Origin[field]
	}
	if c.Model == "" && model != "" {
		c.Model, c.Origin["model"] = model, origin
	}
	c.resolveModel()
}

// resolveModel turns the name of a size into that of a model, and takes the medium one where
// nothing names any.
func (c *Config) resolveModel() {
	sizes := c.Providers[c.Provider].Models
	if name, ok := sizes[c.Model]; ok {
		c.Model = name
	} else if c.Model == "" && sizes[DefaultSize] != "" && c.BaseURL == c.Providers[c.Provider].BaseURL {
		c.Model, c.Origin["model"] = sizes[DefaultSize], "default"
	}
}
