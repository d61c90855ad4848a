// Package wiretest is what the tests of codecs share from inside their packages: providertest,
// which knows all codecs, cannot be had there. It starts no goroutine.
package wiretest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Recorded returns the files of testdata that match a pattern, by name. It fails the test if there
// are none.
func Recorded(tb testing.TB, pattern string) map[string][]byte {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		tb.Fatal(files, err)
	}
	out := map[string][]byte{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		out[filepath.Base(file)] = data
	}
	return out
}

// Asker starts a server that answers at path with a stream of the given media type, and opens a
// provider of it. The returned function sends one request for the model.
func Asker(tb testing.TB, model, path, media string, open func(address string) (provider.Provider, error)) func(
	stream string) (*provider.Reply, error) {
	tb.Helper()
	var stream string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", media)
		_, _ = w.Write([]byte(stream))
	}))
	tb.Cleanup(server.Close)
	p, err := open(server.URL + "/v1/")
	if err != nil {
		tb.Fatal(err)
	}
	c, err := p.Open(provider.Head{Model: model, MaxOutput: 100})
	if err != nil {
		tb.Fatal(err)
	}
	c.Append(provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: "go"}}})
	return func(answer string) (*provider.Reply, error) {
		stream = answer
		return c.Send(tb.Context(), nil)
	}
}

// Storable asserts that every store accepts a reply. Opaque data must be valid and carry the
// provider's name, and each call must be complete (spec 12.6, trap 1).
func Storable(tb testing.TB, name string, reply *provider.Reply) {
	tb.Helper()
	for _, part := range reply.Parts {
		if !utf8.ValidString(part.Text) || strings.ContainsRune(part.Text, 0) {
			tb.Fatalf("text that cannot be stored: %q", part.Text)
		}
		if len(part.Opaque) > 0 && (!json.Valid(part.Opaque) || !utf8.Valid(part.Opaque) ||
			bytes.ContainsRune(part.Opaque, 0) || part.Provider != name) {
			tb.Fatalf("data of the vendor's that cannot be stored: %q of %q", part.Opaque, part.Provider)
		}
		if part.Type == regie.PartCall && (!json.Valid([]byte(part.Call.Arguments)) || part.Call.Arguments[0] != '{') {
			tb.Fatalf("a half call: %q", part.Call.Arguments)
		}
	}
}
