package config

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
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
	// Presence is for how long after a heartbeat a user is there (spec 5.4, decision 52); zero
	// means 5 minutes.
	Presence  time.Duration       `yaml:"presence"`
	Providers map[string]Provider `yaml:"providers"`
	Cache     Cache               `yaml:"cache"`
	Embedder  Embedder            `yaml:"embedder"`
	Shell     Shell               `yaml:"shell"`
	Slots     Slots               `yaml:"slots"`
	Workspace Workspace           `yaml:"workspace"`
	Web       Web                 `yaml:"web"`
	// Hooks run in this order.
	Hooks []Hook `yaml:"hooks"`
	// TokenLimits bound what each API token and each browser may ask of regie serve.
	TokenLimits TokenLimits `yaml:"token_limits"`
	// Widgets are chats for visitors of other sites, by name (spec 10.3).
	Widgets map[string]Widget `yaml:"widgets"`
	// Notifications are the channels for notifications, by name (decision 60).
	Notifications map[string]Channel `yaml:"notifications"`
}

// MCP is what Regie is as an MCP server (spec 10.2).
type MCP struct {
	// AllowApprovals lets its clients decide approvals and answer questions, which only people do
	// otherwise (spec 4.4): a client may be a model.
	AllowApprovals bool `yaml:"allow_approvals"`
}

// Automation configures unattended runs (spec 13).
type Automation struct {
	// NetworkRetry is the first interval between tries of a model that cannot be reached; zero
	// means 30 s (decision 42).
	NetworkRetry time.Duration `yaml:"network_retry"`
	// NetworkGiveUp is how long such a model is waited for before the session is paused (decision
	// 42).
	NetworkGiveUp Span `yaml:"network_give_up"`
	// Watchdog is for how long nothing may happen in a run, beyond what its model or its tools may
	// take, before it is stopped; zero means 10 minutes, less than that none (spec 5.1).
	Watchdog Span `yaml:"watchdog"`
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

// Of returns the limits of a type of session.
func (l *Limits) Of(kind regie.SessionType) regie.Limits {
	if kind == regie.SessionAutomation {
		return l.Automation
	}
	return l.Chat
}

// DialectAuto leaves the dialect to what the model can (spec 3.3).
const DialectAuto = "auto"

// never is the word for no bound in time.
const never = "never"

// Span is a duration that can be never, which is below zero. Zero means the default.
type Span time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *Span) UnmarshalYAML(node *yaml.Node) error {
	if node.Value == never {
		*s = -1
		return nil
	}
	return node.Decode((*time.Duration)(s))
}

// Or returns the span, or fallback where it is unset; zero means never.
func (s Span) Or(fallback time.Duration) time.Duration {
	if s == 0 {
		return fallback
	}
	return max(0, time.Duration(s))
}

// TokenLimits are those of one token on one server; zero means the default.
type TokenLimits struct {
	// RequestsPerMinute is how many requests a minute may have in the long run, and how many may
	// come at once; 1,200 by default.
	RequestsPerMinute int `yaml:"requests_per_minute"`
	// ConcurrentRequests is how many are answered at once, 64 by default; ConcurrentStreams how
	// many streams are open, 1,000 by default.
	ConcurrentRequests int `yaml:"concurrent_requests"`
	ConcurrentStreams  int `yaml:"concurrent_streams"`
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
	// HeadersFrom are headers whose values come from variables of this process.
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

// MaxLimit bounds every limit: beyond it there is a slip of the pen, or no limit at all.
const MaxLimit = 1_000_000_000

// loadFiles reads the files that hold: the named one alone, or the machine's below the user's, with
// what regie setup stored below both.
func (c *Config) loadFiles(env func(string) string, flags Flags) error {
	if path := cmp.Or(flags.Config, env("REGIE_CONFIG")); path != "" {
		layer, f, err := readLayer(LayerNamed, path)
		if err != nil {
			return err
		}
		c.File, c.Layers, c.Origin["file"] = f, []Layer{layer}, path
	} else {
		if err := c.loadSetup(setupFile(env)); err != nil {
			return err
		}
		if err := c.loadLayers(cmp.Or(flags.System, SystemFile), userFile(env)); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.File.Providers)) {
		if p := c.File.Providers[name]; p.APIKey != "" && !inKeyring(p.APIKey) {
			return regie.Errorf(regie.CodeBadRequest,
				"providers.%s in %s holds a key: name the variable that has it with api_key_env, or its place with keyring:NAME, or store it with regie setup", name, c.sourceOf("providers."+name+".api_key"))
		}
	}
	return c.resolveVariables(env)
}

// Paths returns the files of settings, whether or not they exist: the one that a person writes, and
// the private one of regie setup, which an explicitly named file replaces. flag is the value of
// --config. An empty path means no file.
func Paths(env func(string) string, flag string) (file, setup string) {
	if named := cmp.Or(flag, env("REGIE_CONFIG")); named != "" {
		return named, ""
	}
	return userFile(env), setupFile(env)
}

// privateDirs returns the absolute paths of the directories of settings and of the named file. The
// file of regie setup is always private: it may hold a key even where another file counts.
func privateDirs(env func(string) string, flags Flags) (out []string) {
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

// userSkills returns the directories of a user's skills: Regie's own, and the one that several
// programs share.
func userSkills(env func(string) string) (dirs []string) {
	if path := userFile(env); path != "" {
		dirs = append(dirs, filepath.Join(filepath.Dir(path), "skills"))
	}
	if home := env("HOME"); filepath.IsAbs(home) {
		dirs = append(dirs, filepath.Join(home, ".agents", "skills"))
	}
	return dirs
}

// resolveVariables fills in values from variables. A variable that is not set is an error: a server
// without its secret would only fail later.
func (c *Config) resolveVariables(env func(string) string) error {
	for name, server := range c.File.MCPServers {
		for _, set := range []struct {
			from map[string]string
			into *map[string]string
		}{{server.EnvFrom, &server.Env}, {server.HeadersFrom, &server.Headers}} {
			for key, variable := range set.from {
				value := env(variable)
				if value == "" {
					return regie.Errorf(regie.CodeBadRequest,
						"the MCP server %s needs the variable %s, which is not set", name, variable)
				}
				if *set.into == nil {
					*set.into = map[string]string{}
				}
				(*set.into)[key] = value
			}
		}
		c.File.MCPServers[name] = server
	}
	// A missing secret is the failure of its channel: other commands do not need it.
	for name, channel := range c.File.Notifications {
		channel.Secret = env(channel.SecretVariable())
		c.File.Notifications[name] = channel
	}
	return nil
}

// MCPNames are the names of the configured MCP servers, sorted.
func (f *File) MCPNames() []string {
	return slices.Sorted(maps.Keys(f.MCPServers))
}
