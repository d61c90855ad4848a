package app

import (
	"path/filepath"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
)

// TestProviderSets_Keys brings providers whose pins are the same, because a pin counts only the
// name of a key in the environment: the newest key is used (decision 54).
func TestProviderSets_Keys(t *testing.T) {
	brought := func(key string) config.ClientProvider {
		return config.ClientProvider{
			Provider: config.Provider{Name: "lab", Type: config.ProviderOpenAI, BaseURL: "http://127.0.0.1:1/v1", APIKey: key},
			KeyFrom:  "env:LAB_KEY", Model: "m",
		}
	}
	own, err := (&config.Config{DataDir: t.TempDir()}).With(brought("")) // started without the variable
	if err != nil {
		t.Fatal(err)
	}
	sets, pin := newProviderSets(&own, Models(own)), own.FingerprintOf("lab")
	for _, c := range []struct {
		name, key, want string
		added           bool
	}{
		{"no key", "", "", false},
		{"a key where the engine has none", "first", "first", true},
		{"the same key again", "first", "first", false},
		{"no key keeps the one that is there", "", "first", false},
		{"a corrected key", "second", "second", true},
	} {
		added, err := sets.addClientProvider(brought(c.key))
		p, _ := sets.settingsOf("lab", pin).Named("lab")
		if err != nil || added != c.added || p.APIKey != c.want {
			t.Errorf("%s: added %v, key %q, %v", c.name, added, p.APIKey, err)
		}
	}
	if keys := sets.clientKeys(); len(keys) != 2 { // what replaced a key does not make it public
		t.Errorf("%d keys are kept out of what tools say, want 2", len(keys))
	}
}

// TestProviderSets_Recordings: a replay starts again with each client, and a file is the recording
// of one provider.
func TestProviderSets_Recordings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rec.jsonl")
	own := config.Config{DataDir: t.TempDir(), Provider: config.ProviderDemo}
	sets := newProviderSets(&own, Models(own))
	player := config.ClientProvider{Provider: config.Provider{Name: config.ProviderReplay}, Model: "m", Replay: file}
	for range 2 {
		if added, err := sets.addClientProvider(player); err != nil || !added {
			t.Errorf("a replay: added %v, %v", added, err)
		}
	}
	at := func(address string) config.ClientProvider {
		return config.ClientProvider{
			Provider: config.Provider{Name: "lab", Type: config.ProviderOpenAI, BaseURL: address, APIKey: "secret-key"},
			Model:    "m", Record: file,
		}
	}
	if added, err := sets.addClientProvider(at("http://127.0.0.1:1/v1")); err != nil || !added {
		t.Errorf("the first recording: added %v, %v", added, err)
	}
	if added, err := sets.addClientProvider(at("http://127.0.0.1:2/v1")); added || regie.CodeOf(err) != regie.CodeConflict {
		t.Errorf("another provider into the same file: added %v, %v", added, err)
	}
}
