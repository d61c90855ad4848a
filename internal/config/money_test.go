package config

import (
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/price"
)

// TestBudgets reads budgets exactly and takes the lower of the app's and the agent's.
func TestBudgets(t *testing.T) {
	c, err := load(t, `
budget: {usd_per_round: 1.00, usd_per_session: 0.000001, usd_per_workspace_day: 10, usd_per_day: 12.5}
agents: {main: {budget: {usd_per_round: 0.25, usd_per_session: 3, context_tokens: 9000}}}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := regie.Caps{Round: 250_000, Session: 1, Workspace: 10_000_000, Day: 12_500_000}
	if got := c.File.Caps("main"); got != want || c.File.Agents["main"].Budget.ContextTokens != 9000 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := c.File.Caps("another"); got.Round != 1_000_000 || got.Session != 1 {
		t.Errorf("of another agent: %+v", got)
	}
	for content, said := range map[string]string{
		"budget: {usd_per_day: 0}":                               "would allow nothing",
		"budget: {usd_per_day: 0.00}":                            "would allow nothing",
		"budget: {usd_per_day: -1}":                              "not an amount",
		"budget: {usd_per_day: 1e3}":                             "not an amount",
		"budget: {usd_per_day: ten}":                             "not an amount",
		"budget: {usd_per_day: 0.0000001}":                       "not an amount",
		"budget: {usd_per_day: [1]}":                             "a list was found",
		"budget: {usd_per_dya: 1}":                               "usd_per_day",
		"agents: {main: {budget: {usd_per_day: 0}}}":             "would allow nothing",
		"agents: {main: {budget: {usd_per_rund: 1}}}":            "usd_per_round",
		"agents: {main: {budget: {context_tokens: 3}}}":          "at least 1000",
		"providers: {openai: {prices: {m: {input: 1}}}}":         "m.output is missing",
		"providers: {openai: {prices: {m: }}}":                   "m.input is missing",
		"providers: {openai: {prices: {m: {output: a}}}}":        "not an amount",
		"providers: {openai: {prices: {m: {in: 1, output: 1}}}}": "unknown key in",
	} {
		if _, err := load(t, content, nil); regie.CodeOf(err) != regie.CodeBadRequest || !strings.Contains(err.Error(), said) {
			t.Errorf("%s: %v, want %q", content, err, said)
		}
	}
}

// TestPrice takes what the file says, else what the vendor whose server it is lists, and guesses
// nothing of anybody else's server.
func TestPrice(t *testing.T) {
	c, err := load(t, `
providers:
  openai: {api_key_env: KEY}
  anthropic: {base_url: "https://gateway.example/claude"}
  mine: {type: openai, vendor: groq, base_url: "https://proxy.example/v1"}
  lab:
    type: openai
    base_url: "http://127.0.0.1:8000/v1"
    prices: {Big-Model: {input: 2, output: 4, cached_input: 0.5}, "*": {input: 0, output: 0}}
`, map[string]string{"KEY": "k"})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		provider, model string
		input           int64
		stated, known   bool
	}{
		{"openai", "gpt-5.4-mini-2026-03-05", 750_000, false, true},
		{"openai", "another", 0, false, false},
		{"anthropic", "claude-opus-5", 0, false, false}, // somebody stands in between
		{"mine", "openai/gpt-oss-120b", 150_000, false, true},
		{"lab", "big-model", 2_000_000, true, true},
		{"lab", "big-model-20260101", 2_000_000, true, true},
		{"lab", "gpt-5.5", 0, true, true},
		{"demo", "demo", 0, false, false},
		{"nobody", "m", 0, false, false},
	} {
		p, stated, known := c.Price(x.provider, x.model)
		if p.Input != x.input || stated != x.stated || known != x.known {
			t.Errorf("%s of %s: %+v, stated %v, known %v", x.model, x.provider, p, stated, known)
		}
	}
	if p, _, _ := c.Price("lab", "big-model"); p.Rates != (price.Rates{Input: 2_000_000, CachedInput: 500_000, CacheWrite: 2_000_000, Output: 4_000_000}) {
		t.Errorf("%+v", p)
	}
}
