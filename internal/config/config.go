// Package config gathers the settings (spec 13): defaults, then one file, then environment, then flags, each value with its origin. Of
// regie.yaml it knows the keys of the features that exist; its layers come with the providers' issue.
package config

import (
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/regie-run/regie"
)

// Provider types that this build knows.
const (
	ProviderOpenAI = "openai" // any OpenAI-compatible server
	ProviderDemo   = "demo"
	ProviderReplay = "replay"
)

// Config is the settings of a command. Zero fields are not set.
type Config struct {
	DataDir  string
	Language string
	Provider string // a provider type
	BaseURL  string
	APIKey   string // never printed
	Model    string
	Replay   string // the recording that provider replay answers from
	Record   string // where to record what the provider says
	File     File   // what regie.yaml settles
	// Origin says where each value comes from, for messages: "default", the variable's name, the flag's name.
	Origin map[string]string
}

// Flags are the settings given on the command line; empty ones are not given.
type Flags struct {
	DataDir, Provider, BaseURL, Model, Replay, Record, Config string
}

// Load gathers the settings. It returns CodeBadRequest for values that cannot be used; a missing model is no error here, see
// RequireModel.
func Load(env func(string) string, flags Flags) (Config, error) {
	c := Config{Origin: map[string]string{}}
	pick := func(name, flag, flagName string, variables ...string) string {
		if flag != "" {
			c.Origin[name] = flagName
			return flag
		}
		for _, variable := range variables {
			if value := env(variable); value != "" {
				c.Origin[name] = variable
				return value
			}
		}
		return ""
	}
	c.DataDir = pick("data_dir", flags.DataDir, "--data-dir", "REGIE_DATA_DIR")
	c.Language = pick("language", "", "", "REGIE_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
	c.Provider = pick("provider", flags.Provider, "--provider", "REGIE_PROVIDER")
	c.BaseURL = pick("base_url", flags.BaseURL, "--base-url", "REGIE_BASE_URL")
	c.APIKey = pick("api_key", "", "", "REGIE_API_KEY")
	c.Model = pick("model", flags.Model, "--model", "REGIE_MODEL")
	c.Replay = pick("replay", flags.Replay, "--replay", "REGIE_REPLAY")
	c.Record = pick("record", flags.Record, "--record", "REGIE_RECORD")
	if err := c.loadFile(env, flags.Config); err != nil {
		return c, err
	}
	if err := c.complete(env); err != nil {
		return c, err
	}
	return c, nil
}

// complete fills in what follows from the rest.
func (c *Config) complete(env func(string) string) error {
	if c.DataDir == "" {
		dir, err := defaultDataDir(env)
		if err != nil {
			return err
		}
		c.DataDir, c.Origin["data_dir"] = dir, "default"
	}
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return regie.Errorf(regie.CodeBadRequest, "the data directory %s cannot be used: %v", c.DataDir, err)
	}
	c.DataDir = dir
	key := env("OPENAI_API_KEY")
	if c.Provider == "" {
		switch {
		case c.Replay != "":
			c.Provider, c.Origin["provider"] = ProviderReplay, c.Origin["replay"]
		case c.BaseURL != "":
			c.Provider, c.Origin["provider"] = ProviderOpenAI, c.Origin["base_url"]
		case key != "":
			c.Provider, c.Origin["provider"] = ProviderOpenAI, "OPENAI_API_KEY"
		}
	}
	switch c.Provider {
	case ProviderOpenAI:
		return c.completeOpenAI(key)
	case ProviderDemo, ProviderReplay:
		if c.Model == "" {
			c.Model, c.Origin["model"] = c.Provider, "default"
		}
		if c.Provider == ProviderReplay && c.Replay == "" {
			return regie.Errorf(regie.CodeBadRequest, "the provider replay needs a recording: name it with --replay FILE")
		}
	case "":
	default:
		return regie.Errorf(regie.CodeBadRequest, "there is no provider %q (from %s): use openai, demo or replay", c.Provider, c.Origin["provider"])
	}
	return nil
}

func (c *Config) completeOpenAI(key string) error {
	if c.BaseURL == "" {
		c.BaseURL, c.Origin["base_url"] = "https://api.openai.com/v1", "default"
	}
	// A key found by itself is only ever sent to the vendor that it belongs to.
	if c.APIKey == "" && c.Origin["base_url"] == "default" {
		c.APIKey, c.Origin["api_key"] = key, "OPENAI_API_KEY"
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return regie.Errorf(regie.CodeBadRequest, "the address %q (from %s) is not a server's: write it like http://127.0.0.1:8000/v1", c.BaseURL, c.Origin["base_url"])
	}
	return nil
}

func defaultDataDir(env func(string) string) (string, error) {
	if dir := env("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "regie"), nil
	}
	home := env("HOME")
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", regie.Errorf(regie.CodeBadRequest, "no home directory is known: name the data directory with REGIE_DATA_DIR")
		}
	}
	return filepath.Join(home, ".local", "share", "regie"), nil
}

// RequireModel returns CodeNoModel where no model can answer, with where it was looked for (spec 10.1).
func (c *Config) RequireModel() error {
	switch {
	case c.Provider == "":
		return regie.Errorf(regie.CodeNoModel, "no model is configured: neither OPENAI_API_KEY nor REGIE_BASE_URL nor REGIE_PROVIDER is set. Set REGIE_BASE_URL and REGIE_MODEL for a local server, or try --provider demo, which needs no key")
	case c.Model == "":
		return regie.Errorf(regie.CodeNoModel, "the server %s is configured (from %s), but no model: name one with REGIE_MODEL or --model", c.BaseURL, c.Origin["base_url"])
	}
	return nil
}

// Fingerprint tells settings of a provider from others without showing them: an engine that was started with other ones must not
// answer in their place.
func (c *Config) Fingerprint() regie.Hash {
	parts := []string{c.Provider, c.BaseURL, c.APIKey, c.Replay, c.Record}
	return regie.HashOf([]byte(strings.Join(parts, "\x00")))
}

// Origins lists where the values come from, sorted, for messages.
func (c *Config) Origins() []string {
	var out []string
	for name, origin := range c.Origin {
		out = append(out, name+" from "+origin)
	}
	sort.Strings(out)
	return out
}
