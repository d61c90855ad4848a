package openai_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// thread is wiretest.Thread with a vendor's thinking, or as the JSON dialect has it.
func thread(vendor, model string) []provider.Turn {
	turns := wiretest.Thread(func(text string) provider.Part {
		part := provider.Part{Type: regie.PartThinking, Text: text, Provider: vendor}
		if vendor == "openrouter" {
			part.Opaque, _ = json.Marshal(map[string]any{"model": model, "reasoning_details": []any{map[string]any{"type": "reasoning.text", "text": text, "signature": "c2ln", "index": 0}}})
		}
		return part
	})
	if openai.TakesTools(vendor) {
		return turns
	}
	var spoken []provider.Turn // as the JSON dialect has it: nothing but text
	for _, turn := range turns {
		for i := range turn.Results {
			spoken = append(spoken, wiretest.Said(provider.RoleUser, `{"result":"`+turn.Results[i].CallID+`"}`))
		}
		if turn.Role != provider.RoleTool {
			spoken = append(spoken, wiretest.Said(turn.Role, provider.JoinText(turn.Parts)+"."))
		}
	}
	return spoken
}

// models are those whose requests are golden; a vendor without one is asked for "model".
var models = map[string]string{
	"openai": "gpt-5.6-terra", "groq": "qwen/qwen3-32b", "deepseek": "deepseek-v4-pro", "mistral": "mistral-medium-latest", "openrouter": "anthropic/claude-opus-5.5", "perplexity": "sonar-reasoning-pro",
	"vllm": "mistralai/Devstral-Small-2", "lmstudio": "openai/gpt-oss-20b", "llamacpp": "qwen3.gguf",
}

// TestGoldenRequests shows what goes to each vendor of one thread, byte for byte; here it is broken
// into lines.
func TestGoldenRequests(t *testing.T) {
	for _, vendor := range append([]string{""}, openai.Vendors()...) {
		model, name := models[vendor], vendor
		if vendor == "" {
			model, name = "model", "unnamed"
		}
		head := wiretest.Head(model)
		switch vendor {
		case "openai":
			head.ReasoningEffort, head.ServiceTier = "none", "flex"
		case "groq":
			head.ServiceTier = "flex"
		}
		if !openai.TakesTools(vendor) {
			head.Tools = nil
		}
		body := openai.Body(vendor, head, provider.Tail{Withheld: true, Guidance: `Answer "now".`}, thread(vendor, model)...)
		if err := strict.ChatVendor(vendor, body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wiretest.Golden(t, filepath.Join("requests", name), body)
	}
}

// TestGrowsAsItStands: whatever a vendor's order asks for, a thread that grew turn by turn, with an
// end behind each, has the bytes of one that is rendered at once, and what was sent stays the
// beginning of what is sent next.
func TestGrowsAsItStands(t *testing.T) {
	for _, vendor := range append([]string{""}, openai.Vendors()...) {
		p, err := openai.New(openai.Config{Name: "x", BaseURL: "http://127.0.0.1:1/v1", Vendor: vendor})
		if err != nil {
			t.Fatal(err)
		}
		head := provider.Head{Model: "model", Level1: "You are.", MaxOutput: 5000}
		c, err := p.Open(head)
		if err != nil {
			t.Fatal(err)
		}
		shower, ok := c.(provider.Shower)
		if !ok {
			t.Fatal("it cannot be shown")
		}
		turns := thread(vendor, "model")
		before := ""
		for i := range turns {
			for _, tail := range []provider.Tail{{Guidance: "Now."}, {Withheld: true}, {}} {
				c.EndWith(tail)
			}
			c.Append(turns[i])
			for _, tail := range []provider.Tail{{}, {Guidance: `In "short".`}, {Withheld: true}, {}} {
				c.EndWith(tail)
				got, at := string(shower.Body()), string(openai.Body(vendor, head, tail, turns[:i+1]...))
				if got != at {
					t.Fatalf("%s, turn %d, %+v:\n%s\nis not\n%s", vendor, i, tail, got, at)
				}
				if hash, size := c.Request(); hash != regie.HashOf([]byte(at)) || size != len(at) {
					t.Fatalf("%s, turn %d, %+v: the hash or size is another", vendor, i, tail)
				}
			}
			body := strings.TrimSuffix(strings.TrimSuffix(string(shower.Body()), "]}"), `"}`)
			if !strings.HasPrefix(body, before) {
				t.Fatalf("%s, turn %d: what was sent has changed:\n%s\n%s", vendor, i, before, body)
			}
			before = body
		}
	}
}
