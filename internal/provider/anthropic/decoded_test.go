package anthropic_test

import (
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/anthropic"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// TestRecordedStreams holds each recorded stream to its whole reply or its error, and to none where
// it is cut (spec 12.6).
func TestRecordedStreams(t *testing.T) {
	wiretest.Streams(t, asker, "*.sse", "crash_*.txt")
}

// TestGoldenRequests shows what one thread becomes, byte for byte: for a model that thinks within a
// budget, for one that decides how much, for one that does not think.
func TestGoldenRequests(t *testing.T) {
	turns := wiretest.Thread(func(text string) provider.Part {
		return provider.Part{Type: regie.PartThinking, Text: text, Provider: "anthropic", Opaque: []byte(`{"signature":"c2ln"}`)}
	})
	for name, c := range map[string]struct {
		model   string
		options anthropic.Options
	}{
		"thinks": {"claude-opus-4-7", anthropic.Options{Thinks: true, Thinking: "adaptive"}},
		"adapts": {"claude-opus-5-5", anthropic.Options{}},
		"plain":  {"claude-3-5-haiku-20241022", anthropic.Options{}},
	} {
		head := wiretest.Head(c.model)
		if name == "plain" {
			head.ReasoningEffort = ""
		}
		r, err := anthropic.NewRequest(head, c.options)
		if err != nil {
			t.Fatal(err)
		}
		r.Append(turns...)
		r.EndWith(provider.Tail{Withheld: true, Guidance: `Answer "now".`})
		if err := strict.Anthropic(r.Body()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wiretest.Golden(t, "requests/"+name, r.Body())
	}
}
