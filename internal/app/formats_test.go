package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/store"
)

// settingsFor are settings that name a provider at an address and nothing else.
func settingsFor(t *testing.T, name, address string) config.Config {
	t.Helper()
	env := map[string]string{"REGIE_DATA_DIR": filepath.Join(t.TempDir(), "data"), "REGIE_PROVIDER": name, "REGIE_BASE_URL": address, "REGIE_MODEL": "scripted", "HOME": t.TempDir()}
	if name == "responses" { // which is no vendor, but an API of one
		env["REGIE_CONFIG"] = filepath.Join(env["HOME"], "regie.yaml")
		if err := os.WriteFile(env["REGIE_CONFIG"], []byte("providers: {responses: {type: openai, api: responses, base_url: "+address+"}}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	settings, err := config.Load(func(name string) string { return env[name] }, config.Flags{})
	fatal(t, err)
	return settings
}

// told is what a stored run holds that must not depend on the format: messages, calls, results,
// tokens.
func told(view store.RoundView) (out []string) {
	for _, e := range view.Exchanges {
		for _, part := range e.Reply.AI.Parts {
			out = append(out, string(part.Type)+" "+part.Text)
		}
		for _, c := range e.Calls {
			out = append(out, c.ProviderCallID+" "+c.Tool+c.Arguments+" "+string(c.State)+" "+c.Result)
		}
	}
	return append(out, string(view.Round.End))
}

// TestFormatsTellTheSame runs one scripted session through each wire format, and through each
// vendor's framing and rules: the stored thread is the same, and so is what is sent when it is
// rebuilt.
func TestFormatsTellTheSame(t *testing.T) {
	t.Parallel()
	var first, common []string
	for i, format := range append(providertest.Formats(), providertest.Vendors()...) {
		vendor := i >= len(providertest.Formats())
		if format.NoTools {
			continue
		}
		scenes := []providertest.Scene{
			{Thinking: "Let me see.", Signature: "c2ln", Text: []string{"I ", "look."}, Input: 900, Output: 20, Calls: []provider.Call{
				{ID: "one", Name: "files__list_files", Arguments: `{}`}, {ID: "two", Name: "files__read_file", Arguments: `{"path":"é.txt"}`},
			}},
			{Calls: []provider.Call{{ID: "three", Name: "files__write_file", Arguments: `{"content":"hi\n","path":"out.txt"}`}}, Input: 950, Output: 9},
			{Text: []string{"All done."}, Input: 990, Output: 4},
		}
		if vendor {
			scenes[0].Signature, scenes[1].Thinking, scenes[1].Calls[0].ID = "", "So.", "two"
		}
		t.Run(fmt.Sprint(format.Name, vendor), func(t *testing.T) {
			server := providertest.NewServer(t, &format, scenes...)
			b := &harness{t: t, root: t.TempDir(), settings: settingsFor(t, format.Name, server.URL+format.Path)}
			if vendor { // one that is called as its type says nothing by that
				known := b.settings.Providers[format.Name]
				known.Vendor = format.Name
				b.settings.Providers[format.Name] = known
			}
			view := b.run(everything)
			expect(t, view, regie.EndAnswered, "SUCCEEDED", "FAILED", "SUCCEEDED")
			got := told(view)
			if first == nil {
				first = got
			}
			if diff := cmp.Diff(first, got); !vendor && diff != "" {
				t.Errorf("the thread differs (-openai +%s):\n%s", format.Name, diff)
			}
			got = slices.DeleteFunc(slices.Clone(got), func(said string) bool {
				return strings.HasPrefix(said, "thinking ") || strings.HasPrefix(said, "call_")
			})
			if common == nil && vendor {
				common = got
			}
			if diff := cmp.Diff(common, got); vendor && diff != "" {
				t.Errorf("the thread differs:\n%s", diff)
			}
			if u := view.Exchanges[0].Usage; !vendor && (u.Input != 900 || u.Output != 20 || view.Exchanges[0].Money.Known != (format.Name == "ollama")) {
				t.Errorf("usage %+v, money %+v", u, view.Exchanges[0].Money)
			}
			if hash := regie.HashOf(server.Requests()[2]); view.Exchanges[2].Request != hash {
				t.Error("the recorded hash is not that of the request")
			}
			asked := len(server.Requests())
			conn, err := app.Connect(t.Context(), app.Options{Config: b.settings, ReadOnly: true})
			fatal(t, err)
			defer conn.Close()
			if again, err := conn.Replay(t.Context(), view.Round.ID); err != nil || again.Identical != 3 || len(server.Requests()) != asked {
				t.Errorf("once more: %+v, %v", again, err)
			}
		})
	}
}

// TestHalfAnAnswer: an answer that reached the limit of its length is shown and not taken for a
// whole one.
func TestHalfAnAnswer(t *testing.T) {
	t.Parallel()
	for _, format := range providertest.Formats() {
		t.Run(format.Name, func(t *testing.T) {
			server := providertest.NewServer(t, &format, providertest.Scene{Text: []string{"And so"}, Reason: "length"})
			b := &harness{t: t, root: t.TempDir(), settings: settingsFor(t, format.Name, server.URL+format.Path)}
			view := b.run(everything)
			if note := view.Round.EndNote.String(); view.Round.End != regie.EndAnswered || !strings.Contains(note, "is cut off (") {
				t.Errorf("ended %s: %q", view.Round.End, note)
			}
		})
	}
}

// TestSettle is what is chosen by itself, and what is not.
func TestSettle(t *testing.T) {
	t.Parallel()
	formats := providertest.Formats()
	native := providertest.NewServer(t, &formats[2], providertest.Scene{})
	native.Models = []string{"nomic-embed-text", "qwen3:8b", "llama"}
	embeds := providertest.NewServer(t, &formats[2], providertest.Scene{})
	embeds.Models = []string{"nomic-embed-text"}
	compatible := providertest.NewServer(t, &formats[0], providertest.Scene{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	for name, c := range map[string]struct {
		env             map[string]string
		provider, model string
		chose           bool
		keys            []string
	}{
		"nothing":                 {map[string]string{"OLLAMA_HOST": "127.0.0.1:1"}, "", "", false, nil},
		"Ollama":                  {map[string]string{"OLLAMA_HOST": native.URL}, "ollama", "qwen3:8b", true, nil},
		"Ollama and a model":      {map[string]string{"OLLAMA_HOST": native.URL, "REGIE_MODEL": "llama"}, "ollama", "llama", true, nil},
		"Ollama without a model":  {map[string]string{"OLLAMA_HOST": embeds.URL}, "", "", false, nil},
		"Ollama that is busy":     {map[string]string{"OLLAMA_HOST": slow.URL}, "", "", false, nil},
		"Ollama elsewhere":        {map[string]string{"OLLAMA_HOST": "192.0.2.1"}, "", "", false, nil},
		"a key":                   {map[string]string{"OLLAMA_HOST": "127.0.0.1:1", "ANTHROPIC_API_KEY": "k"}, "anthropic", "claude-sonnet-5-5", true, []string{"anthropic"}},
		"a key, an empty Ollama":  {map[string]string{"OLLAMA_HOST": embeds.URL, "OPENAI_API_KEY": "k"}, "openai", "gpt-5.4", true, []string{"openai"}},
		"a key and Ollama":        {map[string]string{"OLLAMA_HOST": native.URL, "OPENAI_API_KEY": "k"}, "", "", false, []string{"openai"}},
		"two keys":                {map[string]string{"OLLAMA_HOST": "127.0.0.1:1", "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "", "", false, []string{"anthropic", "openai"}},
		"Ollama by name":          {map[string]string{"OLLAMA_HOST": native.URL, "REGIE_PROVIDER": "ollama"}, "ollama", "qwen3:8b", true, nil},
		"a server with one model": {map[string]string{"REGIE_BASE_URL": compatible.URL + "/v1"}, "openai", "scripted", true, nil},
		"all said":                {map[string]string{"REGIE_BASE_URL": compatible.URL + "/v1", "REGIE_MODEL": "m", "ANTHROPIC_API_KEY": "k"}, "openai", "m", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.env["HOME"] = t.TempDir()
			env := func(variable string) string { return c.env[variable] }
			settings, err := config.Load(env, config.Flags{})
			fatal(t, err)
			started := time.Now()
			found, chose := app.Settle(context.Background(), &settings, env)
			if took := time.Since(started); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
			if settings.Provider != c.provider || settings.Model != c.model || chose != c.chose || !slices.Equal(found.Keys, c.keys) {
				t.Errorf("got %q, %q, %v, %v", settings.Provider, settings.Model, chose, found.Keys)
			}
			if chose {
				if _, err := app.Models(settings)(settings.Provider); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
