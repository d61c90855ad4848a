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

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie/internal/config"
)

// bases are entries that are whole, for keys that need others beside them.
var bases = map[string]string{
	"approvals.rules[]": "tool: files.*\ndecision: ask\n", "hooks[]": "on: before_tool\ncommand: [x]\n", "embedder": "provider: ollama\nmodel: m\n",
	"mcp_servers.*": "command: x\n", "providers.*": "type: openai\nbase_url: http://127.0.0.1:1/v1\n", "providers.*.prices.*": "input: 1\noutput: 2\n",
}

// leaf is a key that the schema has, with what it says of it.
type leaf struct {
	key    string // a.*.b[].c
	schema *jsonschema.Schema
}

// leaves are all keys below a schema.
func leaves(at string, s *jsonschema.Schema) (out []leaf) {
	join := func(key string) string {
		if at == "" {
			return key
		}
		return at + "." + key
	}
	for _, either := range s.AnyOf {
		out = append(out, leaves(at, either)...)
	}
	for key, below := range s.Properties {
		out = append(out, leaf{join(key), below})
		out = append(out, leaves(join(key), below)...)
	}
	if more := s.AdditionalProperties; more != nil && more.Not == nil {
		out = append(out, leaf{join("*"), more})
		out = append(out, leaves(join("*"), more)...)
	}
	if s.Items != nil {
		out = append(out, leaves(at+"[]", s.Items)...)
	}
	return out
}

// document is a file that says one key.
func document(t *testing.T, key string, value any) map[string]any {
	t.Helper()
	root := map[string]any{}
	current, at := root, ""
	parts := strings.Split(key, ".")
	for i, part := range parts {
		name, list := strings.CutSuffix(part, "[]")
		if at != "" {
			at += "."
		}
		at += part
		if name == "*" {
			name = "x"
		}
		if i == len(parts)-1 && !list {
			current[name] = value
			break
		}
		below := map[string]any{}
		if base, ok := bases[at]; ok {
			if err := yaml.Unmarshal([]byte(base), &below); err != nil {
				t.Fatal(err)
			}
		}
		if list {
			current[name] = []any{below}
		} else {
			current[name] = below
		}
		current = below
	}
	return root
}

// sample is a value that fits a schema, as far as the schema says.
func sample(s *jsonschema.Schema) any {
	switch {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.AnyOf) > 0:
		return sample(s.AnyOf[0])
	case strings.Contains(s.Pattern, "ms"):
		return "5m"
	case s.Type == "string":
		return "x.y"
	case s.Type == "boolean":
		return true
	case s.Type == "integer", s.Type == "number":
		if s.Minimum != nil && *s.Minimum > 1 {
			return *s.Minimum
		}
		return 1
	case s.Type == "array":
		return []any{}
	default:
		return map[string]any{}
	}
}

// says has the strict decoder read a document.
func says(t *testing.T, doc any) error {
	t.Helper()
	data, err := yaml.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "regie.yaml")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = config.Load(func(string) string { return "" }, config.Flags{Config: name, DataDir: t.TempDir()})
	return err
}

// TestSchemaAgrees walks the schema: the strict decoder knows each of its keys and takes each of
// its words, and both refuse any other.
func TestSchemaAgrees(t *testing.T) {
	schema := config.Schema()
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	fits := func(doc any) error {
		data, err := json.Marshal(doc)
		var back any
		if err == nil {
			err = json.Unmarshal(data, &back)
		}
		if err != nil {
			t.Fatal(err)
		}
		return resolved.Validate(back)
	}
	all := leaves("", schema)
	if len(all) < 100 {
		t.Fatalf("%d keys", len(all))
	}
	for _, l := range all {
		doc := document(t, l.key, sample(l.schema))
		if base, whole := bases[l.key]; whole {
			var value any
			if err := yaml.Unmarshal([]byte(base), &value); err != nil {
				t.Fatal(err)
			}
			doc = document(t, l.key, value)
		}
		if l.key == "providers.*.num_ctx" || l.key == "providers.*.keep_alive" {
			_, key, _ := strings.Cut(l.key, "*.")
			doc = map[string]any{"providers": map[string]any{"x": map[string]any{"type": "ollama", key: sample(l.schema)}}}
		}
		if err := fits(doc); err != nil {
			t.Errorf("%s: its own sample does not fit the schema: %v", l.key, err)
		}
		if err := says(t, doc); err != nil && strings.Contains(err.Error(), "there is no key") {
			t.Errorf("%s: the schema has it and the decoder does not: %v", l.key, err)
		}
		if l.schema.Type == "object" && l.schema.AdditionalProperties != nil && l.schema.AdditionalProperties.Not != nil {
			unknown := document(t, l.key+".zzz", 1)
			if fits(unknown) == nil || says(t, unknown) == nil {
				t.Errorf("%s: an unknown key passes", l.key)
			}
		}
		for _, word := range l.schema.Enum {
			doc := document(t, l.key, word)
			if l.key == "providers.*.type" || l.key == "providers.*.vendor" {
				doc = map[string]any{"providers": map[string]any{"x": map[string]any{l.key[len("providers.*."):]: word, "base_url": "http://127.0.0.1:1"}}}
			}
			if l.key == "mcp_servers.*.tools.*.class" {
				continue // which of them go with which kind the server's own check says
			}
			if err := says(t, doc); err != nil {
				t.Errorf("%s: the word %v of the schema is refused: %v", l.key, word, err)
			}
		}
		if len(l.schema.Enum) > 0 && !strings.HasPrefix(l.key, "mcp_servers.") {
			bogus := document(t, l.key, "bogus")
			if fits(bogus) == nil || says(t, bogus) == nil {
				t.Errorf("%s: another word passes", l.key)
			}
		}
	}
	if fits(map[string]any{"zzz": 1}) == nil || says(t, map[string]any{"zzz": 1}) == nil {
		t.Error("an unknown key passes at the top")
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
		err := config.CheckFile(name).Err
		if (err == nil) != (line == 0) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("line %d: ", line)) {
			t.Errorf("%q: %v; want line %d", text, err, line)
		}
	}
}
