package app

import (
	"cmp"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/anthropic"
	"github.com/regie-run/regie/internal/provider/demo"
	"github.com/regie-run/regie/internal/provider/gemini"
	"github.com/regie-run/regie/internal/provider/ollama"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/replay"
	"github.com/regie-run/regie/internal/provider/responses"
)

// Models returns the providers of the settings, by name; each is made at its first use. All of them
// are recorded on one tape.
func Models(c config.Config) func(name string) (provider.Provider, error) {
	var mu sync.Mutex
	var tape *replay.Tape
	made := map[string]provider.Provider{}
	return func(name string) (provider.Provider, error) {
		mu.Lock()
		defer mu.Unlock()
		if p := made[name]; p != nil {
			return p, nil
		}
		p, err := openModel(c, name)
		if err != nil {
			return nil, err
		}
		if c.Record != "" && name != config.ProviderReplay {
			if tape == nil {
				if tape, err = replay.NewTape(c.Record, c.Secrets()); err != nil {
					return nil, err
				}
			}
			p = tape.Record(p)
		}
		made[name] = p
		return p, nil
	}
}

func openModel(c config.Config, name string) (provider.Provider, error) {
	settings, configured := c.Named(name)
	switch {
	case name == config.ProviderDemo:
		return demo.New(), nil
	case !configured:
		return nil, regie.Errorf(regie.CodeNoModel,
			"the run was started with the provider %s, which is not configured here (%s is)", name,
			cmp.Or(c.Provider, "-"))
	case name == config.ProviderReplay:
		return replay.Open(c.Replay)
	case settings.Keyless() != nil:
		return nil, settings.Keyless()
	default:
		return newProvider(settings, c.File.Budget.ModelWindow)
	}
}

// newProvider makes the provider of settings.
func newProvider(s config.Provider, window int) (provider.Provider, error) {
	with, known := makers[s.Type]
	if !known {
		with = makers[config.ProviderOpenAI] // what has no type is an address
	}
	return with(s, window)
}

// makers are the codecs of the types that have an entry (config.Types).
var makers = map[string]func(s config.Provider, window int) (provider.Provider, error){
	config.ProviderAnthropic: func(s config.Provider, _ int) (provider.Provider, error) {
		return anthropic.New(anthropic.Config{Name: s.Name, BaseURL: s.BaseURL, APIKey: s.APIKey, Images: s.Images})
	},
	config.ProviderGemini: func(s config.Provider, _ int) (provider.Provider, error) {
		return gemini.New(gemini.Config{Name: s.Name, BaseURL: s.BaseURL, APIKey: s.APIKey, Images: s.Images})
	},
	config.ProviderOllama: func(s config.Provider, _ int) (provider.Provider, error) {
		return ollama.New(ollama.Config{
			Name: s.Name, BaseURL: s.BaseURL, APIKey: s.APIKey, Images: s.Images,
			Context: s.NumCtx, KeepAlive: s.KeepAlive,
		})
	},
	config.ProviderOpenAI: func(s config.Provider, window int) (provider.Provider, error) {
		if s.Speaks() == config.APIResponses {
			return responses.New(responses.Config{
				Name: s.Name, BaseURL: s.BaseURL,
				APIKey: s.APIKey, Images: s.Images, ContextTokens: window,
			})
		}
		return openai.New(openai.Config{
			Name: s.Name, BaseURL: s.BaseURL, APIKey: s.APIKey, Images: s.Images,
			Vendor: s.Wire(), ContextTokens: window,
		})
	},
}

// codecKey identifies a codec.
type codecKey struct {
	name string
	pin  regie.Hash
}

// codecOf returns what writes the requests of the provider of a name. It has no key, and calls no
// model. It is kept, because some ask their server for its list of models.
func (e *Engine) codecOf(name string, pin regie.Hash) (provider.Provider, error) {
	switch name {
	case config.ProviderDemo:
		return demo.New(), nil
	case config.ProviderReplay:
		return replay.Silent(), nil
	}
	key := codecKey{name, pin}
	e.mu.Lock()
	defer e.mu.Unlock()
	if codec := e.codecs[key]; codec != nil {
		return codec, nil
	}
	from := e.providers.settingsOf(name, pin)
	known := from != nil
	if !known {
		from = &e.config
	}
	settings, _ := from.Named(name)
	if settings.BaseURL == "" && settings.Speaks() != config.APIResponses &&
		(settings.Type == "" || settings.Type == config.ProviderOpenAI) {
		settings = config.Provider{
			Name: name, Type: config.ProviderOpenAI, API: config.APIChat, BaseURL: "http://127.0.0.1/v1",
		}
	}
	settings.APIKey = ""
	codec, err := newProvider(settings, e.config.File.Budget.ModelWindow)
	if err == nil && known {
		if e.codecs == nil {
			e.codecs = map[codecKey]provider.Provider{}
		}
		e.codecs[key] = codec
	}
	return codec, err
}
