package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

const several = `
providers:
  anthropic: {api_key_env: MY_KEY, models: {large: claude-x}}
  groq: {type: openai, vendor: groq, models: {large: l}}
  lab: {type: openai, vendor: vllm, base_url: "http://127.0.0.1:8000/v1"}
  local: {type: ollama, num_ctx: 65536, keep_alive: 30m}
  copy: {type: anthropic, base_url: "https://proxy.example"}
agents: {main: {provider: anthropic, model: large}}
`

func TestProviders(t *testing.T) {
	env := map[string]string{"MY_KEY": "a", "GROQ_API_KEY": "g", "ANTHROPIC_API_KEY": "not this", "OPENAI_API_KEY": "o"}
	c, err := load(t, several, env)
	if err != nil {
		t.Fatal(err)
	}
	if c.Provider != "anthropic" || c.Model != "claude-x" || c.APIKey != "a" || c.BaseURL != "https://api.anthropic.com" || c.Origin["provider"] != c.Origin["file"] || c.Origin["api_key"] != "MY_KEY" {
		t.Errorf("chosen %q %q %q %q, %v", c.Provider, c.Model, c.APIKey, c.BaseURL, c.Origin)
	}
	for name, want := range map[string]Provider{
		"groq":   {Type: "openai", BaseURL: "https://api.groq.com/openai/v1", APIKey: "g"},
		"lab":    {Type: "openai", BaseURL: "http://127.0.0.1:8000/v1"},
		"local":  {Type: "ollama", BaseURL: "http://127.0.0.1:11434", NumCtx: 65536, KeepAlive: "30m"},
		"copy":   {Type: "anthropic", BaseURL: "https://proxy.example"}, // the vendor's key goes to nobody else
		"openai": {Type: "openai", BaseURL: "https://api.openai.com/v1", APIKey: "o"},
	} {
		got, ok := c.Named(name)
		if !ok || got.Type != want.Type || got.BaseURL != want.BaseURL || got.APIKey != want.APIKey || got.NumCtx != want.NumCtx || got.KeepAlive != want.KeepAlive {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// A round of another provider than the chosen one is pinned by its own settings.
	if c.FingerprintOf("groq") == c.Fingerprint() || c.FingerprintOf("groq") == c.FingerprintOf("lab") {
		t.Error("two providers have one fingerprint")
	}
	env["REGIE_PROVIDER"] = "groq"
	other, err := load(t, several, env)
	if err != nil || other.Provider != "groq" || other.Model != "openai/gpt-oss-120b" || other.FingerprintOf("groq") != c.FingerprintOf("groq") || other.Origin["provider"] != "REGIE_PROVIDER" {
		t.Errorf("%q %q: another choice changes a provider's fingerprint (%v)", other.Provider, other.Model, err)
	}
	for name, bad := range map[string]struct{ content, says string }{
		"no type":          {"providers: {lab: {base_url: 'http://h'}}", "has no known type"},
		"unknown type":     {"providers: {lab: {type: x}}", "providers.lab.type is"},
		"no address":       {"providers: {lab: {type: openai}}", "no address"},
		"another's api":    {"providers: {local: {type: ollama, api: chat}}", "is of type ollama, which has no setting api"},
		"no api":           {"providers: {lab: {type: openai, api: soap, base_url: 'http://h'}}", "use chat, responses"},
		"no vendor":        {"providers: {lab: {type: openai, vendor: nobody}}", `vendor is "nobody"`},
		"a vendor's type":  {"providers: {lab: {type: ollama, vendor: groq}}", "use one of ollama"},
		"a password":       {`providers: {lab: {type: openai, base_url: "http://u:canary@127.0.0.1:1/v1"}}`, "must not contain a password"},
		"an address":       {"providers: {lab: {type: openai, base_url: nowhere}}", "not that of a server"},
		"a name":           {"providers: {demo: {type: openai}}", "not a valid provider name"},
		"a key":            {"providers: {openai: {api_key: sk-canary}}", "api_key_env"},
		"a small context":  {"providers: {local: {type: ollama, num_ctx: 5}}", "at least 1024"},
		"a typo":           {"providers:\n  lab: {typ: openai}", "line 2: unknown key typ, did you mean type?"},
		"a typo of limits": {"limits: {chat: {max_tool_call: 3}}", "line 1: unknown key max_tool_call, did you mean max_tool_calls?"},
		"a typo at top":    {"provider: {}", "did you mean providers?"},
		"nothing like it":  {"colour: {}", "unknown key colour"},
		"an agent's name":  {"agents: {Other: {}}", "is not a valid agent name"},
		"nobody":           {"agents: {main: {provider: nobody}}", `no provider "nobody"`},
	} {
		if _, err := load(t, bad.content, nil); regie.CodeOf(err) != regie.CodeBadRequest || !strings.Contains(err.Error(), bad.says) || strings.Contains(err.Error(), "sk-canary") {
			t.Errorf("%s: %v, want %q", name, err, bad.says)
		}
	}
}

// TestSpeaks: OpenAI's own address is asked in Responses and every other one in Chat Completions,
// unless the settings say it.
func TestSpeaks(t *testing.T) {
	const content = `
providers:
  openai: {}
  proxy: {type: openai, base_url: "https://proxy.example/v1", api: responses}
  older: {type: openai, base_url: "https://api.openai.com/v1", api: chat}
  europe: {type: openai, base_url: "https://eu.api.openai.com/v1"}
  like: {type: openai, base_url: "https://notapi.openai.com/v1"}
  lab: {type: openai, base_url: "http://127.0.0.1:8000/v1"}
  groq: {}
  anthropic: {}
`
	c, err := load(t, content, map[string]string{"OPENAI_API_KEY": "o"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"openai": APIResponses, "proxy": APIResponses, "older": APIChat, "europe": APIResponses, "like": APIChat, "lab": APIChat, "groq": APIChat, "anthropic": "",
	} {
		if p, ok := c.Named(name); !ok || p.Speaks() != want {
			t.Errorf("%s speaks %q, want %q", name, p.Speaks(), want)
		}
	}
	// The key in the environment alone, and the address that a flag gives in its place.
	env := map[string]string{"OPENAI_API_KEY": "o", "REGIE_PROVIDER": "openai"}
	for address, want := range map[string]string{"": APIResponses, "http://127.0.0.1:1/v1": APIChat} {
		env["REGIE_BASE_URL"] = address
		c, err := load(t, "", env)
		if p, _ := c.Named("openai"); err != nil || p.Speaks() != want {
			t.Errorf("with %q it speaks %q, want %q (%v)", address, p.Speaks(), want, err)
		}
	}
	// A node that was told to speak the other one does not answer in place of this.
	one, failed := load(t, "providers: {openai: {api: chat}}", env)
	other, err := load(t, "providers: {openai: {api: responses}}", env)
	if failed != nil || err != nil || one.FingerprintOf("openai") == other.FingerprintOf("openai") {
		t.Errorf("two APIs have one fingerprint: %v, %v", failed, err)
	}
}

// TestProviderImages: whether models take images is the provider's setting, which a client hands on
// and two nodes must have alike.
func TestProviderImages(t *testing.T) {
	prints := map[regie.Hash]bool{}
	for setting, want := range map[string]string{"": "", ", images: true": "true", ", images: false": "false"} {
		c, err := load(t, `providers: {lab: {type: openai, base_url: "http://127.0.0.1:1/v1"`+setting+`}}`, map[string]string{"REGIE_PROVIDER": "lab"})
		if err != nil {
			t.Fatal(err)
		}
		in, _ := c.ClientProvider()
		data, err := json.Marshal(in)
		var read ClientProvider
		if err == nil {
			err = json.Unmarshal(data, &read)
		}
		got := ""
		if read.Provider.Images != nil {
			got = strconv.FormatBool(*read.Provider.Images)
		}
		if err != nil || got != want {
			t.Errorf("%q is %q, %v", setting, got, err)
		}
		prints[c.FingerprintOf("lab")] = true
	}
	if len(prints) != 3 {
		t.Errorf("%d fingerprints", len(prints))
	}
	if _, err := load(t, `providers: {lab: {type: ollama, images: many}}`, nil); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Errorf("a setting that is neither true nor false: %v", err)
	}
}

// TestSetup stores choices and reads them back, below what the person wrote.
func TestSetup(t *testing.T) {
	home := t.TempDir()
	env := func(name string) string { return map[string]string{"HOME": home}[name] }
	path, err := SaveSetup(env, Provider{Name: "anthropic", Type: "anthropic", BaseURL: "https://api.anthropic.com", APIKey: "sk-ant-1"}, "claude-x")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(path) != filepath.Join(home, ".config", "regie") {
		t.Errorf("%s: %v, %v", path, info, err)
	}
	if c, err := Load(env, Flags{}); err != nil || c.Provider != "anthropic" || c.Model != "claude-x" || c.APIKey != "sk-ant-1" || c.Origin["api_key"] != path {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := SaveSetup(env, Provider{Name: "demo"}, ""); err != nil {
		t.Fatal(err)
	}
	c, err := Load(env, Flags{})
	if p, ok := c.Named("anthropic"); err != nil || c.Provider != "demo" || c.Model != "demo" || !ok || p.APIKey != "sk-ant-1" {
		t.Errorf("another choice: %q %q, %+v, %v", c.Provider, c.Model, p, err)
	}
	// What stands in regie.yaml wins, and a stored key stays with its address.
	written := filepath.Join(home, ".config", "regie", "regie.yaml")
	if err := os.WriteFile(written, []byte("agents: {main: {provider: anthropic}}\nproviders: {anthropic: {models: {small: s}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(env, Flags{Model: "small"}); err != nil || c.Provider != "anthropic" || c.APIKey != "sk-ant-1" || c.Model != "s" {
		t.Errorf("%q %q %q, %v", c.Provider, c.APIKey, c.Model, err)
	}
	if c, err := Load(env, Flags{BaseURL: "https://elsewhere.example", Provider: "anthropic", Model: "m"}); err != nil || c.APIKey != "" {
		t.Errorf("a stored key goes to another address: %v", err)
	}
	// A named file is the only one.
	if c, err := Load(env, Flags{Config: written}); err != nil || c.APIKey != "" {
		t.Errorf("%q, %v", c.APIKey, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(env, Flags{}); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others can read: %v", err)
	}
}

func TestOllamaAddress(t *testing.T) {
	for host, want := range map[string]string{
		"": "http://127.0.0.1:11434", "0.0.0.0": "http://127.0.0.1:11434", "0.0.0.0:8080": "http://127.0.0.1:8080", ":9": "http://127.0.0.1:9", "box": "http://box:11434",
		"https://box.example/": "https://box.example:11434", "[::1]:5": "http://[::1]:5", "::::": "http://127.0.0.1:11434",
	} {
		if got, _ := OllamaAddress(func(string) string { return host }); got != want {
			t.Errorf("%q: %s, want %s", host, got, want)
		}
	}
}

// TestFingerprintOfKeys: a client of the engine need not have the key that the engine has from its
// environment. Which key is meant, and one that stands in a file, count.
func TestFingerprintOfKeys(t *testing.T) {
	of := func(content string, env map[string]string) regie.Hash {
		t.Helper()
		c, err := load(t, content, env)
		if err != nil {
			t.Fatal(err)
		}
		return c.Fingerprint()
	}
	const lab = "providers: {lab: {type: openai, base_url: 'http://127.0.0.1:1/v1', api_key_env: LABKEY}}\nagents: {main: {provider: lab, model: m}}"
	one := of(lab, map[string]string{"LABKEY": "a"})
	for name, env := range map[string]map[string]string{"without": nil, "another one": {"LABKEY": "b"}, "by REGIE_API_KEY": {"REGIE_API_KEY": "c"}} {
		if of(lab, env) != one {
			t.Errorf("%s: other settings", name)
		}
	}
	if of(strings.Replace(lab, "LABKEY", "OTHER", 1), nil) == one {
		t.Error("a key by another name: the same settings")
	}
	named := map[string]string{"REGIE_PROVIDER": "openai", "REGIE_MODEL": "m"}
	with := map[string]string{"REGIE_PROVIDER": "openai", "REGIE_MODEL": "m", "OPENAI_API_KEY": "o"}
	if of("", named) != of("", with) {
		t.Error("the vendor's own variable: other settings")
	}
	a, b := Config{Providers: map[string]Provider{"x": {APIKey: "a", written: true}}}, Config{Providers: map[string]Provider{"x": {APIKey: "b", written: true}}}
	if a.FingerprintOf("x") == b.FingerprintOf("x") {
		t.Error("another key in a file: the same settings")
	}
}
