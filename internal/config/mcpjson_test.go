package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie/internal/config"
)

func TestMCPFile(t *testing.T) {
	env := map[string]string{"TOKEN": "t", "EMPTY": "", "OPENAI_API_KEY": "sk-canary", "REGIE_TOKEN": "canary"}
	for _, c := range []struct {
		name, text string
		want       config.MCPServer
		err        string
	}{
		{"a command", `{"command":"npx","args":["-y","a b"],"env":{"A":"1"}}`, config.MCPServer{Command: "npx", Args: []string{"-y", "a b"}, Env: map[string]string{"A": "1"}, Dir: "/w"}, ""},
		{"one of the workspace", `{"command":"./run","cwd":"sub"}`, config.MCPServer{Command: "/w/sub/run", Dir: "/w/sub"}, ""},
		{"an address", `{"type":"http","url":"https://h/${TOKEN}","headers":{"Authorization":"Bearer ${TOKEN}"}}`, config.MCPServer{URL: "https://h/t", Headers: map[string]string{"Authorization": "Bearer t"}}, ""},
		{"an address says what it is", `{"url":"https://h"}`, config.MCPServer{URL: "https://h"}, ""},
		{"a default", `{"command":"${CMD:-npx}","args":["${EMPTY:-}","${EMPTY:-x}","$TOKEN","${TOKEN:-y}"]}`, config.MCPServer{Command: "npx", Args: []string{"", "x", "$TOKEN", "t"}, Dir: "/w"}, ""},
		{"a variable that is not set", `{"command":"x","args":["${NOWHERE}"]}`, config.MCPServer{}, "NOWHERE, which is not set"},
		{"a key of a model's server", `{"command":"x","env":{"A":"${OPENAI_API_KEY}"}}`, config.MCPServer{}, "workspaces do not get"},
		{"a token of ours", `{"command":"x","env":{"A":"${REGIE_TOKEN:-x}"}}`, config.MCPServer{}, "workspaces do not get"},
		{"another type", `{"type":"sse","url":"https://h"}`, config.MCPServer{}, "not known"},
		{"neither", `{}`, config.MCPServer{}, "needs a command"},
		{"both", `{"command":"x","url":"https://h"}`, config.MCPServer{}, "needs a command"},
		{"a type that contradicts", `{"type":"stdio","url":"https://h"}`, config.MCPServer{}, "needs a command"},
		{"another form", `{"command":["x"]}`, config.MCPServer{}, "cannot be used"},
		{"a key twice", `{"command":"x","command":"y"}`, config.MCPServer{}, "mcp.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := config.ParseMCPFile([]byte(`{"mcpServers":{"s":` + c.text + `}}`))
			var got config.MCPServer
			if err == nil {
				got, err = found[0].Server("/w", func(name string) string { return env[name] })
			}
			switch {
			case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("%v, want %q", err, c.err)
			case err != nil && strings.Contains(err.Error(), "canary"):
				t.Errorf("a secret is shown: %v", err)
			case c.err == "":
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	found, err := config.ParseMCPFile([]byte(`{"mcpServers":{"b":{"command":"x","args":["${B}","${A:-1}","${B}"],"alwaysAllow":[],"disabled":true},"a":{"command":"y"}},"inputs":[]}`))
	if err != nil || len(found) != 2 || found[0].Name != "a" || !found[1].Disabled || strings.Join(found[1].Variables, " ") != "A B" {
		t.Errorf("%+v, %v", found, err)
	}
}

// FuzzMCPFile holds that whatever a workspace's file says is an error or servers with commands or
// addresses, and that no key gets into them.
func FuzzMCPFile(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"mcpServers":{"a":{"command":"${OPENAI_API_KEY}"}}}`, `{"mcpServers":{"a":{"url":"${X:-${OPENAI_API_KEY}}"}}}`, `{"mcpServers":[]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := config.ParseMCPFile(data)
		if err != nil {
			return
		}
		for i := range found {
			s, err := found[i].Server("/w", func(name string) string {
				return map[string]string{"OPENAI_API_KEY": "canary!", "REGIE_TOKEN": "canary!"}[name]
			})
			if err != nil {
				continue
			}
			if (s.Command == "") == (s.URL == "") && found[i].URL+found[i].Command == "" || s.Dir != "" && !filepath.IsAbs(s.Dir) {
				t.Errorf("%+v", s)
			}
			if !strings.Contains(string(data), "canary!") && strings.Contains(strings.Join(append(s.Args, s.Command, s.URL), " "), "canary!") {
				t.Errorf("a key got into %+v", s)
			}
		}
	})
}
