package config

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie"
)

// maxFile bounds a configuration file in bytes.
const maxFile = 1 << 20

// File is what regie.yaml settles (spec 13). It knows the keys of the features that exist; any other is refused.
type File struct {
	Approvals  Approvals            `yaml:"approvals"`
	Automation Automation           `yaml:"automation"`
	MCPServers map[string]MCPServer `yaml:"mcp_servers"`
}

// Approvals are the app's word on what people are asked about (spec 4.4, 13).
type Approvals struct {
	// Require is the default: writes (also where it is empty), all or none.
	Require string `yaml:"require"`
	// RequireValidation has every call asked about, which no rule lifts (decision 49).
	RequireValidation bool `yaml:"require_validation"`
	// Expire is how long people have to decide; zero means 24 hours.
	Expire time.Duration `yaml:"expire"`
}

// Automation is what concerns runs that nobody watches (spec 13).
type Automation struct {
	// NetworkRetry is the first interval between tries of a model that cannot be reached; zero means 30 s (decision 42).
	NetworkRetry time.Duration `yaml:"network_retry"`
}

// MCPServer is an external server of tools (spec 13).
type MCPServer struct {
	Command string            `yaml:"command"`
	Args    []string          `yaml:"args"`
	Env     map[string]string `yaml:"env"`
	// EnvFrom are variables that the server gets from variables of this process: its name, then ours. Secrets stay out of files so.
	EnvFrom map[string]string `yaml:"env_from"`
	Dir     string            `yaml:"dir"`
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"`
	// HeadersFrom are headers whose values stand in variables of this process.
	HeadersFrom map[string]string `yaml:"headers_from"`
	TrustHints  bool              `yaml:"trust_hints"`
	// Tools settles single tools, by the server's names for them.
	Tools   map[string]MCPTool `yaml:"tools"`
	Allow   []string           `yaml:"allow"`
	Deny    []string           `yaml:"deny"`
	Timeout time.Duration      `yaml:"timeout"`
}

// MCPTool is the operator's word about one tool of a server.
type MCPTool struct {
	Kind  string `yaml:"kind"`
	Class string `yaml:"class"`
}

// readFile reads a configuration file strictly: an unknown key, a key that stands twice and a second document are refused with their line.
func readFile(path string) (File, error) {
	var f File
	in, err := os.Open(path)
	if err != nil {
		return f, regie.Errorf(regie.CodeBadRequest, "the configuration %s cannot be read: %v", path, err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	switch {
	case err != nil:
		return f, regie.Errorf(regie.CodeBadRequest, "the configuration %s cannot be read: %v", path, err)
	case len(data) > maxFile:
		return f, regie.Errorf(regie.CodeBadRequest, "the configuration %s has more than %d bytes", path, maxFile)
	}
	return parseFile(path, data)
}

func parseFile(path string, data []byte) (File, error) {
	var f File
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return f, regie.Errorf(regie.CodeBadRequest, "the configuration %s does not fit: %v", path, err)
	}
	var more any
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return f, regie.Errorf(regie.CodeBadRequest, "the configuration %s holds more than one document", path)
	}
	switch f.Approvals.Require {
	case "", "writes", "all", "none":
	default:
		return f, regie.Errorf(regie.CodeBadRequest, "approvals.require in %s is %q: use writes, all or none", path, f.Approvals.Require)
	}
	if f.Automation.NetworkRetry < 0 {
		return f, regie.Errorf(regie.CodeBadRequest, "automation.network_retry in %s must be positive", path)
	}
	if f.Approvals.Expire < 0 {
		return f, regie.Errorf(regie.CodeBadRequest, "approvals.expire in %s must be positive", path)
	}
	return f, nil
}

// loadFile reads the one configuration file that holds: the named one, or the user's where it is there.
func (c *Config) loadFile(env func(string) string, flag string) error {
	path := flag
	if path == "" {
		path = env("REGIE_CONFIG")
	}
	if path == "" {
		path = userFile(env)
		if _, err := os.Stat(path); path == "" || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	var err error
	if c.File, err = readFile(path); err != nil {
		return err
	}
	c.Origin["file"] = path
	return c.resolve(env)
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

// resolve takes what stands in variables. A variable that is not set is an error: a server without its secret would only say so later.
func (c *Config) resolve(env func(string) string) error {
	for name, server := range c.File.MCPServers {
		for _, set := range []struct {
			from map[string]string
			into *map[string]string
		}{{server.EnvFrom, &server.Env}, {server.HeadersFrom, &server.Headers}} {
			for key, variable := range set.from {
				value := env(variable)
				if value == "" {
					return regie.Errorf(regie.CodeBadRequest, "the MCP server %s wants the variable %s, which is not set", name, variable)
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
