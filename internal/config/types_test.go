package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestTypes holds the registry to what an entry can hold, and each type's schema to entries of it.
func TestTypes(t *testing.T) {
	var known []string
	for _, kind := range Types() {
		for _, s := range kind.Settings {
			if !slices.Contains(known, s.Name) {
				known = append(known, s.Name)
			}
		}
		if !kind.HasEntry() {
			continue
		}
		schema := kind.ConfigSchema(regie.Sentence.String)
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", kind.Name, err)
		}
		for _, c := range []struct {
			entry map[string]any
			fits  bool
		}{
			{map[string]any{"type": kind.Name, "base_url": "http://127.0.0.1:1", "api_key_env": "K", "models": map[string]any{"small": "x"}}, true},
			{map[string]any{"prices": map[string]any{"x": map[string]any{"input": 1.5, "output": 2}}}, true},
			{map[string]any{"base_urll": "x"}, false},
			{map[string]any{"type": "other"}, false},
			{map[string]any{"models": map[string]any{"small": ""}}, false},
			{map[string]any{"prices": map[string]any{"x": map[string]any{"input": 1.5}}}, false},
			{map[string]any{"num_ctx": 10}, false},
			{map[string]any{"num_ctx": 4096}, kind.Name == ProviderOllama},
			{map[string]any{"api": "chat"}, kind.Name == ProviderOpenAI},
			{map[string]any{"api": "soap"}, false},
		} {
			if err := resolved.Validate(c.entry); (err == nil) != c.fits {
				t.Errorf("%s: %v: %v", kind.Name, c.entry, err)
			}
		}
		if key := schema.Properties["api_key"]; !key.WriteOnly || key.Title != "Key" {
			t.Errorf("%s: the key is %+v", kind.Name, key)
		}
	}
	var keys []string
	for _, f := range fieldsOf(reflect.TypeFor[Provider]()) {
		keys = append(keys, f.name)
	}
	slices.Sort(keys)
	slices.Sort(known)
	if !slices.Equal(keys, known) {
		t.Errorf("an entry has %v, the types have %v", keys, known)
	}
}

// TestTypesOfVendors: each vendor is of a type that has an entry.
func TestTypesOfVendors(t *testing.T) {
	for name, v := range vendors {
		if kind, ok := TypeOf(v.kind); !ok || !kind.HasEntry() {
			t.Errorf("%s is of type %q", name, v.kind)
		}
	}
	if got := strings.Join(KeyVariables(), " "); got != "ANTHROPIC_API_KEY OPENAI_API_KEY GEMINI_API_KEY" {
		t.Errorf("keys are found in %s", got)
	}
}
