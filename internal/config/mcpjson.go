package config

import (
	"cmp"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// MCPFileServer is a server of a workspace's .mcp.json, the file that several programs read (spec
// 10.1). Nothing of it is used before a person trusts it.
type MCPFileServer struct {
	Name string `json:"name"`
	// Command and Args, or URL, as written; Server expands their variables.
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	Dir     string   `json:"cwd,omitempty"`
	URL     string   `json:"url,omitempty"`
	// Variables are those of this process's environment that it wants, sorted.
	Variables []string `json:"variables,omitempty"`
	// Disabled says that the file turns it off.
	Disabled bool `json:"disabled,omitempty"`
	// Err is why it cannot be used.
	Err error `json:"-"`

	env, headers map[string]string
}

// mcpEntry is an entry of the file. Programs write more keys than these.
type mcpEntry struct {
	Type     string            `json:"type"`
	Command  string            `json:"command"`
	Args     []string          `json:"args"`
	Env      map[string]string `json:"env"`
	Cwd      string            `json:"cwd"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	Disabled bool              `json:"disabled"`
}

// ParseMCPFile reads a .mcp.json. It returns CodeBadRequest for what is no such file; what is wrong
// with one server is that server's Err.
func ParseMCPFile(data []byte) ([]MCPFileServer, error) {
	var file struct {
		Servers map[string]jsontext.Value `json:"mcpServers"`
	}
	if len(strings.TrimSpace(string(data))) == 0 {
		return nil, nil
	}
	if err := jsonv2.Unmarshal(data, &file); err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest, ".mcp.json cannot be used: %v", err)
	}
	var out []MCPFileServer
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		out = append(out, readMCPEntry(name, file.Servers[name]))
	}
	return out, nil
}

func readMCPEntry(name string, data jsontext.Value) MCPFileServer {
	s := MCPFileServer{Name: name}
	var e mcpEntry
	if err := jsonv2.Unmarshal(data, &e); err != nil {
		s.Err = regie.Errorf(regie.CodeBadRequest, "the server %s of .mcp.json cannot be used: %v", name, err)
		return s
	}
	s.Command, s.Args, s.Dir, s.URL, s.env, s.headers, s.Disabled = e.Command, e.Args, e.Cwd,
		e.URL, e.Env, e.Headers, e.Disabled
	for _, text := range s.templateTexts() {
		for _, found := range inMCP.FindAllStringSubmatch(text, -1) {
			s.Variables = append(s.Variables, found[1])
		}
	}
	slices.Sort(s.Variables)
	s.Variables = slices.Compact(s.Variables)
	switch kind := cmp.Or(e.Type, map[bool]string{true: "http", false: "stdio"}[e.URL != ""]); {
	case !slices.Contains([]string{"stdio", "http", "streamable-http", "streamableHttp"}, kind):
		s.Err = regie.Errorf(regie.CodeBadRequest,
			"the server %s of .mcp.json is of type %q, which is not known: use stdio or http", name, kind)
	case (kind == "stdio") != (e.Command != "") || (kind != "stdio") != (e.URL != ""):
		s.Err = regie.Errorf(regie.CodeBadRequest,
			"the server %s of .mcp.json needs a command, or, of type http, a url", name)
	}
	return s
}

// templateTexts returns all texts that can contain variables.
func (s *MCPFileServer) templateTexts() []string {
	return slices.Concat([]string{s.Command, s.Dir, s.URL}, s.Args, slices.Collect(maps.Values(s.env)),
		slices.Collect(maps.Values(s.headers)))
}

// inMCP is a variable in a text: ${NAME}, or ${NAME:-what holds where it is not set}.
var inMCP = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// Server returns the server with its variables expanded; it works in the workspace at root. It
// returns Err, and CodeBadRequest for a variable that has neither a value nor a default, or that
// holds a key of a model's server: no workspace gets those.
func (s *MCPFileServer) Server(root string, env func(string) string) (MCPServer, error) {
	if s.Err != nil {
		return MCPServer{}, s.Err
	}
	var wrong error
	put := func(text string) string {
		return inMCP.ReplaceAllStringFunc(text, func(match string) string {
			found := inMCP.FindStringSubmatch(match)
			value := env(found[1])
			switch {
			case strings.HasPrefix(found[1], "REGIE_") || slices.Contains(KeyVariables(), found[1]):
				wrong = regie.Errorf(regie.CodeBadRequest,
					"the server %s of .mcp.json needs the variable %s, which workspaces do not get: configure it in your own regie.yaml", s.Name, found[1])
			case value != "":
				return value
			case found[2] == "":
				wrong = regie.Errorf(regie.CodeBadRequest,
					"the server %s of .mcp.json needs the variable %s, which is not set", s.Name, found[1])
			}
			return found[3]
		})
	}
	out := MCPServer{Command: put(s.Command), URL: put(s.URL)}
	for _, arg := range s.Args {
		out.Args = append(out.Args, put(arg))
	}
	for _, set := range []struct {
		from map[string]string
		into *map[string]string
	}{{s.env, &out.Env}, {s.headers, &out.Headers}} {
		for key, value := range set.from {
			if *set.into == nil {
				*set.into = map[string]string{}
			}
			(*set.into)[key] = put(value)
		}
	}
	if out.Command != "" {
		if out.Dir = put(s.Dir); !filepath.IsAbs(out.Dir) {
			out.Dir = filepath.Join(root, out.Dir)
		}
		if strings.ContainsRune(out.Command, filepath.Separator) && !filepath.IsAbs(out.Command) {
			out.Command = filepath.Join(out.Dir, out.Command)
		}
	}
	return out, wrong
}
