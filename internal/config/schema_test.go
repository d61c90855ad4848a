package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie/internal/config"
)

// TestSchemaAgrees: the schema and the strict decoder, which read one table, take and refuse the
// same.
func TestSchemaAgrees(t *testing.T) {
	schema, err := config.Schema().Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, fits := range map[string]bool{
		"approvals: {require: all}": true, "approvals: {require: maybe}": false, "approvals: {rules: [{tool: files.*}]}": false,
		"agents: {main: {modell: x}}": false, "agents: {other: {}}": true, "agents: {main: {temperature: 3}}": false,
		"limits: {chat: {max_tool_calls: 0}}": false, "limits: {chat: {max_tool_calls: 1}}": true, "zzz: 1": false,
		"slots: exclusive": true, "slots: {chat: 2}": true, "slots: inclusive": false, "shell: {max_timeout: 5m}": true,
		"shell: {max_timeout: soon}": false, "hooks: [{on: never, command: [a]}]": false, "hooks: [{on: before_tool, command: [a]}]": true,
		"providers: {x: {type: other}}": false, "embedder: {provider: ollama}": false, "presence: true": false,
		"mcp_servers: {m: {command: x, tools: {t: {kind: query, class: read}}}}": true, "mcp_servers: {m: {command: x, tools: {t: {kind: read}}}}": false,
		"notifications: {p: {type: desktop, on: [approval, task_overdue]}}": true, "notifications: {p: {type: desktop, on: [approvals]}}": false,
		"notifications: {p: {on: [approval]}}": false, "notifications: {p: {type: desktop, conten: true}}": false,
	} {
		name := filepath.Join(t.TempDir(), "regie.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		if got := schema.Validate(doc); (got == nil) != fits {
			t.Errorf("the schema: %s: %v", text, got)
		}
		if got := config.CheckFile(name); (got == nil) != fits {
			t.Errorf("the decoder: %s: %v", text, got)
		}
	}
}

// TestSchema_Docs: what the pages show of regie.yaml fits the schema and the decoder.
func TestSchema_Docs(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var pages strings.Builder
	for _, path := range paths {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pages.Write(page)
	}
	resolved, err := config.Schema().Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	known := slices.Sorted(func(yield func(string) bool) {
		for key := range config.Schema().Properties {
			if !yield(key) {
				return
			}
		}
	})
	found := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(pages.String(), -1) {
		var doc map[string]any
		if err := yaml.Unmarshal([]byte(block[1]), &doc); err != nil {
			t.Errorf("%v in\n%s", err, block[1])
			continue
		}
		ours := false
		for key := range doc {
			ours = ours || slices.Contains(known, key)
		}
		if !ours { // of other programs
			continue
		}
		found++
		data, err := json.Marshal(doc)
		var back any
		if err == nil {
			err = json.Unmarshal(data, &back)
		}
		if err == nil {
			err = resolved.Validate(back)
		}
		if err != nil {
			t.Errorf("%v in\n%s", err, block[1])
		}
	}
	if found < 8 {
		t.Errorf("%d blocks of the pages are settings", found)
	}
}

// TestLayers: key by key the user's file goes before the machine's, their rules and hooks add up,
// and each value says where it is from.
func TestLayers(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	system := write("etc.yaml", "approvals:\n  require: all\n  require_validation: true\n  rules:\n    - {tool: shell.*, decision: forbid}\nshell: {network: true, sandbox: none}\n"+
		"hooks:\n  - {on: before_tool, command: [a]}\nproviders:\n  lab: {type: openai, base_url: 'http://127.0.0.1:1/v1', models: {large: x, small: y}}\n")
	user := write("xdg/regie/regie.yaml", "approvals:\n  require_validation: false\n  rules:\n    - {tool: files.*, decision: allow}\nshell: {sandbox: auto}\n"+
		"hooks:\n  - {on: after_tool, command: [b]}\nproviders:\n  lab: {models: {large: z}}\nmcp_servers:\n  m: {command: x, env: {KEY: canary}}\n")
	write("xdg/regie/setup.yaml", "providers:\n  anthropic: {type: anthropic, api_key: sk-canary}\nagents: {main: {provider: lab, model: large}}\n")
	env := map[string]string{"XDG_CONFIG_HOME": filepath.Join(dir, "xdg"), "REGIE_DATA_DIR": filepath.Join(dir, "data"), "REGIE_TOKEN": "canary"}
	c, err := config.Load(func(name string) string { return env[name] }, config.Flags{System: system, Database: "postgres://u:canary@h/d?sslpassword=canary"})
	if err != nil {
		t.Fatal(err)
	}
	if a := c.File.Approvals; a.Require != "all" || a.RequireValidation || len(a.Rules) != 2 || a.Rules[0].Where() != system+" (approvals.rules[1])" || a.Rules[1].Where() != user+" (approvals.rules[1])" {
		t.Errorf("%+v", a)
	}
	if s := c.File.Shell; !s.Network || s.Sandbox != "auto" {
		t.Errorf("%+v", s)
	}
	if h := c.File.Hooks; len(h) != 2 || h[0].Where() != system+" (hooks[1])" || h[1].Where() != user+" (hooks[1])" || h[1].Dir() != filepath.Dir(user) {
		t.Errorf("%+v", h)
	}
	if p, _ := c.Named("lab"); p.Models["large"] != "z" || p.Models["small"] != "y" || c.Model != "z" {
		t.Errorf("%+v, model %s", p, c.Model)
	}
	want := map[string]string{
		"approvals.require": "all system etc.yaml:2", "approvals.require_validation": "false user regie.yaml:2", "approvals.rules[1]": " system etc.yaml:5",
		"approvals.rules[2]": " user regie.yaml:4", "shell.network": "true system etc.yaml:6", "shell.max_timeout": "10m default", "hooks[2]": " user regie.yaml:7",
		"data_dir": " environment", "database": " flag --database", "model": "z setup setup.yaml", "provider": "lab setup setup.yaml",
		"mcp_servers.m.env.KEY": "*** user regie.yaml", "providers.lab.models.large": "z user regie.yaml:9",
	}
	values := c.Values()
	for _, v := range values {
		if strings.Contains(fmt.Sprintf("%+v", v), "canary") {
			t.Errorf("a secret is shown: %+v", v)
		}
		wanted, listed := want[v.Key]
		if !listed {
			continue
		}
		delete(want, v.Key)
		got := fmt.Sprintf("%s %s %s:%d", v.Value, v.Origin, filepath.Base(v.From), v.Line)
		if !strings.Contains(got, wanted) {
			t.Errorf("%s: %s, want %s", v.Key, got, wanted)
		}
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v in %+v", want, values)
	}
}

// TestCheckedLines: what does not fit is named with its line.
func TestCheckedLines(t *testing.T) {
	for text, line := range map[string]int{
		"approvals:\n  require: maybe\n": 2, "agents:\n  main:\n    modell: x\n": 3, "shell:\n  network: true\n  max_timeout: 1ns\n": 3,
		"hooks:\n  - {on: before_tool, command: [a]}\n  - {on: never, command: [a]}\n": 3, "approvals:\n  rules:\n    - {tool: files.*, decision: ask}\n    - {tool: x, decision: ask}\n": 4,
		"limits:\n  chat:\n    max_tool_calls: 0\n": 3, "budget:\n  usd_per_day: 0\n": 2, "": 0, "listen: 127.0.0.1:1\n": 0,
	} {
		name := filepath.Join(t.TempDir(), "regie.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := config.CheckFile(name)
		if (err == nil) != (line == 0) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("line %d: ", line)) {
			t.Errorf("%q: %v; want line %d", text, err, line)
		}
	}
}
