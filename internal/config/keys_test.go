package config

import (
	"slices"
	"testing"
)

// TestKeys: what is secret in the settings, and which key is for one server alone.
func TestKeys(t *testing.T) {
	c := Config{
		Database: "postgres://regie:p%40ss-of-db@db.example:5432/regie", Provider: "lab", APIKey: "lm-studio",
		Providers: map[string]Provider{
			"lab": {BaseURL: "http://127.0.0.1:1234/v1", APIKey: "lm-studio", written: true}, "far": {BaseURL: "https://far.example/v1", APIKey: "key-of-far", APIKeyEnv: "FAR"},
		},
	}
	keys := c.Keys(func(string) string { return "" })
	for _, want := range []Key{
		{"database password", "p@ss-of-db", ""},
		{"database password", "p%40ss-of-db", ""},
		{"api_key", "lm-studio", "http://127.0.0.1:1234/v1"},
		{"providers.lab.api_key", "lm-studio", "http://127.0.0.1:1234/v1"},
		{"FAR", "key-of-far", ""},
		{"providers.far.api_key", "key-of-far", ""},
	} {
		if !slices.Contains(keys, want) {
			t.Errorf("%+v is missing in %+v", want, keys)
		}
	}
	c.Database = "postgres://postgres:postgres@127.0.0.1/test"
	if slices.ContainsFunc(c.Keys(func(string) string { return "" }), func(k Key) bool { return k.Value == "postgres" }) {
		t.Error("a word of any text is masked")
	}
}
