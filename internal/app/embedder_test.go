package app

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/index"
	"github.com/regie-run/regie/internal/provider/providertest"
)

func embedServer(t *testing.T, name string) *providertest.EmbedServer {
	t.Helper()
	formats := providertest.EmbedFormats()
	return providertest.NewEmbedServer(t, &formats[slices.IndexFunc(formats, func(f providertest.EmbedFormat) bool { return f.Name == name })])
}

// settingsOf loads a file of settings.
func settingsOf(t *testing.T, yaml string) config.Config {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "regie.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(func(name string) string { return map[string]string{"HOME": dir, "OPENAI_KEY": "sk-canary"}[name] }, config.Flags{Config: path, DataDir: filepath.Join(dir, "data")})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEngineEmbeds: what a search has brought into the index is embedded behind it; the next one
// finds it by its meaning too.
func TestEngineEmbeds(t *testing.T) {
	t.Parallel()
	s := embedServer(t, "ollama")
	c := settingsOf(t, "providers: {local: {type: ollama, base_url: '"+s.URL+"'}}\nembedder: {provider: local, model: nomic-embed-text}\n")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cat.md"), []byte("# Cat\n\nThe cat sleeps.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := newIndexes(c, slog.New(slog.DiscardHandler))
	defer all.Close()
	search := func() index.Answer {
		t.Helper()
		x, done, err := all.Index(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		if _, err := x.Update(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		a, err := x.Search(t.Context(), index.Query{Text: "the cat"})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := search(); a.Mode != index.Lexical || a.Reason.IsZero() || len(a.Hits) != 1 || !all.Asks() {
		t.Errorf("at first: %+v", a)
	}
	all.embedding.Wait()
	if a := search(); a.Mode != index.Hybrid || !a.Reason.IsZero() || len(a.Hits) != 1 {
		t.Errorf("then: %+v", a)
	}
	all.embedding.Wait()
	documents := 0
	for _, text := range slices.Concat(s.Requests()...) {
		if strings.HasPrefix(text, "search_document: ") {
			documents++
		}
	}
	if documents != 1 {
		t.Errorf("%d documents were embedded", documents)
	}
}

// TestEmbedMoney: the price of an embedder is its provider's, of the caps those of a day hold, and
// one that is nobody's service is free.
func TestEmbedMoney(t *testing.T) {
	t.Parallel()
	const openai = "providers: {openai: {type: openai, api_key_env: OPENAI_KEY}, local: {type: ollama}, lab: {type: openai, base_url: 'http://127.0.0.1:1/v1', prices: {m: {input: 3, output: 0}}}}\n"
	for yaml, want := range map[string]index.Money{
		"embedder: {provider: openai, model: text-embedding-3-small}":                                                   {Known: true},
		"embedder: {provider: openai, model: text-embedding-3-small}\nbudget: {usd_per_round: 1}":                       {Known: true, Capped: true},
		"embedder: {provider: openai, model: text-embedding-9}\nbudget: {usd_per_round: 1}":                             {Capped: true},
		"embedder: {provider: openai, model: text-embedding-9}":                                                         {},
		"embedder: {provider: local, model: m}\nbudget: {usd_per_day: 2, usd_per_workspace_day: 3}":                     {Known: true, Capped: true, PerDay: 2_000_000},
		"embedder: {provider: lab, model: m}\nbudget: {usd_per_day: 2, usd_per_workspace_day: 0.5}":                     {Known: true, Capped: true, PerDay: 500_000},
		"embedder: {provider: lab, model: m}\nbudget: {usd_per_workspace_day: 4}\nagents: {main: {provider: openai}}\n": {Known: true, Capped: true, PerDay: 4_000_000},
	} {
		c := settingsOf(t, openai+yaml)
		e, err := newEmbedder(&c)
		if err != nil {
			t.Fatal(err)
		}
		got := embedMoney(&c, e)
		input := got.Price.Input
		got.Price = want.Price
		if got != want || (input != 0) != (got.Known && e.Name() != "local") {
			t.Errorf("%s: %+v at %d, want %+v", yaml, got, input, want)
		}
	}
}

// TestNoEmbedder: an embedder that cannot be used leaves a search lexical, and says why.
func TestNoEmbedder(t *testing.T) {
	t.Parallel()
	c := settingsOf(t, "providers: {lab: {type: openai, base_url: 'http://127.0.0.1:1/v1', api_key_env: NOT_SET}}\nembedder: {provider: lab, model: m}\n")
	x, err := OpenIndex(t.Context(), c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	a, err := x.Search(t.Context(), index.Query{Text: "cat"})
	if err != nil || a.Mode != index.Lexical || !strings.Contains(a.Reason.String(), "NOT_SET, which is not set") {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestTryEmbedder is what the doctor is told.
func TestTryEmbedder(t *testing.T) {
	t.Parallel()
	s := embedServer(t, "ollama")
	local := "providers: {local: {type: ollama, base_url: '" + s.URL + "'}}\nembedder: {provider: local, model: nomic-embed-text}\n"
	c := settingsOf(t, local)
	if e := tryEmbedder(t.Context(), &c); e == nil || e.Code != "" || e.Dimensions != providertest.EmbedDimensions || !e.Local || e.Unpriced {
		t.Errorf("%+v", e)
	}
	s.Answer = func(w http.ResponseWriter, _ *http.Request, _ int, _ [][]float32) bool {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":"model \"nomic-embed-text\" not found, try pulling it first"}`))
		return true
	}
	if e := tryEmbedder(t.Context(), &c); e.Code != regie.CodeProviderRejected || !strings.Contains(e.Error, "ollama pull") {
		t.Errorf("%+v", e)
	}
	c = settingsOf(t, "providers: {lab: {type: openai, base_url: '"+s.URL+"/v1'}}\nembedder: {provider: lab, model: m}\nbudget: {usd_per_day: 1}\n")
	before := len(s.Requests())
	if e := tryEmbedder(t.Context(), &c); e.Code != "" || !e.Unpriced || !e.Capped || len(s.Requests()) != before {
		t.Errorf("%+v", e)
	}
	c = settingsOf(t, "limits: {}\n")
	if e := tryEmbedder(t.Context(), &c); e != nil {
		t.Errorf("none is configured: %+v", e)
	}
}
