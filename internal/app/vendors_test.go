package app_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/providertest"
)

// TestVendorsAreKnownOnce: what a person can name as a vendor and what the codec knows the ways of
// are the same names.
func TestVendorsAreKnownOnce(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(config.Vendors(config.ProviderOpenAI), openai.Vendors()); diff != "" {
		t.Errorf("-configured +spoken:\n%s", diff)
	}
}

// TestPerplexity: a vendor without calls is asked in JSON by itself, and what it answered from
// stands behind the answer, numbered as in the text, stored with it.
func TestPerplexity(t *testing.T) {
	t.Parallel()
	formats := providertest.Vendors()
	format := &formats[slices.IndexFunc(formats, func(f providertest.Format) bool { return f.NoTools })]
	server := providertest.NewServer(t, format,
		providertest.Scene{Text: []string{`{"pre_text":"I look.","data_commands":[{"type":"files.list_files","params":{}}]}`}},
		providertest.Scene{Text: []string{`{"pre_text":"Two pages `, `say so [1][2]."}`}})
	b := &bed{t: t, root: t.TempDir(), settings: settingsFor(t, format.Name, server.URL+format.Path)}
	view := b.run(everything)
	expect(t, view, regie.EndAnswered, "SUCCEEDED")
	const want = "Two pages say so [1][2].\n\n[1] https://a.example/1\n[2] https://b.example/2"
	if view.Round.Dialect != regie.DialectJSON || view.Exchanges[1].Reply.AI.Text() != want {
		t.Errorf("%s: %q", view.Round.Dialect, view.Exchanges[1].Reply.AI.Text())
	}
	var request struct {
		Tools    []any `json:"tools"`
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(server.Requests()[1], &request); err != nil || len(request.Tools) > 0 {
		t.Errorf("%v, tools %v", err, request.Tools)
	}
	in := b.request(everything)
	in.Dialect = regie.DialectNative
	if view := b.ask(in); view.Round.End != regie.EndProviderError || !strings.Contains(view.Round.EndNote.String(), "make no calls") {
		t.Errorf("in the other dialect: %s %q", view.Round.End, view.Round.EndNote.String())
	}
}

// TestKeyStaysAtItsAddress: a host that only looks like a vendor's has neither its ways nor its
// key.
func TestKeyStaysAtItsAddress(t *testing.T) {
	t.Parallel()
	var key string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key = r.Header.Get("Authorization")
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusBadRequest)
	}))
	defer server.Close()
	env := map[string]string{
		"REGIE_DATA_DIR": filepath.Join(t.TempDir(), "data"), "HOME": t.TempDir(), "REGIE_PROVIDER": "openai", "REGIE_BASE_URL": server.URL + "/v1", "REGIE_MODEL": "m", "OPENAI_API_KEY": "sk-canary",
	}
	settings, err := config.Load(func(name string) string { return env[name] }, config.Flags{})
	fatal(t, err)
	b := &bed{t: t, root: t.TempDir(), settings: settings}
	if view := b.run(everything); view.Round.End != regie.EndProviderError || key != "" {
		t.Errorf("%s, the key %q went along", view.Round.End, key)
	}
}
