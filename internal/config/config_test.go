package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
)

// TestLoad is the layering of spec 13 as a table: flags over environment over defaults, with
// origins.
func TestLoad(t *testing.T) {
	for name, c := range map[string]struct {
		env      map[string]string
		flags    config.Flags
		provider string
		model    string
		key      string
		origin   string // of the provider
		code     regie.Code
		noModel  bool
	}{
		"nothing":                         {noModel: true},
		"a key alone is no choice yet":    {env: map[string]string{"OPENAI_API_KEY": "k"}, noModel: true},
		"a key and its name":              {env: map[string]string{"OPENAI_API_KEY": "k", "REGIE_PROVIDER": "openai"}, provider: "openai", model: "gpt-5.4", key: "k", origin: "REGIE_PROVIDER"},
		"a size of model":                 {env: map[string]string{"ANTHROPIC_API_KEY": "k", "REGIE_PROVIDER": "anthropic", "REGIE_MODEL": "small"}, provider: "anthropic", model: "claude-haiku-5-5", key: "k", origin: "REGIE_PROVIDER"},
		"a name that is no size":          {env: map[string]string{"ANTHROPIC_API_KEY": "k"}, flags: config.Flags{Provider: "anthropic", Model: "claude-x"}, provider: "anthropic", model: "claude-x", key: "k", origin: "--provider"},
		"Ollama by its name":              {env: map[string]string{"OLLAMA_HOST": "0.0.0.0:1234", "REGIE_MODEL": "m"}, flags: config.Flags{Provider: "ollama"}, provider: "ollama", model: "m", origin: "--provider"},
		"the key stays at its vendor":     {env: map[string]string{"OPENAI_API_KEY": "k", "REGIE_MODEL": "m", "REGIE_BASE_URL": "http://127.0.0.1:1/v1"}, provider: "openai", model: "m", origin: "REGIE_BASE_URL"},
		"a key for a server":              {env: map[string]string{"REGIE_API_KEY": "k", "REGIE_MODEL": "m", "REGIE_BASE_URL": "http://h/v1"}, provider: "openai", model: "m", key: "k", origin: "REGIE_BASE_URL"},
		"a flag wins":                     {env: map[string]string{"REGIE_PROVIDER": "openai"}, flags: config.Flags{Provider: "demo"}, provider: "demo", model: "demo", origin: "--provider"},
		"a recording is its own provider": {flags: config.Flags{Replay: "f"}, provider: "replay", model: "replay", origin: "--replay"},
		"replay without a recording":      {flags: config.Flags{Provider: "replay"}, code: regie.CodeBadRequest},
		"unknown provider":                {env: map[string]string{"REGIE_PROVIDER": "x"}, code: regie.CodeBadRequest},
		"an address that is none":         {env: map[string]string{"REGIE_BASE_URL": "ftp://h"}, code: regie.CodeBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			env := func(variable string) string {
				if variable == "HOME" {
					return "/home/ada"
				}
				return c.env[variable]
			}
			got, err := config.Load(env, c.flags)
			if regie.CodeOf(err) != c.code {
				t.Fatalf("got %v, want %v", err, c.code)
			}
			if err != nil {
				return
			}
			if got.Provider != c.provider || got.Model != c.model || got.APIKey != c.key || got.Origin["provider"] != c.origin {
				t.Errorf("%q %q %q from %q", got.Provider, got.Model, got.APIKey, got.Origin["provider"])
			}
			if got.DataDir != "/home/ada/.local/share/regie" {
				t.Errorf("data directory %q", got.DataDir)
			}
			if err := got.RequireModel(); (regie.CodeOf(err) == regie.CodeNoModel) != c.noModel {
				t.Errorf("model: %v", err)
			}
		})
	}
}

// TestLoadRecordings: an engine in another directory opens the same files.
func TestLoadRecordings(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	home := func(variable string) string { return map[string]string{"HOME": here}[variable] }
	replay, err := config.Load(home, config.Flags{Replay: "a.jsonl"})
	if err != nil || replay.Replay != filepath.Join(here, "a.jsonl") || replay.Record != "" {
		t.Errorf("%q %q %v", replay.Replay, replay.Record, err)
	}
	record, err := config.Load(home, config.Flags{Record: "b.jsonl"})
	if err != nil || record.Record != filepath.Join(here, "b.jsonl") {
		t.Errorf("%q %v", record.Record, err)
	}
}
