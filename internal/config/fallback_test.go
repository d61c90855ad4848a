package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestFallbacks: a fallback is a configured provider with a model, which its list, its sizes or the
// agent's own word name.
func TestFallbacks(t *testing.T) {
	const file = `
providers:
  a: {type: openai, base_url: "http://127.0.0.1:1/v1"}
  b: {type: openai, base_url: "http://127.0.0.1:2/v1", models: {large: b-large, medium: b-medium}}
  c: {type: openai, base_url: "http://127.0.0.1:3/v1", models: {medium: c-tiny}}
  d: {type: openai, base_url: "http://127.0.0.1:4/v1"}
agents: {main: {AGENT}}
`
	for agent, want := range map[string]any{
		"provider: a, model: large, fallback: [b]":                []Fallback{{"b", "b-large"}},
		"provider: a, model: m, fallback: [b, c]":                 []Fallback{{"b", "b-medium"}, {"c", "c-tiny"}},
		"provider: a, model: m, fallback: [b/large, d/any/thing]": []Fallback{{"b", "b-large"}, {"d", "any/thing"}},
		"provider: a, model: m, fallback: [demo]":                 []Fallback{{"demo", "demo"}},
		"provider: a, model: m":                                   []Fallback(nil),
		"provider: a, model: m, fallback: [d]":                    "of which no model is known",
		"provider: a, model: m, fallback: [e]":                    "which is not configured: use a, b, c, d",
		"provider: a, model: m, fallback: [a]":                    "which is its provider",
		"fallback: [b]":                                           "name the primary one with agents.main.provider",
	} {
		c, err := load(t, strings.Replace(file, "AGENT", agent, 1), nil)
		if words, refused := want.(string); refused {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v", agent, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", agent, err)
			continue
		}
		main := c.File.Agents["main"]
		if got, err := c.Fallbacks("main", &main); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", agent, got, err)
		}
	}
}

// TestCacheKeys reads what is said of the response cache, and refuses what nobody can mean.
func TestCacheKeys(t *testing.T) {
	c, err := load(t, "cache: {ttl: 90m, max_bytes: 70000, casefold: true}\nagents: {main: {cache: on, temperature: 0.5}}\n", nil)
	if err != nil || c.File.Cache != (Cache{TTL: 90 * time.Minute, MaxBytes: 70_000, Casefold: true}) {
		t.Fatalf("%+v, %v", c.File.Cache, err)
	}
	agent := c.File.Agents["main"]
	if *agent.Temperature != 0.5 || !first(agent.Caches()) {
		t.Errorf("%+v", agent)
	}
	for _, bad := range []string{
		"cache: {ttl: -1h}", "cache: {max_bytes: 1}", "cache: on", "agents: {main: {cache: yes please}}",
		"agents: {main: {temperature: 2.1}}", "agents: {main: {temperature: -0.1}}", "agents: {main: {temperature: .nan}}", "agents: {main: {temperature: .inf}}",
	} {
		if _, err := load(t, bad+"\n", nil); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func first(caches, _ bool) bool { return caches }
