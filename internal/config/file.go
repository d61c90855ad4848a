package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie"
)

// maxFile bounds a configuration file in bytes.
const maxFile = 1 << 20

// File is what regie.yaml settles (spec 13). It knows the keys of the features that exist; any
// other is refused.
type File struct {
	// Listen is where regie serve listens; empty means DefaultListen.
	Listen     string               `yaml:"listen"`
	Approvals  Approvals            `yaml:"approvals"`
	Automation Automation           `yaml:"automation"`
	Database   string               `yaml:"database"`
	Budget     Budget               `yaml:"budget"`
	Limits     Limits               `yaml:"limits"`
	Agents     map[string]Agent     `yaml:"agents"`
	MCP        MCP                  `yaml:"mcp"`
	MCPServers map[string]MCPServer `yaml:"mcp_servers"`
	Presence   Presence             `yaml:"presence"`
	Providers  map[string]Provider  `yaml:"providers"`
	Cache      Cache                `yaml:"cache"`
	Embedder   Embedder             `yaml:"embedder"`
	Shell      Shell                `yaml:"shell"`
	Slots      Slots                `yaml:"slots"`
	Workspace  Workspace            `yaml:"workspace"`
	// Hooks run in this order.
	Hooks []Hook `yaml:"hooks"`
	// TokenLimits bound what each API token and each browser may ask of regie serve.
	TokenLimits TokenLimits `yaml:"token_limits"`
}

// DefaultListen is where regie serve listens where nobody says (spec 13).
const DefaultListen = "127.0.0.1:7333"

// Approvals are the app's word on what people are asked about (spec 4.4, 13).
type Approvals struct {
	// Require is the default: writes (also where it is empty), all or none.
	Require string `yaml:"require"`
	// RequireValidation has every call asked about, which no rule lifts (decision 49).
	RequireValidation bool `yaml:"require_validation"`
	// Expire is how long people have to decide; zero means 24 hours.
	Expire time.Duration `yaml:"expire"`
	// Rules say what becomes of calls, before anybody is asked.
	Rules []Rule `yaml:"rules"`
}

// MCP is what Regie is as an MCP server (spec 10.2).
type MCP struct {
	// AllowApprovals lets its clients decide approvals and answer questions, which only people do
	// otherwise (spec 4.4): a client may be a model.
	AllowApprovals bool `yaml:"allow_approvals"`
}

// Automation is what concerns runs that nobody watches (spec 13).
type Automation struct {
	// NetworkRetry is the first interval between tries of a model that cannot be reached; zero
	// means 30 s (decision 42).
	NetworkRetry time.Duration `yaml:"network_retry"`
	// NetworkGiveUp is how long such a model is waited for before the session is paused (decision
	// 42).
	NetworkGiveUp Patience `yaml:"network_give_up"`
	// Watchdog is for how long nothing may happen in a run, beyond what its model or its tools may
	// take, before it is stopped; zero means 10 minutes, less than that none (spec 5.1).
	Watchdog Watchdog `yaml:"watchdog"`
}

// Budget is how large a prompt may get (spec 3.4, 13), zero fields mean the defaults, and what
// model calls may cost (spec 3.2), where zero bounds nothing.
type Budget struct {
	// ContextTokens is what a prompt should not pass: above it older messages are summarised.
	ContextTokens int `yaml:"context_tokens"`
	// MaxContextMessages is how many messages of a thread a prompt shows at most; zero does not
	// bound them (decision 39).
	MaxContextMessages int `yaml:"max_context_messages"`
	// ModelWindow is what the model can read and write together, where its server does not say it.
	ModelWindow int `yaml:"model_window"`
	// What one run, one session, a workspace in a day and all workspaces in a day may cost.
	USDPerRound     Cap `yaml:"usd_per_round"`
	USDPerSession   Cap `yaml:"usd_per_session"`
	USDPerWorkspace Cap `yaml:"usd_per_workspace_day"`
	USDPerDay       Cap `yaml:"usd_per_day"`
}

// Limits are those of spec 3.2 by the type of a session, under the names of decision 52; what is
// left out is as by default.
type Limits struct {
	Chat       regie.Limits `yaml:"chat"`
	Automation regie.Limits `yaml:"automation"`
}

// DialectAuto leaves the dialect to what the model can (spec 3.3).
const DialectAuto = "auto"

// mainAgent is the agent that there is.
const mainAgent = "main"

// Agent is what the file says of an agent (spec 13). More comes with the agents themselves.
type Agent struct {
	Provider string `yaml:"provider,omitempty"`
	Model    string `yaml:"model,omitempty"` // a name, or one of the provider's models: small, medium, large
	// Dialect is auto (also where it is empty), native or json (spec 3.3).
	Dialect string `yaml:"dialect,omitempty"`
	// Relaunch is chain (also where it is empty) or answer (spec 3.3).
	Relaunch string `yaml:"relaunch,omitempty"`
	// Instructions are the agent's own, said behind Regie's.
	Instructions string `yaml:"instructions,omitempty"`
	// PromptDegree is how much the agent is told of Regie, from 1, the essential, to 4; 0 is 2
	// (spec 6.1).
	PromptDegree int `yaml:"prompt_degree,omitempty"`
	// Language is the one in which the agent is told it: en or fr; empty is that of the program.
	Language string `yaml:"language,omitempty"`
	// AnswerCheck sends back once what a person should not get: raw JSON, an apology for what
	// succeeded, an older answer (spec 6.2).
	AnswerCheck bool `yaml:"answer_check,omitempty"`
	// Fallback are the providers that go on where this one does not answer, in their order (spec
	// 3.6): a name, or a name and a model as name/model.
	Fallback []string `yaml:"fallback,omitempty"`
	// Temperature is how freely the model chooses its words, from 0 to 2; where nothing is said its
	// server decides.
	Temperature *float64 `yaml:"temperature,omitempty"`
	// Cache is auto (also where it is empty: on at temperature 0), on or off (spec 6.4).
	Cache string `yaml:"cache,omitempty"`
	// Limits go before those of the session's type.
	Limits regie.Limits `yaml:"limits,omitempty"`
	// ReasoningEffort is how hard its model thinks: one of regie.Efforts, or empty, which leaves it
	// to the vendor.
	ReasoningEffort string `yaml:"reasoning_effort,omitempty"`
	// ParallelToolCalls says whether a reply may hold several calls; nil is true.
	ParallelToolCalls *bool `yaml:"parallel_tool_calls,omitempty"`
	// Budget goes before that of the file; of two caps the lower one holds.
	Budget AgentBudget `yaml:"budget,omitempty"`
}

// Patience is a duration, or zero for the word never, which is also what is meant where nothing is
// said.
type Patience time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *Patience) UnmarshalYAML(node *yaml.Node) error {
	if node.Value == "never" {
		*p = 0
		return nil
	}
	d, err := time.ParseDuration(node.Value)
	if err != nil || d <= 0 {
		return regie.Errorf(regie.CodeBadRequest,
			"line %d: %q is no time to wait: write never, or a duration such as 24h", node.Line, node.Value)
	}
	*p = Patience(d)
	return nil
}

// MCPServer is an external server of tools (spec 13).
type MCPServer struct {
	Command string            `yaml:"command"`
	Args    []string          `yaml:"args"`
	Env     map[string]string `yaml:"env"`
	// EnvFrom are variables that the server gets from variables of this process: its name, then
	// ours. Secrets stay out of files so.
	EnvFrom map[string]string `yaml:"env_from"`
	Dir     string            `yaml:"dir"`
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"`
	// HeadersFrom are headers whose values stand in variables of this process.
	HeadersFrom map[string]string `yaml:"headers_from"`
	TrustHints  bool              `yaml:"trust_hints"`
	// Tools settles single tools, by the server's names for them.
	Tools map[string]MCPTool `yaml:"tools"`
	Allow []string           `yaml:"allow"`
	Deny  []string           `yaml:"deny"`
	// Timeout bounds a call; zero means a minute.
	Timeout time.Duration `yaml:"timeout"`
	// StartTimeout bounds the start of the server and the reading of its list; zero means 30 s.
	StartTimeout time.Duration `yaml:"start_timeout"`
	// Wait is how long a run that begins waits for the server while it is being started, from its
	// start; zero means 5 s.
	Wait time.Duration `yaml:"wait"`
}

// MCPTool is the operator's word about one tool of a server.
type MCPTool struct {
	Kind  string `yaml:"kind"`
	Class string `yaml:"class"`
}

// parseFile reads a configuration file strictly: an unknown key, a key that stands twice and a
// second document are refused with their line.
func parseFile(path string, data []byte) (File, error) {
	var f File
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return f, regie.Errorf(regie.CodeBadRequest, "the configuration %s does not fit: %s", path, withNearest(err))
	}
	var more any
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return f, regie.Errorf(regie.CodeBadRequest, "the configuration %s holds more than one document", path)
	}
	switch f.Approvals.Require {
	case "", "writes", "all", "none":
	default:
		return f, regie.Errorf(regie.CodeBadRequest, "approvals.require in %s is %q: use writes, all or none", path,
			f.Approvals.Require)
	}
	if err := zeroLimits(path, data); err != nil {
		return f, err
	}
	if err := errors.Join(f.checkLoop(path), f.Slots.check(path), f.TokenLimits.check(path),
		f.Cache.check(path), f.Shell.check(path), f.Workspace.check(path), checkRules(path, f.Approvals.Rules),
		checkHooks(path, f.Hooks)); err != nil {
		return f, err
	}
	if f.Automation.NetworkRetry < 0 {
		return f, regie.Errorf(regie.CodeBadRequest, "automation.network_retry in %s must be positive", path)
	}
	for name, p := range f.Providers {
		switch {
		case name == ProviderDemo || name == ProviderReplay || !providerName.MatchString(name):
			return f, regie.Errorf(regie.CodeBadRequest,
				"%q in %s is no name for a provider: use small letters, digits, - and _, and not demo or replay", name,
				path)
		case p.NumCtx < 0 || p.NumCtx > 0 && p.NumCtx < 1024:
			return f, regie.Errorf(regie.CodeBadRequest, "providers.%s.num_ctx in %s must be at least 1024", name, path)
		}
		if err := errors.Join(checkPrices(path, name, p.Prices), p.checkValues(path, name)); err != nil {
			return f, err
		}
	}
	switch b := f.Budget; {
	case b.ContextTokens != 0 && b.ContextTokens < 1000:
		return f, regie.Errorf(regie.CodeBadRequest, "budget.context_tokens in %s must be at least 1000", path)
	case b.ModelWindow != 0 && b.ModelWindow < 1000:
		return f, regie.Errorf(regie.CodeBadRequest, "budget.model_window in %s must be at least 1000", path)
	case b.MaxContextMessages != 0 && b.MaxContextMessages < 4:
		return f, regie.Errorf(regie.CodeBadRequest,
			"budget.max_context_messages in %s must be at least 4, or 0 for no bound", path)
	}
	if f.Approvals.Expire < 0 {
		return f, regie.Errorf(regie.CodeBadRequest, "approvals.expire in %s must be positive", path)
	}
	return f, nil
}

// checkLoop holds what is said of the loop to its words and bounds.
func (f *File) checkLoop(path string) error {
	if err := errors.Join(checkLimits(path, "limits.chat", f.Limits.Chat),
		checkLimits(path, "limits.automation", f.Limits.Automation)); err != nil {
		return err
	}
	for name, agent := range f.Agents {
		if name != mainAgent {
			return regie.Errorf(regie.CodeBadRequest, "agents.%s in %s: there is no key %s here, only main", name, path,
				name)
		}
		at := "agents." + name
		switch agent.Dialect {
		case "", DialectAuto, string(regie.DialectNative), string(regie.DialectJSON):
		default:
			return regie.Errorf(regie.CodeBadRequest, "%s.dialect in %s is %q: use auto, native or json", at, path,
				agent.Dialect)
		}
		switch agent.Relaunch {
		case "", "chain", "answer":
		default:
			return regie.Errorf(regie.CodeBadRequest, "%s.relaunch in %s is %q: use chain or answer", at, path,
				agent.Relaunch)
		}
		if err := agent.checkPrompt(path, at); err != nil {
			return err
		}
		if agent.ReasoningEffort != "" && !slices.Contains(regie.Efforts(), agent.ReasoningEffort) {
			return regie.Errorf(regie.CodeBadRequest, "%s.reasoning_effort in %s is %q: use %s", at, path,
				agent.ReasoningEffort, strings.Join(regie.Efforts(), ", "))
		}
		if err := errors.Join(checkLimits(path, at+".limits", agent.Limits), agent.checkCache(path, at)); err != nil {
			return err
		}
		if n := agent.Budget.ContextTokens; n != 0 && n < 1000 {
			return regie.Errorf(regie.CodeBadRequest, "%s.budget.context_tokens in %s must be at least 1000", at, path)
		}
	}
	return nil
}

// maxInstructions bounds an agent's own instructions in bytes: they are part of every request.
const maxInstructions = 64 << 10

// checkPrompt holds what is said of level 1 to its words and bounds.
func (a *Agent) checkPrompt(path, at string) error {
	switch {
	case a.PromptDegree < 0 || a.PromptDegree > 4:
		return regie.Errorf(regie.CodeBadRequest,
			"%s.prompt_degree in %s is %d: use 1 (the essential) to 4 (everything)", at, path, a.PromptDegree)
	case a.Language != "" && a.Language != "en" && a.Language != "fr":
		return regie.Errorf(regie.CodeBadRequest, "%s.language in %s is %q: use en or fr", at, path, a.Language)
	case len(a.Instructions) > maxInstructions:
		return regie.Errorf(regie.CodeBadRequest,
			"%s.instructions in %s are longer than 64 KiB, and are part of every request: put what is for reading into files", at, path)
	default:
		return nil
	}
}

// MaxLimit bounds every limit: beyond it there is a slip of the pen, or no limit at all.
const MaxLimit = 1_000_000_000

func checkLimits(path, at string, l regie.Limits) error {
	for _, limit := range []int64{
		int64(l.Total), int64(l.Queries), int64(l.Retries), int64(l.FormatErrors),
		int64(l.CallsInReply), l.Tokens, l.Seconds,
	} {
		if limit < 0 || limit > MaxLimit {
			return regie.Errorf(regie.CodeBadRequest, "%s in %s holds %d: a limit is a whole number from 1 up", at,
				path, limit)
		}
	}
	return nil
}

// zeroLimits refuses a limit that is written as 0: read into numbers it could not be told from one
// that was left out.
func zeroLimits(path string, data []byte) error {
	var written struct {
		Limits map[string]map[string]any `yaml:"limits"`
		Agents map[string]struct {
			Limits map[string]any `yaml:"limits"`
		} `yaml:"agents"`
	}
	if err := yaml.Unmarshal(data, &written); err != nil {
		return regie.Errorf(regie.CodeBadRequest, "the configuration %s does not fit: %s", path, withNearest(err))
	}
	sections := map[string]map[string]any{}
	for kind, limits := range written.Limits {
		sections["limits."+kind] = limits
	}
	for name, agent := range written.Agents {
		sections["agents."+name+".limits"] = agent.Limits
	}
	for _, at := range slices.Sorted(maps.Keys(sections)) {
		for _, key := range slices.Sorted(maps.Keys(sections[at])) {
			// which bounds nothing by default
			if key != "max_context_messages" && fmt.Sprint(sections[at][key]) == "0" {
				return regie.Errorf(regie.CodeBadRequest, "%s in %s holds %d: a limit is a whole number from 1 up",
					at+"."+key, path, 0)
			}
		}
	}
	return nil
}

// loadFiles reads the files that hold: the named one alone, or the machine's below the user's, with
// what regie setup stored below both.
func (c *Config) loadFiles(env func(string) string, flags Flags) error {
	path := flags.Config
	if path == "" {
		path = env("REGIE_CONFIG")
	}
	if path != "" {
		layer, f, err := readLayer(LayerNamed, path)
		if err != nil {
			return err
		}
		c.File, c.Layers, c.Origin["file"] = f, []Layer{layer}, path
	} else {
		if err := c.loadSetup(env); err != nil {
			return err
		}
		if err := c.loadLayers(cmp.Or(flags.System, SystemFile), userFile(env)); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.File.Providers)) {
		if p := c.File.Providers[name]; p.APIKey != "" && !inKeyring(p.APIKey) {
			return regie.Errorf(regie.CodeBadRequest,
				"providers.%s in %s holds a key: name the variable that has it with api_key_env, or its place with keyring:NAME, or store it with regie setup", name, c.from("providers."+name+".api_key"))
		}
	}
	return c.resolve(env)
}

// Paths are the files that settings are read from, whether or not they are there: the one that a
// person writes, and the private one of regie setup, which does not count where the other is named;
// flag is what --config says. An empty path is none.
func Paths(env func(string) string, flag string) (file, setup string) {
	for _, named := range []string{flag, env("REGIE_CONFIG")} {
		if named != "" {
			return named, ""
		}
	}
	return userFile(env), setupFile(env)
}

// private are the directories of settings by their absolute paths, and the file that is named. What
// nobody named is private too: the key that regie setup has stored lies there whichever file
// counts.
func private(env func(string) string, flags Flags) (out []string) {
	out = []string{filepath.Dir(SystemFile)}
	for _, file := range []string{flags.System, userFile(env)} {
		switch dir := filepath.Dir(file); {
		case file == "" || slices.Contains(out, dir):
		case filepath.Base(dir) == "regie":
			out = append(out, dir)
		default: // others may have things beside it
			out = append(out, file)
		}
	}
	if named, _ := Paths(env, flags.Config); named != userFile(env) {
		if at, err := filepath.Abs(named); err == nil {
			out = append(out, at)
		}
	}
	return out
}

func userFile(env func(string) string) string {
	if dir := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "regie", "regie.yaml")
	}
	if home := env("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "regie", "regie.yaml")
	}
	return ""
}

// userSkills are the directories of a user's skills: Regie's own, and the one that several programs
// share.
func userSkills(env func(string) string) (dirs []string) {
	if path := userFile(env); path != "" {
		dirs = append(dirs, filepath.Join(filepath.Dir(path), "skills"))
	}
	if home := env("HOME"); filepath.IsAbs(home) {
		dirs = append(dirs, filepath.Join(home, ".agents", "skills"))
	}
	return dirs
}

// resolve takes what stands in variables. A variable that is not set is an error: a server without
// its secret would only say so later.
func (c *Config) resolve(env func(string) string) error {
	for name, server := range c.File.MCPServers {
		for _, set := range []struct {
			from map[string]string
			into *map[string]string
		}{{server.EnvFrom, &server.Env}, {server.HeadersFrom, &server.Headers}} {
			for key, variable := range set.from {
				value := env(variable)
				if value == "" {
					return regie.Errorf(regie.CodeBadRequest,
						"the MCP server %s wants the variable %s, which is not set", name, variable)
				}
				if *set.into == nil {
					*set.into = map[string]string{}
				}
				(*set.into)[key] = value
			}
		}
		c.File.MCPServers[name] = server
	}
	return nil
}

// MCPNames are the names of the configured MCP servers, sorted.
func (f *File) MCPNames() []string {
	names := make([]string, 0, len(f.MCPServers))
	for name := range f.MCPServers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
