package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/provider"
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
	b := &harness{t: t, root: t.TempDir(), settings: settingsFor(t, format.Name, server.URL+format.Path)}
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
	if view := b.ask(in); view.Round.End != regie.EndProviderError || !strings.Contains(view.Round.EndNote.String(), "have no native tool calls") {
		t.Errorf("in the other dialect: %s %q", view.Round.End, view.Round.EndNote.String())
	}
}

// fileSettings are settings from a regie.yaml.
func fileSettings(t *testing.T, data, yaml string) config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "regie.yaml")
	fatal(t, os.WriteFile(path, []byte(yaml), 0o600))
	env := map[string]string{"REGIE_DATA_DIR": data, "HOME": t.TempDir(), "LAB_KEY": "sk-canary"}
	settings, err := config.Load(func(name string) string { return env[name] }, config.Flags{Config: path})
	fatal(t, err)
	return settings
}

// TestHowAModelIsAsked: effort, one call at a time and the tier go from the file to the wire, of
// each kind of server; a round keeps what it was started with, and what was sent can be shown
// again.
func TestHowAModelIsAsked(t *testing.T) {
	t.Parallel()
	type wanted struct{ in, not []string }
	yaml := func(kind, vendor, tier, address, model, agent string) string {
		if vendor != "" {
			vendor = ", vendor: " + vendor
		}
		if tier != "" {
			tier = ", service_tier: " + tier
		}
		return fmt.Sprintf("providers:\n  lab: {type: %s%s%s, base_url: %q, api_key_env: LAB_KEY}\nagents:\n  main: {provider: lab, model: %s%s}\n", kind, vendor, tier, address, model, agent)
	}
	const asks = ", reasoning_effort: high, parallel_tool_calls: false"
	formats := append(providertest.Formats(), providertest.Vendors()...)
	for _, c := range []struct {
		kind, vendor, model, tier string
		want                      wanted
	}{
		{"openai", "", "m", "flex", wanted{[]string{`"reasoning_effort":"high"`, `"parallel_tool_calls":false`, `"service_tier":"flex"`}, nil}},
		{"openai", "groq", "openai/gpt-oss-120b", "performance", wanted{[]string{`"reasoning_effort":"high"`, `"parallel_tool_calls":false`, `"service_tier":"performance"`}, nil}},
		{"openai", "deepseek", "deepseek-flash", "", wanted{[]string{`"thinking":{"type":"enabled"},"reasoning_effort":"high"`}, []string{"parallel_tool_calls", "service_tier"}}},
		{"anthropic", "", "claude-opus-5-5", "standard_only", wanted{[]string{`"output_config":{"effort":"high"}`, `"disable_parallel_tool_use":true`, `"service_tier":"standard_only"`}, []string{`"thinking":{`}}},
		{"anthropic", "", "claude-sonnet-4-6", "", wanted{[]string{`"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`}, nil}},
		{"ollama", "", "gpt-oss:20b", "", wanted{[]string{`"think":"high"`}, nil}},
		{"ollama", "", "qwen3:8b", "", wanted{[]string{`"think":true`}, nil}},
	} {
		t.Run(c.kind+c.vendor+" "+c.model, func(t *testing.T) {
			name := c.kind
			if c.vendor != "" {
				name = c.vendor
			}
			format := formats[slices.IndexFunc(formats, func(f providertest.Format) bool { return f.Name == name })]
			server := providertest.NewServer(t, &format,
				providertest.Scene{Thinking: "Hm.", Signature: "c2ln", Calls: []provider.Call{{ID: "w", Name: "files__write_file", Arguments: `{"content":"x","path":"out.txt"}`}}}, providertest.Scene{Text: []string{"Done."}})
			data := filepath.Join(t.TempDir(), "data")
			b := &harness{t: t, root: t.TempDir(), settings: fileSettings(t, data, yaml(c.kind, c.vendor, c.tier, server.URL+format.Path, c.model, asks))}
			if from := b.settings.Providers["lab"].Origin["service_tier"]; (from != "") != (c.tier != "") {
				t.Errorf("the tier is from %q", from)
			}
			conn := b.connect()
			run := b.startRun(conn, approval.Policy{OnApproval: approval.Park})
			asked := b.parked(conn, run.SessionID)
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			// The file says something else while the run waits: the run goes on as it was started.
			b.settings = fileSettings(t, data, yaml(c.kind, c.vendor, "", server.URL+format.Path, c.model, ", reasoning_effort: low"))
			conn = b.connect()
			defer conn.Close()
			b.decide(conn, asked.Approvals[0], allowAll(asked.Approvals[0])...)
			view := b.await(conn, run)
			expect(t, view, regie.EndAnswered, "SUCCEEDED")
			requests := server.Requests()
			for i, request := range requests {
				for _, want := range c.want.in {
					if !strings.Contains(string(request), want) {
						t.Errorf("request %d lacks %s: %.300s", i, want, request)
					}
				}
				for _, not := range c.want.not {
					if strings.Contains(string(request), not) {
						t.Errorf("request %d has %s: %.300s", i, not, request)
					}
				}
				if p, err := conn.Prompt(t.Context(), dispatch.PromptRequest{RoundID: view.Round.ID, Exchange: i + 1}); err != nil || !p.Exact() || string(p.Body) != string(request) {
					t.Errorf("request %d cannot be shown as it was: %v", i, err)
				}
			}
			// The next round is asked as the file has it now.
			again := b.startRun(conn, everything)
			b.await(conn, again)
			newest := server.Requests()
			if last := string(newest[len(newest)-1]); strings.Contains(last, `"high"`) && c.model != "gpt-oss:20b" || strings.Contains(last, "service_tier") {
				t.Errorf("a new run is asked as before: %.300s", last)
			}
		})
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
	b := &harness{t: t, root: t.TempDir(), settings: settings}
	if view := b.run(everything); view.Round.End != regie.EndProviderError || key != "" {
		t.Errorf("%s, the key %q went along", view.Round.End, key)
	}
}
