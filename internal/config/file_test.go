package config

import (
	"cmp"
	"os"
	"path/filepath"
	"reflect"
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
automation: {network_retry: 1m, network_give_up: 36h}
workspace: {time_zone: Asia/Kathmandu}
budget: {context_tokens: 20000, max_context_messages: 30, model_window: 32768}
limits:
  chat: {max_autonomous_roundtrips: 30, max_data_query_iterations: 12, max_tokens: 200000, max_seconds: 900}
  automation: {max_action_retries: 8, max_format_error_retries: 7, max_tool_calls: 20}
agents:
  main: {dialect: json, relaunch: answer, limits: {max_autonomous_roundtrips: 15}}
mcp_servers:
  files2: {command: npx, args: ["-y", "server"], env: {A: b}, env_from: {TOKEN: MY_TOKEN}, dir: /tmp, deny: ["rm*"]}
  ledger:
    url: http://127.0.0.1:9000/mcp
    headers_from: {Authorization: LEDGER_KEY}
    trust_hints: true
    timeout: 20s
    start_timeout: 2m
    wait: 3s
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
	if a := c.File.Approvals; a.Require != "all" || !a.RequireValidation || a.Expire != 90*time.Minute || !ledger.TrustHints ||
		ledger.Headers["Authorization"] != "k" || files.Env["TOKEN"] != "t" || files.Env["A"] != "b" || ledger.Tools["pay"].Class != "keyed" || ledger.Timeout != 20*time.Second ||
		ledger.StartTimeout != 2*time.Minute || ledger.Wait != 3*time.Second {
		t.Errorf("read %+v", c.File)
	}
	if c.File.Automation != (Automation{NetworkRetry: time.Minute, NetworkGiveUp: Span(36 * time.Hour)}) {
		t.Errorf("read %+v", c.File.Automation)
	}
	if c.File.Workspace.Zone() != "Asia/Kathmandu" {
		t.Errorf("read %+v", c.File.Workspace)
	}
	if c.File.Budget != (Budget{ContextTokens: 20_000, MaxContextMessages: 30, ModelWindow: 32_768}) {
		t.Errorf("read %+v", c.File.Budget)
	}
	wanted := Limits{
		Chat:       regie.Limits{Total: 30, Queries: 12, Tokens: 200_000, Seconds: 900},
		Automation: regie.Limits{Retries: 8, FormatErrors: 7, CallsInReply: 20},
	}
	if c.File.Limits != wanted || !reflect.DeepEqual(c.File.Agents["main"], Agent{Dialect: "json", Relaunch: "answer", Limits: regie.Limits{Total: 15}}) {
		t.Errorf("read %+v, %+v", c.File.Limits, c.File.Agents)
	}
	if names := c.File.MCPNames(); len(names) != 2 || names[0] != "files2" {
		t.Errorf("names %v", names)
	}
	other, err := load(t, strings.Replace(whole, "keyed", "once", 1), env)
	if err != nil || other.Fingerprint() != c.Fingerprint() {
		t.Errorf("another file pins runs that wait (%v)", err)
	}
	if patient, err := load(t, "automation: {network_give_up: never}", nil); err != nil || patient.File.Automation.NetworkGiveUp.Or(0) != 0 {
		t.Errorf("never is %v, %v", patient.File.Automation.NetworkGiveUp, err)
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
		"wrong type":       {"mcp_servers: [a]", "line 1: a list was found where keys with values"},
		"no number":        {"limits:\n  chat: {max_tool_calls: lots}", "line 2: lots was found where a whole number belongs"},
		"no keys":          {"hello", "line 1: hello was found where keys with values"},
		"two documents":    {"approvals: {}\n---\napprovals: {}", "more than one"},
		"unknown word":     {"approvals: {require: sometimes}", "use writes, all, none"},
		"negative":         {"approvals: {expire: -1h}", "approvals.expire must be at least"},
		"negative retry":   {"automation: {network_retry: -1s}", "at least"},
		"no patience":      {"automation:\n  network_give_up: soon", "line 2"},
		"less than none":   {"automation: {network_give_up: -1h}", "at least"},
		"a tiny budget":    {"budget: {context_tokens: 10}", "at least 1000"},
		"a tiny window":    {"budget: {model_window: -4}", "at least 1000"},
		"too few messages": {"budget: {max_context_messages: 2}", "at least 4"},
		"no YAML":          {"\tx", "is not valid"},
		"missing variable": {"mcp_servers: {a: {command: x, env_from: {K: NOT_THERE}}}", "NOT_THERE"},
		"unknown dialect":  {"agents: {main: {dialect: xml}}", "use auto, native, json"},
		"unknown relaunch": {"agents: {main: {relaunch: stop}}", "use chain, answer"},
		"no such degree":   {"agents: {main: {prompt_degree: 5}}", "between 0 and 4"},
		"a degree below":   {"agents: {main: {prompt_degree: -1}}", "between 0 and 4"},
		"unknown language": {"agents: {main: {language: de}}", "use en, fr"},
		"a limit of none":  {"limits: {chat: {max_action_retries: 0}}", "limits.chat.max_action_retries"},
		"an agent's":       {"agents: {main: {limits: {max_tokens: 0}}}", "agents.main.limits.max_tokens"},
		"a limit below":    {"limits: {chat: {max_action_retries: -1}}", "limits.chat"},
		"a limit beyond":   {"agents: {main: {limits: {max_tokens: 99999999999}}}", "agents.main.limits"},
		"unknown limit":    {"limits:\n  chat: {max_replies: 3}", "line 2"},
		"no duration":      {"cache: {ttl: 5}", "line 1: 5 was found where a duration such as 5m belongs"},
		"no model":         {`providers: {ollama: {models: {small: ""}}}`, "models.small names no model"},
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
		if file, _, err := parseFile("x", data); err != nil && regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%v, %+v", err, file)
		}
	})
}

// TestPrivate: the directories of settings are private whichever file counts, and whether or not
// they are there; of a file that somebody named elsewhere only the file is.
func TestPrivate(t *testing.T) {
	home := map[string]string{"HOME": "/home/x", "REGIE_DATA_DIR": t.TempDir()}
	named := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(named, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env   map[string]string
		flags Flags
		want  string
	}{
		{nil, Flags{}, "/etc/regie /home/x/.config/regie"},
		{map[string]string{"XDG_CONFIG_HOME": "/xdg"}, Flags{}, "/etc/regie /xdg/regie"},
		{map[string]string{"REGIE_CONFIG": named}, Flags{}, "/etc/regie /home/x/.config/regie " + named},
		{nil, Flags{Config: named, System: "/opt/regie/regie.yaml"}, "/etc/regie /opt/regie /home/x/.config/regie " + named},
		{nil, Flags{System: "/opt/settings.yaml"}, "/etc/regie /opt/settings.yaml /home/x/.config/regie"},
	} {
		got, err := Load(func(name string) string { return cmp.Or(c.env[name], home[name]) }, c.flags)
		if err != nil || strings.Join(got.Private, " ") != c.want {
			t.Errorf("%v, %+v: %v, %v; want %s", c.env, c.flags, got.Private, err, c.want)
		}
	}
}

// TestWidgets: a widget has an agent of the file that names its tools, and origins that fit into a
// policy.
func TestWidgets(t *testing.T) {
	t.Parallel()
	const good = "agents: {shop: {tools: [files.read_file]}, all: {}}\nwidgets:\n  support: {agent: shop, workspace: /srv/shop, origins: [\"https://shop.example\"], usd_per_day: 5}\n"
	for _, c := range []struct{ old, text, want string }{
		{"", "", ""},
		{"agent: shop,", "", "widgets.support.agent is missing"},
		{", usd_per_day: 5", "", "widgets.support.usd_per_day is missing"},
		{"agent: shop", "agent: other", "not in regie.yaml"},
		{"agent: shop", "agent: all", "names its tools"},
		{"/srv/shop", "shop", "not an absolute path"},
		{"support:", "Support:", "not a valid name of a widget"},
		{"https://shop.example", "https://shop.example/", "origin of a site"},
		{"https://shop.example", "https://*", "origin of a site"},
		{"https://shop.example", "https://a.example; script-src *", "origin of a site"},
		{"[\"https://shop.example\"]", "[]", "origins is empty"},
	} {
		path := filepath.Join(t.TempDir(), "regie.yaml")
		if err := os.WriteFile(path, []byte(strings.Replace(good, c.old, c.text, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Load(func(string) string { return "" }, Flags{Config: path, DataDir: t.TempDir()})
		if c.want == "" {
			widget := got.File.Widgets["support"]
			if one, all := widget.Messages(); err != nil || one != 20 || all != 200 || widget.Name("support") != "support" {
				t.Errorf("%+v (%v)", widget, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}
