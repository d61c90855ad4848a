package gemini_test

import (
	"net/http"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/gemini"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// TestRecordedStreams holds each documented stream to its whole reply, and to none where it is cut
// (spec 12.6).
func TestRecordedStreams(t *testing.T) {
	wiretest.Streams(t, func(t *testing.T) func(stream string) (*provider.Reply, error) {
		t.Helper()
		ask := asker(t)
		return func(stream string) (*provider.Reply, error) { return ask(http.StatusOK, stream) }
	}, "*.sse")
}

// TestGoldenRequests shows what one thread becomes, byte for byte: its own signatures on the parts
// that had them, those of others left out.
func TestGoldenRequests(t *testing.T) {
	for _, model := range []string{"gemini-3-pro", "gemini-2.5-flash"} {
		r, err := gemini.NewRequest(wiretest.Head(model), gemini.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r.Append(wiretest.Thread(func(text string) provider.Part {
			return provider.Part{Type: regie.PartThinking, Text: text, Provider: "gemini", Opaque: []byte(`{"thoughtSignature":"c2ln"}`)}
		})...)
		r.EndWith(provider.Tail{Withheld: true, Guidance: `Answer "now".`})
		if err := strict.Gemini(model, r.Body()); err != nil {
			t.Errorf("%s: %v", model, err)
		}
		wiretest.Golden(t, "requests/"+model, r.Body())
	}
}
