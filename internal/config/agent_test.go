package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestAgents reads agents of the settings, and refuses what none can be.
func TestAgents(t *testing.T) {
	c, err := load(t, `
providers: {lab: {type: openai, base_url: "http://127.0.0.1:1/v1", models: {small: tiny}}}
agents:
  main: {provider: lab, model: m}
  reviewer:
    description: Reads changes
    model: small
    temperature: 0.2
    top_p: 0.9
    max_output_tokens: 2000
    summaries: false
    tools: ["files.*", "!files.write_file"]
    limits: {max_session_calls: 30, max_call_attempts: 1, max_call_seconds: 5, max_result_bytes: 4000}
    approvals: {require_validation: true, rules: [{tool: "shell.*", decision: forbid}]}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := c.File.Agents["reviewer"]
	if provider, model := c.AgentModel(&a, "lab", "m"); provider != "lab" || model != "small" {
		t.Errorf("it is answered by %s, %s", provider, model)
	}
	for tool, want := range map[string]bool{"files.read_file": true, "files.write_file": false, "shell.shell_exec": false, "session.ask_user": true} {
		if got := regie.InScopes(a.Scopes(), tool); got != want {
			t.Errorf("%s in scope: %v", tool, got)
		}
	}
	if where := a.Approvals.Rules[0].Where(); !strings.HasSuffix(where, "(agents.reviewer.approvals.rules[1])") {
		t.Error(where)
	}
	if again, err := ParseAgent("x", a.JSON()); err != nil || string(again.JSON()) != string(a.JSON()) || again.Limits != a.Limits {
		t.Errorf("%s does not read as it is written: %v", a.JSON(), err)
	}
	for bad, want := range map[string]string{
		"agents: {a: {provider: nowhere}}":                                  `the agent a names the provider "nowhere", which is not configured`,
		"agents: {a: {tools: [read_file]}}":                                 "is not a tool name",
		"agents: {a: {tools: []}}":                                          "tools is empty",
		"agents: {a: {tool: [x]}}":                                          "did you mean tools?",
		"agents: {a: {top_p: 2}}":                                           "must be between",
		"agents: {a: {approvals: {rules: [{tool: x.y, decision: allow}]}}}": "use ask, forbid",
		"providers: {lab: {type: openai, base_url: \"http://127.0.0.1:1/v1\"}}\nagents: {a: {provider: lab, model: large}}": "wants a large model",
	} {
		if _, err := load(t, bad+"\n", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestAgents_RulesOfLayers has the rules of an agent say in which of several files they stand.
func TestAgents_RulesOfLayers(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, ".config", "regie", "regie.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("agents: {a: {approvals: {rules: [{tool: x.y, decision: forbid}]}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(func(name string) string { return map[string]string{"HOME": home}[name] }, Flags{})
	if err != nil {
		t.Fatal(err)
	}
	rules := c.File.Agents["a"].Approvals.Rules
	if len(rules) != 1 || rules[0].Where() != path+" (agents.a.approvals.rules[1])" {
		t.Errorf("%+v", rules)
	}
}

// TestParseAgentFile reads an agent of a Markdown file.
func TestParseAgentFile(t *testing.T) {
	a, err := ParseAgentFile("r.md", []byte("---\r\ndescription: Reads\r\ntools: [files.read_file]\r\n---\r\n\r\nYou read.\r\n"))
	if err != nil || a.Instructions != "You read." || a.Description != "Reads" || len(a.Tools) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	for _, good := range []string{"---\n---\nYou read.", "---\nmodel: m\n---"} {
		if _, err := ParseAgentFile("r.md", []byte(good)); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for bad, want := range map[string]string{
		"You read.\n":              "does not begin with a line ---",
		"---\nname: r\n---\nx\n":   "unknown key name",
		"---\ntools: [\n---\nx\n":  "not valid",
		"---\na: &x [*x]\n---\n":   "not valid",
		"---\nmodel: m\n---\n\xff": "UTF-8",
		"---\nmodel: m\n" + strings.Repeat("#", MaxAgentFile) + "\n---\n": "bytes",
	} {
		if _, err := ParseAgentFile("r.md", []byte(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
}

// TestAgentWithin only narrows.
func TestAgentWithin(t *testing.T) {
	mine := Agent{Tools: regie.ToolScope{"files.*"}}
	both := mine.Within(&Agent{Tools: regie.ToolScope{"*.read_file", "shell.*"}, Approvals: AgentApprovals{RequireValidation: true}})
	for tool, want := range map[string]bool{"files.read_file": true, "files.write_file": false, "shell.shell_exec": false} {
		if regie.InScopes(both.Scopes(), tool) != want {
			t.Errorf("%s", tool)
		}
	}
	if !both.Approvals.RequireValidation || mine.Approvals.RequireValidation {
		t.Errorf("%+v", both)
	}
}
