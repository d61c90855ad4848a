package ollama_test

import (
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/ollama"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// TestRecordedStreams holds each recorded stream to its whole reply or its error, and to none where
// it is cut (spec 12.6).
func TestRecordedStreams(t *testing.T) {
	wiretest.Streams(t, asker, "*.ndjson", "crash_*.txt")
}

// TestGoldenRequests shows what one thread becomes, byte for byte.
func TestGoldenRequests(t *testing.T) {
	p, err := ollama.New(ollama.Config{Name: "test", BaseURL: "http://127.0.0.1:1", Context: 8192, KeepAlive: "5m"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Open(wiretest.Head("qwen3"))
	if err != nil {
		t.Fatal(err)
	}
	c.Append(wiretest.Thread(func(text string) provider.Part {
		return provider.Part{Type: regie.PartThinking, Text: text, Provider: "ollama"}
	})...)
	c.EndWith(provider.Tail{Withheld: true, Guidance: `Answer "now".`})
	shower, ok := c.(provider.Shower)
	if !ok {
		t.Fatal("it cannot be shown")
	}
	if err := strict.Ollama(shower.Body()); err != nil {
		t.Error(err)
	}
	wiretest.Golden(t, "requests/thread", shower.Body())
}
