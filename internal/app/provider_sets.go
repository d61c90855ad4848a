package app

import (
	"maps"
	"slices"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/price"
	"github.com/regie-run/regie/internal/provider"
)

// providerSets finds the settings that a round is pinned to: the engine's own, or those that a
// client brought (decision 54). What clients brought is in memory only. Its methods may be called
// from any goroutine.
type providerSets struct {
	own providerSet

	mu      sync.Mutex
	brought map[regie.Hash]providerSet // by pin
	keys    []config.Key               // of all that was ever brought
}

// providerSet is a configuration with the providers that it makes.
type providerSet struct {
	settings *config.Config
	models   func(name string) (provider.Provider, error)
}

func newProviderSets(own *config.Config, models func(name string) (provider.Provider, error)) *providerSets {
	return &providerSets{own: providerSet{own, models}, brought: map[regie.Hash]providerSet{}}
}

// findSet returns the set of a provider under a pin, the engine's own for the zero pin. A client's
// set goes before the engine's own under the same pin, since its key is newer.
func (s *providerSets) findSet(name string, pin regie.Hash) (providerSet, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if set, found := s.brought[pin]; found {
		return set, true
	}
	return s.own, pin.IsZero() || pin == s.own.settings.FingerprintOf(name)
}

// settingsOf returns the configuration of a provider under a pin, nil where it is not here.
func (s *providerSets) settingsOf(name string, pin regie.Hash) *config.Config {
	set, found := s.findSet(name, pin)
	if !found {
		return nil
	}
	return set.settings
}

// modelOf returns a provider under a pin. It returns CodeNoModel where its settings are not here.
func (s *providerSets) modelOf(name string, pin regie.Hash) (provider.Provider, error) {
	set, found := s.findSet(name, pin)
	if !found {
		return nil, regie.Errorf(regie.CodeNoModel, "the settings of the provider %s that the run began with are not here", name)
	}
	return set.models(name)
}

// priceOf returns what a model costs under a pin.
func (s *providerSets) priceOf(name, model string, pin regie.Hash) (p price.Price, stated, known bool) {
	if set, found := s.findSet(name, pin); found {
		return set.settings.Price(name, model)
	}
	return price.Price{}, false, false
}

// addClientProvider keeps a client's provider, and reports whether it is new here. A pin counts
// only the name of a key in the environment or a keyring: the newest key replaces the former one.
// A replay starts again with each client. It returns CodeConflict if another provider is recorded
// into the same file.
func (s *providerSets) addClientProvider(in config.ClientProvider) (added bool, err error) {
	settings, err := s.own.settings.With(in)
	if err != nil {
		return false, err
	}
	pin := settings.Fingerprint()
	if set, found := s.findSet(in.Provider.Name, pin); found && in.Replay == "" {
		known, _ := set.settings.Named(in.Provider.Name)
		if key := in.Provider.APIKey; key == "" || key == known.APIKey || in.Record != "" {
			return false, nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range append(slices.Collect(maps.Values(s.brought)), s.own) {
		if in.Record != "" && set.settings.Record == in.Record {
			return false, regie.Errorf(regie.CodeConflict,
				"another provider is recorded into %s: record into another file", in.Record)
		}
	}
	if settings.APIKey != "" {
		s.keys = append(s.keys, config.Key{Name: "api_key", Value: settings.APIKey, Server: settings.BaseURL})
	}
	s.brought[pin] = providerSet{&settings, Models(settings)}
	return true, nil
}

// clientKeys returns the keys that clients brought, also those that a newer one has replaced.
func (s *providerSets) clientKeys() []config.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys)
}

// addProvider keeps a client's provider, and takes its key out of what tools say.
func (e *Engine) addProvider(in config.ClientProvider) (added bool, err error) {
	if added, err = e.providers.addClientProvider(in); added {
		e.masked.Store(newMask(&e.config, e.token, e.providers.clientKeys()))
	}
	return added, err
}
