// Package config gathers the settings (spec 13): defaults, then what regie setup stored, then the
// machine's regie.yaml, then the user's, then environment, then flags, each value with its origin.
// Of regie.yaml it knows the keys of the features that exist.
package config

import (
	"cmp"
	"encoding/json"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
)

// The names of the provider types.
const (
	ProviderOpenAI    = "openai" // any OpenAI-compatible server
	ProviderAnthropic = "anthropic"
	ProviderGemini    = "gemini"
	ProviderOllama    = "ollama"
	ProviderDemo      = "demo"
	ProviderReplay    = "replay"
)

// Config is the settings of a command. Zero fields are not set.
type Config struct {
	// DataDir is the directory of this engine's data. DataHome is the directory that the user
	// named: a PostgreSQL database gets a subdirectory of it, next to the embedded store. Empty
	// means DataDir.
	DataDir, DataHome string
	// Server is the address of a server that commands use instead of a local engine; Token
	// authenticates there. Neither is printed.
	Server, Token string
	Database      string // the URL of a PostgreSQL database, with its password; never printed. Empty: SQLite in DataDir
	Language      string
	Provider      string // the name of the chosen provider
	BaseURL       string // its address
	APIKey        string // its key; never printed
	Model         string
	// Providers are all that are configured, by name: in the files, and by keys in the environment.
	Providers map[string]Provider
	Replay    string // the recording that provider replay answers from
	Record    string // where to record what the provider says
	File      File   // what the files of settings settle together
	// Layers are those files, the one that counts least first.
	Layers []Layer
	// Apart says that one file was named, so that no other layer counts, that of a project neither
	// (spec 13).
	Apart bool
	// Skills are the directories of the user's agent skills, in order of precedence.
	Skills []string
	// Private are the directories of the machine's and the user's settings, and the file that was
	// named in their place, whether or not they are there. Keys lie in them, and what an agent may
	// do: no agent works there.
	Private []string
	setup   File // what regie setup stored
	// SetupFile is the file of regie setup; empty where a named file counts alone.
	SetupFile string
	// embedder is who embeds, with what embeds says; see Embedding.
	embedder Provider
	embeds   Embedder
	// Origin says where each value comes from, for messages: "default", the variable's name, the
	// flag's name.
	Origin map[string]string
}

// Flags are the settings given on the command line; empty ones are not given.
type Flags struct {
	DataDir, Database, Server, Workspace, Provider, BaseURL, Model, Replay, Record, Config string
	// System is the machine's file of settings, for programs that are installed elsewhere; empty is
	// SystemFile.
	System string
}

// Load gathers the settings. It returns CodeBadRequest for values that cannot be used, with the
// data directory where that is known; a missing model is no error here, see RequireModel.
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
	c.Database = pick("database", flags.Database, "--database", "REGIE_DATABASE")
	c.Server = pick("server", flags.Server, "--server", "REGIE_SERVER")
	c.Token = pick("token", "", "", "REGIE_TOKEN")
	c.Language = pick("language", "", "", "REGIE_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
	c.Provider = pick("provider", flags.Provider, "--provider", "REGIE_PROVIDER")
	c.BaseURL = CompleteAddress(pick("base_url", flags.BaseURL, "--base-url", "REGIE_BASE_URL"))
	c.APIKey = pick("api_key", "", "", "REGIE_API_KEY")
	c.Model = pick("model", flags.Model, "--model", "REGIE_MODEL")
	c.Replay = pick("replay", flags.Replay, "--replay", "REGIE_REPLAY")
	c.Record = pick("record", flags.Record, "--record", "REGIE_RECORD")
	for _, file := range []*string{&c.Replay, &c.Record} { // an engine in another directory opens them too
		if path, err := filepath.Abs(*file); err == nil && *file != "" {
			*file = path
		}
	}
	// Before the files: who looks for what is wrong with them wants to know where the data is.
	if err := c.completeDataDir(env); err != nil {
		return c, err
	}
	c.Private = privateDirs(env, flags)
	c.Apart, c.Skills = flags.Config != "" || env("REGIE_CONFIG") != "", userSkills(env)
	_, c.SetupFile = Paths(env, flags.Config)
	if err := c.loadFiles(env, flags); err != nil {
		return c, err
	}
	if err := c.placeDatabase(env); err != nil {
		return c, err
	}
	if c.Server != "" { // whose models answer
		return c, nil
	}
	for _, settle := range []func(env func(string) string) error{
		c.collectProviders, c.chooseProvider,
		c.settleEmbedder,
	} {
		if err := settle(env); err != nil {
			return c, err
		}
	}
	err := cmp.Or(c.checkAgents(), c.checkWidgets())
	return c, err
}

// completeDataDir makes the data directory's path whole.
func (c *Config) completeDataDir(env func(string) string) error {
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
	return nil
}

// chooseProvider settles which provider answers: what flags and variables name, else what the files
// name, else the only one that is configured. None is chosen where there are several, or none.
func (c *Config) chooseProvider(env func(string) string) error {
	if c.Provider == "" {
		switch {
		case c.Replay != "":
			c.Provider, c.Origin["provider"] = ProviderReplay, c.Origin["replay"]
		case c.BaseURL != "":
			c.Provider, c.Origin["provider"] = ProviderOpenAI, c.Origin["base_url"]
		case c.File.Agents[mainAgent].Provider != "":
			c.Provider, c.Origin["provider"] = c.File.Agents[mainAgent].Provider, c.sourceOf("agents.main.provider")
		case c.setup.Agents[mainAgent].Provider != "":
			c.Provider, c.Origin["provider"] = c.setup.Agents[mainAgent].Provider, c.Origin["setup"]
		}
	}
	c.nameModel()
	switch c.Provider {
	case "":
		return nil
	case ProviderDemo, ProviderReplay:
		if c.Model == "" || c.Provider == ProviderDemo && c.Origin["model"] == c.Origin["setup"] {
			c.Model, c.Origin["model"] = c.Provider, "default"
		}
		if c.Provider == ProviderReplay && c.Replay == "" {
			return regie.Errorf(regie.CodeBadRequest,
				"the provider replay needs a recording: name it with --replay FILE")
		}
		if c.Provider == ProviderReplay && c.Record != "" {
			return regie.Errorf(regie.CodeBadRequest,
				"a replay is already a recording: leave out --record (REGIE_RECORD) or --replay")
		}
		return nil
	}
	return c.completeChosen(env)
}

// nameModel applies the file's model to the provider that the file names. A model without a
// provider applies to the chosen one.
func (c *Config) nameModel() {
	for _, from := range []struct {
		agent  Agent
		origin string
	}{{c.File.Agents[mainAgent], c.sourceOf("agents.main.model")}, {c.setup.Agents[mainAgent], c.Origin["setup"]}} {
		if c.Model == "" && from.agent.Model != "" && (from.agent.Provider == "" || from.agent.Provider == c.Provider) {
			c.Model, c.Origin["model"] = from.agent.Model, from.origin
		}
	}
}

// completeChosen gives the chosen provider its address, key and model.
func (c *Config) completeChosen(env func(string) string) error {
	p, configured := c.Providers[c.Provider]
	if !configured {
		if vendors[c.Provider].kind == "" {
			return regie.Errorf(regie.CodeBadRequest, "there is no provider %q (from %s): use %s",
				c.Provider, c.Origin["provider"],
				strings.Join(slices.Compact(slices.Sorted(slices.Values(
					slices.Concat(c.ProviderNames(), providerTypes, []string{ProviderDemo, ProviderReplay})))), ", "))
		}
		p = Provider{Name: c.Provider, BaseURL: c.BaseURL, Origin: map[string]string{}}
		if c.BaseURL == "" && c.Provider == ProviderOllama {
			p.BaseURL, p.Origin["base_url"] = OllamaAddress(env)
		}
		if err := p.completeProvider(env, c.Origin["base_url"]); err != nil {
			return err
		}
		c.Providers[c.Provider] = p
	}
	if c.BaseURL == "" {
		c.BaseURL, c.Origin["base_url"] = p.BaseURL, p.Origin["base_url"]
	}
	// A key from the environment, or configured for an address, is sent only there.
	if c.APIKey == "" && c.BaseURL == p.BaseURL {
		c.APIKey, c.Origin["api_key"] = p.APIKey, p.Origin["api_key"]
	}
	c.resolveModel()
	return checkAddress(c.BaseURL, c.Origin["base_url"])
}

// OllamaAddress is where Ollama is looked for, and where that was said: its own variable
// OLLAMA_HOST, or its usual place.
func OllamaAddress(env func(string) string) (address, origin string) {
	host := strings.TrimRight(strings.TrimSpace(env("OLLAMA_HOST")), "/")
	if host == "" {
		return vendors[ProviderOllama].address, "default"
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	u, err := url.Parse(host)
	if err != nil || u.Hostname() == "" && u.Port() == "" {
		return vendors[ProviderOllama].address, "default"
	}
	name, port := u.Hostname(), u.Port()
	if name == "" || name == "0.0.0.0" || name == "::" { // where it listens, not where it is reached
		name = "127.0.0.1"
	}
	if port == "" {
		port = "11434"
	}
	return u.Scheme + "://" + net.JoinHostPort(name, port), "OLLAMA_HOST"
}

func defaultDataDir(env func(string) string) (string, error) {
	if dir := env("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "regie"), nil
	}
	home := env("HOME")
	if !filepath.IsAbs(home) { // a relative one would be another one in each directory
		return "", regie.Errorf(regie.CodeBadRequest,
			"no home directory is known: name the data directory with REGIE_DATA_DIR")
	}
	return filepath.Join(home, ".local", "share", "regie"), nil
}

// ModelChosen reports whether a flag or a variable chose the provider or the model for this
// command, rather than a file.
func (c *Config) ModelChosen() bool {
	for _, key := range []string{"provider", "model", "base_url", "replay"} {
		if o := c.effectiveValue(key, "").Origin; o == OriginFlag || o == OriginEnvironment {
			return true
		}
	}
	return false
}

// RequireModel returns CodeNoModel where no model can answer, in a sentence; what was looked for is
// the surface's to show (spec 10.1).
func (c *Config) RequireModel() error {
	switch {
	case c.Provider == "":
		return regie.Errorf(regie.CodeNoModel,
			"no model is chosen: regie setup chooses one, and --provider demo needs none")
	case c.Model == "":
		return regie.Errorf(regie.CodeNoModel,
			"the server %s is configured (from %s), but no model: name one with REGIE_MODEL or --model",
			c.BaseURL, c.Origin["base_url"])
	}
	return nil
}

// Fingerprint is FingerprintOf the chosen provider.
func (c *Config) Fingerprint() regie.Hash { return c.FingerprintOf(c.Provider) }

// FingerprintOf identifies the settings of a provider without showing them: an engine that was
// started with other settings must not answer instead. Of a key in the environment or in the
// keyring only the name counts, because clients of the engine need not have the key (decision 1).
func (c *Config) FingerprintOf(name string) regie.Hash {
	p, _ := c.Named(name)
	configured := c.Providers[name]
	parts := []string{name, p.BaseURL, configured.keyNamed(), c.Replay, c.Record}
	if p.Type != name && p.Type != "" {
		parts = append(parts, p.Type)
	}
	if p.API != "" {
		parts = append(parts, "api", p.API)
	}
	if p.Images != nil {
		parts = append(parts, "images", strconv.FormatBool(*p.Images))
	}
	return regie.HashOf([]byte(strings.Join(parts, "\x00")))
}

// Rules identifies the settings by which an engine decides, without showing them: approvals and
// denials, what commands may do, hooks, limits, agents and MCP servers. It is zero where they
// cannot be encoded.
func (c *Config) Rules() regie.Hash {
	f := &c.File
	data, err := json.Marshal([]any{
		f.Approvals, f.Shell, f.Hooks, f.Limits, f.Budget, f.Agents,
		slices.Sorted(maps.Keys(f.MCPServers)),
	})
	if err != nil {
		return regie.Hash{}
	}
	return regie.HashOf(data)
}

// Key is a secret of the settings: a key of a model server, or a token.
type Key struct {
	Name  string // the variable that it stands in, else the setting
	Value string
	// Server is the address of the model server that it is for, where it is written in a file for
	// that alone.
	Server string
}

// Keys are all that is secret in the settings, and the keys of vendors in the environment, whether
// they are used or not.
func (c *Config) Keys(env func(string) string) (out []Key) {
	to := func(server, name, value string) {
		if value != "" {
			out = append(out, Key{name, value, server})
		}
	}
	add := func(name, value string) { to("", name, value) }
	add("REGIE_API_KEY", env("REGIE_API_KEY"))
	add("REGIE_TOKEN", c.Token)
	for _, name := range slices.Sorted(maps.Keys(vendors)) {
		if variable := vendors[name].key; variable != "" {
			add(variable, env(variable))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		p := c.Providers[name]
		if p.APIKeyEnv != "" {
			add(p.APIKeyEnv, p.APIKey)
		}
		to(p.keyServer(), "providers."+name+".api_key", p.APIKey)
	}
	server := ""
	if p := c.Providers[c.Provider]; p.APIKey == c.APIKey {
		server = p.keyServer()
	}
	to(server, "api_key", c.APIKey)
	for _, name := range c.File.MCPNames() {
		for _, variables := range []map[string]string{
			c.File.MCPServers[name].EnvFrom,
			c.File.MCPServers[name].HeadersFrom,
		} {
			for _, variable := range slices.Sorted(maps.Values(variables)) {
				add(variable, env(variable))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.File.Notifications)) {
		channel := c.File.Notifications[name]
		add(channel.SecretVariable(), channel.Secret)
	}
	add("database", c.Database)
	if u, err := url.Parse(c.Database); err == nil && c.Database != "" {
		password, _ := u.User.Password()
		_, written, _ := strings.Cut(u.User.String(), ":")
		for _, value := range []string{password, written, u.Query().Get("password"), env("PGPASSWORD")} {
			if value != u.User.Username() && value != "postgres" && value != "password" { // which are words of any text
				add("database password", value)
			}
		}
	}
	return out
}

// keyServer returns the address that a key is for which a file holds itself; empty of any other.
func (p *Provider) keyServer() string {
	if !p.written {
		return ""
	}
	return p.BaseURL
}

// Secrets are the keys of all providers, which must not be written anywhere.
func (c *Config) Secrets() []string {
	out := []string{c.APIKey}
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		out = append(out, c.Providers[name].APIKey)
	}
	return out
}
