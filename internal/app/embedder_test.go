package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	fatal(t, os.WriteFile(path, []byte(yaml), 0o600))
	c, err := config.Load(func(name string) string { return map[string]string{"HOME": dir, "OPENAI_KEY": "sk-canary"}[name] }, config.Flags{Config: path, DataDir: filepath.Join(dir, "data")})
	fatal(t, err)
	return c
}

// TestEngineEmbeds: what a search has brought into the index is embedded behind it; the next one
// finds it by its meaning too.
func TestEngineEmbeds(t *testing.T) {
	t.Parallel()
	s := embedServer(t, "ollama")
	c := settingsOf(t, "providers: {local: {type: ollama, base_url: '"+s.URL+"'}}\nembedder: {provider: local, model: nomic-embed-text}\n")
	dir := t.TempDir()
	fatal(t, os.WriteFile(filepath.Join(dir, "cat.md"), []byte("# Cat\n\nThe cat sleeps.\n"), 0o600))
	all := newIndexes(c)
	defer all.Close()
	search := func() index.Answer {
		t.Helper()
		x, done, err := all.Index(t.Context(), dir)
		fatal(t, err)
		defer done()
		if _, err := x.Update(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		a, err := x.Search(t.Context(), index.Query{Text: "the cat"})
		fatal(t, err)
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
		fatal(t, err)
		got := embedMoney(&c, e)
		input := got.Price.Input
		got.Price = want.Price
		if got != want || (input != 0) != (got.Known && e.Name() != "local") {
			t.Errorf("%s: %+v at %d, want %+v", yaml, got, input, want)
		}
	}
}
