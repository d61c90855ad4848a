package app

import (
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/demo"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/replay"
)

// Models returns the providers of the settings, by name; each is made at its first use.
func Models(c config.Config) func(name string) (provider.Provider, error) {
	var mu sync.Mutex
	made := map[string]provider.Provider{}
	return func(name string) (provider.Provider, error) {
		mu.Lock()
		defer mu.Unlock()
		if p := made[name]; p != nil {
			return p, nil
		}
		p, err := model(c, name)
		if err == nil {
			made[name] = p
		}
		return p, err
	}
}

func model(c config.Config, name string) (p provider.Provider, err error) {
	switch {
	case name == config.ProviderDemo:
		p = demo.New()
	case name != c.Provider:
		return nil, regie.Errorf(regie.CodeNoModel, "the run was started with the provider %s, which is not configured here (%s is)", name, c.Provider)
	case name == config.ProviderReplay:
		return replay.Open(c.Replay)
	default:
		p, err = openai.New(openai.Config{Name: name, BaseURL: c.BaseURL, APIKey: c.APIKey})
	}
	if err == nil && c.Record != "" {
		return replay.NewRecorder(p, c.Record)
	}
	return p, err
}
