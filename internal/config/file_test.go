package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
)

const whole = `
approvals:
  require: all
  require_validation: true
  expire: 90m
mcp_servers:
  files2: {command: npx, args: ["-y", "server"], env: {A: b}, env_from: {TOKEN: MY_TOKEN}, dir: /tmp, deny: ["rm*"]}
  ledger:
    url: http://127.0.0.1:9000/mcp
    headers_from: {Authorization: LEDGER_KEY}
    trust_hints: true
    timeout: 20s
    tools: {pay: {kind: action, class: keyed}}
`

func load(t *testing.T, content string, env map[string]string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "regie.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(func(name string) string {
		if name == "HOME" {
			return t.TempDir()
		}
		return env[name]
	}, Flags{Config: path})
}

func TestFile(t *testing.T) {
	env := map[string]string{"MY_TOKEN": "t", "LEDGER_KEY": "k"}
	c, err := load(t, whole, env)
	if err != nil {
		t.Fatal(err)
	}
	ledger, files := c.File.MCPServers["ledger"], c.File.MCPServers["files2"]
	if c.File.Approvals != (Approvals{Require: "all", RequireValidation: true, Expire: 90 * time.Minute}) || !ledger.TrustHints ||
		ledger.Headers["Authorization"] != "k" || files.Env["TOKEN"] != "t" || files.Env["A"] != "b" || ledger.Tools["pay"].Class != "keyed" || ledger.Timeout != 20*time.Second {
		t.Errorf("read %+v", c.File)
	}
	if names := c.File.MCPNames(); len(names) != 2 || names[0] != "files2" {
		t.Errorf("names %v", names)
	}
	other, err := load(t, strings.Replace(whole, "keyed", "once", 1), env)
	if err != nil || other.Fingerprint() != c.Fingerprint() {
		t.Errorf("another file pins runs that wait (%v)", err)
	}
	if empty, err := load(t, "", nil); err != nil || len(empty.File.MCPServers) != 0 {
		t.Errorf("an empty file: %+v, %v", empty.File, err)
	}
}

// TestFileRefuses reads files that do not say what somebody meant; each error names the place.
func TestFileRefuses(t *testing.T) {
	for name, c := range map[string]struct{ content, says string }{
		"unknown key":      {"aprovals: {}", "line 1"},
		"unknown below":    {"approvals:\n  requires: all", "line 2"},
		"twice":            {"approvals: {}\napprovals: {}", "already defined"},
		"wrong type":       {"mcp_servers: [a]", "line 1"},
		"two documents":    {"approvals: {}\n---\napprovals: {}", "more than one"},
		"unknown word":     {"approvals: {require: sometimes}", "use writes, all or none"},
		"negative":         {"approvals: {expire: -1h}", "positive"},
		"negative retry":   {"automation: {network_retry: -1s}", "positive"},
		"no YAML":          {"\tx", "does not fit"},
		"missing variable": {"mcp_servers: {a: {command: x, env_from: {K: NOT_THERE}}}", "NOT_THERE"},
		"too large":        {strings.Repeat("#", maxFile+1), "more than"},
	} {
		if _, err := load(t, c.content, nil); regie.CodeOf(err) != regie.CodeBadRequest || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	if _, err := Load(func(string) string { return "" }, Flags{Config: "/nowhere/regie.yaml"}); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Errorf("a file that is not there: %v", err)
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if file, err := parseFile("x", data); err != nil && regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%v, %+v", err, file)
		}
	})
}
