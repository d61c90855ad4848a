package price

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
)

// TestCost has each kind of token cost what it costs, exactly and rounded up once.
func TestCost(t *testing.T) {
	sonnet := Price{Rates: Rates{Input: 3_000_000, CachedInput: 300_000, CacheWrite: 3_750_000, Output: 15_000_000}}
	tiered := Price{Rates: Rates{Input: 100_000, CachedInput: 10_000, CacheWrite: 125_000, Output: 500_000}, UpTo: 100_000, Beyond: &Rates{500_000, 50_000, 625_000, 2_500_000}}
	known := Price{Rates: Rates{Input: 2_000_000, CachedInput: 2_000_000, CacheWrite: 2_000_000, Output: 10_000_000}, UpTo: 1000}
	for name, c := range map[string]struct {
		price Price
		usage regie.Usage
		want  int64
		known bool
	}{
		"nothing used":                    {sonnet, regie.Usage{}, 0, true},
		"a prompt and a reply":            {sonnet, regie.Usage{Input: 1000, Output: 100}, 3000 + 1500, true},
		"cached tokens are of the prompt": {sonnet, regie.Usage{Input: 1000, CacheRead: 900}, 300 + 270, true},
		"written ones too":                {sonnet, regie.Usage{Input: 1000, CacheRead: 500, CacheCreation: 400}, 300 + 150 + 1500, true},
		"thinking is of the reply":        {sonnet, regie.Usage{Output: 100, Reasoning: 80}, 1500, true},
		"a part of a millionth":           {sonnet, regie.Usage{Input: 1, CacheRead: 1}, 1, true},
		// 0.5 + 0.05 + 0.5
		"parts are added, then rounded": {tiered, regie.Usage{Input: 10, CacheRead: 5, Output: 1}, 2, true},
		"more cached than there is":     {sonnet, regie.Usage{Input: 10, CacheRead: 1000, CacheCreation: 1000}, 3, true},
		"negative claims":               {sonnet, regie.Usage{Input: -5, CacheRead: -1, CacheCreation: -3, Output: -2}, 0, true},
		"the last short prompt":         {tiered, regie.Usage{Input: 100_000, Output: 10}, 10_005, true},
		// 50,000.5 + 25
		"the first long one":          {tiered, regie.Usage{Input: 100_001, Output: 10}, 50_026, true},
		"a long one of unknown price": {known, regie.Usage{Input: 1001}, 0, false},
		"nothing to pay":              {Price{}, regie.Usage{Input: 1 << 40, Output: 1 << 40}, 0, true},
		"more than any number holds":  {Price{Rates: Rates{Input: math.MaxInt64, Output: math.MaxInt64}}, regie.Usage{Input: math.MaxInt64, Output: math.MaxInt64}, Largest, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := c.price.Cost(c.usage); got != c.want || ok != c.known {
				t.Errorf("%d, %v, want %d, %v", got, ok, c.want, c.known)
			}
		})
	}
}

// TestMost is never less than what a call can cost, and Reply never pays for more than an amount
// holds.
func TestMost(t *testing.T) {
	for _, e := range Known() {
		for _, prompt := range []int64{0, 1, 999, 100_001, 300_000} {
			const reply = 5000
			forPrompt, forReply, ok := e.Price.Most(prompt, reply)
			for _, usage := range []regie.Usage{{Input: prompt, Output: reply}, {Input: prompt, CacheCreation: prompt, Output: reply}, {Input: prompt, CacheRead: prompt / 2, Output: 1}} {
				cost, known := e.Price.Cost(usage)
				if known != ok || ok && cost > forPrompt+forReply {
					t.Errorf("%s: %+v costs %d (%v), the most was %d + %d (%v)", e.Model, usage, cost, known, forPrompt, forReply, ok)
				}
			}
			if !ok || e.Price.Output == 0 { // what embeds has no reply
				continue
			}
			if tokens := e.Price.Reply(forReply, prompt, 1<<40); tokens < reply {
				t.Errorf("%s: %d pays for %d tokens of a reply, want %d", e.Model, forReply, tokens, reply)
			}
			tokens := e.Price.Reply(forReply/2, prompt, 1<<40)
			if _, half, _ := e.Price.Most(prompt, tokens); half > forReply/2+1 {
				t.Errorf("%s: %d tokens cost %d, more than the %d that were to pay for them", e.Model, tokens, half, forReply/2)
			}
		}
	}
	if got := (Price{}).Reply(5, 10, 700); got != 700 {
		t.Errorf("a reply that costs nothing may have %d tokens", got)
	}
}

// TestParse reads dollars exactly, and nothing else.
func TestParse(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "3": 3_000_000, "0.075": 75_000, "0.000001": 1, "12.50": 12_500_000, "999999.999999": 999_999_999_999} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", "0x10", "1.0000001", "1000000", "NaN", "1.2.3", " 1", "1 "} {
		if got, err := Parse(text); regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%q is taken for %d (%v)", text, got, err)
		}
	}
}

// TestFind matches names as vendors write them, and guesses nothing.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		vendor, model string
		input         int64 // of the price; 0: unknown
	}{
		{"anthropic", "claude-sonnet-5-5", 2_000_000},
		{"anthropic", "claude-haiku-4-5-20251001", 1_000_000},
		{"anthropic", "claude-opus-4-20250514", 15_000_000},
		{"anthropic", "claude-opus-4-5@20251101", 5_000_000},
		{"anthropic", "Claude-Opus-5", 5_000_000},
		{"anthropic", "anthropic/claude-opus-5", 5_000_000},
		{"anthropic", "claude-opus-6", 0},
		{"anthropic", "claude-opus-5-thinking", 0},
		{"openai", "gpt-5.4-mini", 750_000},
		{"openai", "gpt-5.4-mini-2026-03-05", 750_000},
		{"openai", "gpt-5.4", 2_500_000},
		{"openai", "gpt-5.5-pro", 30_000_000},
		{"openai", "gpt-5.5-turbo", 0}, // begins like gpt-5.5, and is another one
		{"openai", "gpt-4o-2024-05-13", 5_000_000},
		{"openai", "gpt-4o-2024-08-06", 2_500_000},
		{"openai", "gpt-4o-2024-13-40", 0}, // no day
		{"openai", "gpt-4-0613", 0},
		{"openai", "ft:gpt-4o:mine", 0},
		{"openai", "claude-opus-5", 0}, // another vendor's
		{"gemini", "models/gemini-2.5-pro", 1_250_000},
		{"gemini", "gemini-2.0-flash-001", 100_000},
		{"groq", "openai/gpt-oss-120b", 150_000},
		{"mistral", "mistral-large-latest", 500_000},
		{"mistral", "mistral-medium-latest", 0}, // vendors move it from one price to another
		{"mistral", "mistral-large-2411", 2_000_000},
		{"deepseek", "deepseek-chat", 140_000},
		{"openrouter", "openai/gpt-5.5", 0},
		{"", "gpt-5.5", 0},
		{"openai", "", 0},
	} {
		if got, ok := Find(c.vendor, c.model); ok != (c.input > 0) || got.Input != c.input {
			t.Errorf("%s of %s: %+v, %v, want input at %d", c.model, c.vendor, got, ok, c.input)
		}
	}
}

// TestFile holds the data file to its form: each price with its day and its source, no model twice,
// nothing that is free.
func TestFile(t *testing.T) {
	entries, err := read(file)
	if err != nil || len(entries) < 50 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	seen := map[string]bool{}
	for _, e := range entries {
		if _, err := time.Parse(time.DateOnly, e.Taken); err != nil || e.Source == "" || e.Vendor == "" || e.Model == "" {
			t.Errorf("%+v has no day, source or name", e)
		}
		if key := e.Vendor + " " + e.Model; seen[key] {
			t.Errorf("%s stands there twice", key)
		} else {
			seen[key] = true
		}
		embeds := strings.Contains(e.Model, "embed") // and has no output
		if p := e.Price; p.Input <= 0 || embeds != (p.Output == 0) || !embeds && p.Output < p.Input || p.CachedInput > p.Input || p.CachedInput <= 0 || p.CacheWrite < p.Input || (p.Beyond != nil && p.UpTo == 0) {
			t.Errorf("%s: %+v is no price", e.Model, p)
		}
		if found, ok := Find(e.Vendor, e.Model); !ok || found.Rates != e.Price.Rates {
			t.Errorf("%s is not found under its own name", e.Model)
		}
	}
	for _, bad := range []string{"{", `{"vendors": [{"models": [{"model": "m", "input": "1"}]}]}`, `{"vendors": [{"models": [{"model": "m", "price": "1"}]}]}`, `{"vendors": [{"models": [{"input": "x", "output": "1"}]}]}`} {
		if entries, err := read([]byte(bad)); err == nil {
			t.Errorf("%s is read as %+v", bad, entries)
		}
	}
}

// FuzzParse never reads an amount that is not what stands there.
func FuzzParse(f *testing.F) {
	f.Add("0.075")
	f.Add("1e9")
	f.Fuzz(func(t *testing.T, text string) {
		if amount, err := Parse(text); err == nil && (amount < 0 || amount >= 1e12) {
			t.Errorf("%q is %d", text, amount)
		}
	})
}
