package gemini

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/sse"
	"github.com/regie-run/regie/internal/provider/wire"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// FuzzStream reads anything as a stream: it never panics, and what it returns is whole, can be
// stored, and is legal in the next request.
func FuzzStream(f *testing.F) {
	for _, data := range wiretest.Recorded(f, "*.sse") {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newCollector(&wire.Server{}, map[string]string{"f": "f"}, nil)
		events := sse.NewEvents(bytes.NewReader(data), wire.MaxEvent)
		defer events.Release()
		for {
			event, err := events.Next()
			if err != nil {
				break
			}
			if c.add(event) != nil {
				return
			}
		}
		reply, err := c.end()
		if err != nil {
			return
		}
		wiretest.Storable(t, Name, reply)
		request, err := NewRequest(provider.Head{Model: "gemini-3-pro", MaxOutput: 1}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		request.Append(provider.Turn{Role: provider.RoleAssistant, Parts: reply.Parts})
		if body := request.Body(); !utf8.Valid(body) || !json.Valid(body) {
			t.Fatalf("a request that is no JSON: %q", body)
		}
	})
}
