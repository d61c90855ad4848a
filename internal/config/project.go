package config

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie"
)

// MaxProject bounds a project's file, in bytes.
const MaxProject = 256 << 10

// Project is the settings file of a workspace, .regie/regie.yaml (spec 13). Anyone who can write to
// the repository can write it. Its restrictions apply at once (decision 19), its instructions once
// a person trusts the file; the rest is ignored.
type Project struct {
	file File
	// Path is the file, as people find it.
	Path string
	// Keys are all that it says, in its order.
	Keys []ProjectKey
}

// ProjectKey is a key of a project's file.
type ProjectKey struct {
	Key  string `json:"key"`
	Line int    `json:"line"`
	Use  KeyUse `json:"use"`
	Text string `json:"text"` // as YAML
}

// KeyUse says what becomes of a key of a project's file.
type KeyUse string

// Effect says what becomes of the key.
func (k *ProjectKey) Effect(trusted bool) regie.Sentence {
	switch {
	case k.Use == UseTrusted && trusted:
		return regie.Say("in force, because you trust it")
	case k.Use == UseNarrows:
		return regie.Say("in force without trust, because it can only forbid, ask or lower")
	case k.Use == UseTrusted:
		return regie.Say("in force once you trust it")
	default:
		file, _ := Paths(os.Getenv, "")
		return regie.Say("ignored in a workspace's file: put it into %s", file)
	}
}

// The uses.
const (
	UseNarrows KeyUse = "narrows" // it holds as it stands, because it can only forbid, ask and lower
	UseTrusted KeyUse = "trusted" // it holds once the workspace is trusted
	UseNever   KeyUse = "never"
)

// narrows are the keys that can only restrict. A key of a map includes everything below it.
var narrows = []string{
	"approvals.require", "approvals.require_validation", "approvals.rules", "approvals.private",
	"limits", "agents.*.limits",
	"budget.context_tokens", "budget.max_context_messages", "budget.usd_per_round", "budget.usd_per_session",
	"budget.usd_per_workspace_day", "budget.usd_per_day",
	"agents.*.budget", "agents.*.tools", "agents.*.approvals",
}

// instructs are the keys that say how the agent works, and reach nothing by themselves.
var instructs = []string{
	"agents.*.instructions", "agents.*.language", "agents.*.prompt_degree", "agents.*.dialect",
	"agents.*.relaunch", "agents.*.restitution", "agents.*.on_deny", "agents.*.description",
	"agents.*.reasoning_effort", "agents.*.parallel_tool_calls", "workspace",
}

// branches are the maps whose keys are checked one by one.
var branches = []string{"approvals", "budget", "agents", "agents.*"}

// ParseProject reads a project's file as strictly as the user's. It returns CodeBadRequest with the
// line or key for an unknown or duplicate key or a bad value: a misspelt rule must not pass for one
// in force.
func ParseProject(path string, data []byte) (Project, error) {
	p := Project{Path: path}
	if len(data) > MaxProject {
		return p, regie.Errorf(regie.CodeBadRequest, "the configuration %s has more than %d bytes", path, MaxProject)
	}
	f, root, err := parseFile(path, data)
	if p.file = f; err == nil && root != nil && root.Kind == yaml.MappingNode {
		p.listKeys("", root)
	}
	return p, err
}

// listKeys takes the keys below a key.
func (p *Project) listKeys(at string, n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := joinKey(at, n.Content[i].Value), n.Content[i+1]
		if slices.Contains(branches, patternOf(key)) && value.Kind == yaml.MappingNode {
			p.listKeys(key, value)
			continue
		}
		s := ProjectKey{Key: key, Line: n.Content[i].Line, Use: p.useOf(key)}
		text, _ := yaml.Marshal(value) // of what was read
		s.Text = strings.TrimRight(string(text), "\n")
		p.Keys = append(p.Keys, s)
	}
}

// useOf says what becomes of a key.
func (p *Project) useOf(key string) KeyUse {
	a := &p.file.Approvals
	switch {
	case key == "approvals.require" && a.Require != "all",
		key == "approvals.require_validation" && !a.RequireValidation,
		key == "approvals.rules" && !slices.ContainsFunc(a.Rules, Rule.isNarrowing):
		return UseNever
	case slices.Contains(narrows, patternOf(key)):
		return UseNarrows
	case slices.Contains(instructs, patternOf(key)):
		return UseTrusted
	}
	return UseNever
}

// patternOf returns a key with * for the name of an agent.
func patternOf(key string) string {
	parts := strings.Split(key, ".")
	if len(parts) > 1 && parts[0] == "agents" {
		parts[1] = "*"
	}
	return strings.Join(parts, ".")
}

// isNarrowing reports whether a rule forbids or asks.
func (r Rule) isNarrowing() bool { return r.Decision != "allow" }

// Narrowing are the rules that forbid or ask.
func (p *Project) Narrowing() (rules []Rule) {
	for _, r := range p.file.Approvals.Rules {
		if r.isNarrowing() {
			rules = append(rules, r)
		}
	}
	return rules
}

// Private are the patterns of files that it calls private.
func (p *Project) Private() []string { return p.file.Approvals.Private }

// Allowing is how many of its rules would allow something, which no project's file can (decision
// 19).
func (p *Project) Allowing() int { return len(p.file.Approvals.Rules) - len(p.Narrowing()) }

// Require is what it wants asked about by default: all, or empty where it leaves that to the
// settings.
func (p *Project) Require() string {
	if p.file.Approvals.Require == "all" {
		return "all"
	}
	return ""
}

// RequiresValidation wants every call approved, which no rule lifts.
func (p *Project) RequiresValidation() bool { return p.file.Approvals.RequireValidation }

// Limits lower those of a session's type and of an agent.
func (p *Project) Limits(kind regie.SessionType, name string) regie.Limits {
	own := p.file.Limits.Of(kind)
	agent := p.file.Agents[name]
	size := regie.Limits{ContextTokens: p.file.Budget.ContextTokens, ContextMessages: p.file.Budget.MaxContextMessages}
	return own.Lower(agent.Limits).Lower(size).Lower(regie.Limits{ContextTokens: agent.Budget.ContextTokens})
}

// Caps lower those of the settings for an agent.
func (p *Project) Caps(agent string) regie.Caps { return p.file.Caps(agent) }

// Instructed is an agent of the settings with what a trusted file says of how it works.
func (p *Project) Instructed(name string, agent Agent) Agent {
	own := p.file.Agents[name]
	agent.Instructions = joinInstructions(agent.Instructions, own.Instructions)
	agent.Description = cmp.Or(agent.Description, own.Description)
	agent.Language = cmp.Or(own.Language, agent.Language)
	agent.Dialect = cmp.Or(own.Dialect, agent.Dialect)
	agent.Relaunch = cmp.Or(own.Relaunch, agent.Relaunch)
	agent.ReasoningEffort = cmp.Or(own.ReasoningEffort, agent.ReasoningEffort)
	agent.PromptDegree = cmp.Or(own.PromptDegree, agent.PromptDegree)
	agent.Restitution = cmp.Or(own.Restitution, agent.Restitution)
	agent.OnDeny = cmp.Or(own.OnDeny, agent.OnDeny)
	agent.ParallelToolCalls = cmp.Or(own.ParallelToolCalls, agent.ParallelToolCalls)
	return agent
}

// Narrowed is an agent with the restrictions of the file, which hold without trust: its tools are
// those that both name.
func (p *Project) Narrowed(name string, agent Agent) Agent {
	own := p.file.Agents[name]
	return agent.Within(&own)
}

// joinInstructions returns the instructions of a person with those of a project behind them:
// neither takes the other's place.
func joinInstructions(user, project string) string {
	user, project = strings.TrimSpace(user), strings.TrimSpace(project)
	if user == "" || project == "" {
		return user + project
	}
	return user + "\n\n" + project
}

// Place is what a trusted file says of the place where agents work.
func (p *Project) Place(w Workspace) Workspace {
	w.TimeZone = cmp.Or(p.file.Workspace.TimeZone, w.TimeZone)
	return w
}
