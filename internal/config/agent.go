package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/skill"
)

// mainAgent is the default agent, which is always there.
const mainAgent = "main"

// MaxAgentFile bounds the definition of one agent, in bytes.
const MaxAgentFile = 256 << 10

var agentName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// CheckAgentName returns CodeBadRequest for a name that no agent can have.
func CheckAgentName(name string) error {
	if !agentName.MatchString(name) {
		return regie.Errorf(regie.CodeBadRequest,
			"%q is not a valid agent name: use up to 40 small letters, digits, - and _, and begin with a letter", name)
	}
	return nil
}

// Agent is the definition of an agent (spec 13), as in regie.yaml under agents.NAME.
type Agent struct {
	// Description says in a line what the agent is for.
	Description string `yaml:"description,omitempty"`
	Provider    string `yaml:"provider,omitempty"`
	Model       string `yaml:"model,omitempty"` // a name, or one of the provider's models: small, medium, large
	// Dialect is auto (also where it is empty), native or json (spec 3.3).
	Dialect string `yaml:"dialect,omitempty"`
	// Relaunch is chain (also where it is empty) or answer (spec 3.3).
	Relaunch string `yaml:"relaunch,omitempty"`
	// Instructions are the agent's own, said behind Regie's.
	Instructions string `yaml:"instructions,omitempty"`
	// PromptDegree is how much of Regie the agent's prompt explains, from 1, the essentials, to 4;
	// 0 means 2 (spec 6.1).
	PromptDegree int `yaml:"prompt_degree,omitempty"`
	// Language is the language of that explanation: en or fr; empty means the program's.
	Language string `yaml:"language,omitempty"`
	// Restitution says how an answer after tool results is held to plain language: guided, strict
	// or off; empty is guided in a chat and off in an unattended run (decision 63).
	Restitution string `yaml:"restitution,omitempty"`
	// OnDeny says what follows a refusal without a reason: explain (also where it is empty) has the
	// model say why it asked, end ends the run (decision 65).
	OnDeny string `yaml:"on_deny,omitempty"`
	// Fallback are the providers that go on where this one does not answer, in their order (spec
	// 3.6): a name, or a name and a model as name/model.
	Fallback []string `yaml:"fallback,omitempty"`
	// Temperature and TopP are the sampling parameters, from 0 to 2 and from 0 to 1; without one
	// the server decides.
	Temperature *float64 `yaml:"temperature,omitempty"`
	TopP        *float64 `yaml:"top_p,omitempty"`
	// MaxOutputTokens bounds a reply; zero leaves it to Regie.
	MaxOutputTokens int `yaml:"max_output_tokens,omitempty"`
	// Cache is auto (also where it is empty: on at temperature 0), on or off (spec 6.4).
	Cache string `yaml:"cache,omitempty"`
	// Summaries false has no model asked for a summary: the oldest messages are left out of the
	// prompt instead.
	Summaries *bool `yaml:"summaries,omitempty"`
	// Limits go before those of the session's type.
	Limits regie.Limits `yaml:"limits,omitempty"`
	// ReasoningEffort is how hard its model thinks: one of regie.Efforts, or empty, which leaves it
	// to the vendor.
	ReasoningEffort string `yaml:"reasoning_effort,omitempty"`
	// ParallelToolCalls says whether a reply may hold several calls; nil is true.
	ParallelToolCalls *bool `yaml:"parallel_tool_calls,omitempty"`
	// Budget goes before that of the file; of two caps the lower one holds.
	Budget AgentBudget `yaml:"budget,omitempty"`
	// Tools are those that the agent may call; without any it may call all (spec 4.2).
	Tools regie.ToolScope `yaml:"tools,omitempty"`
	// Approvals can only restrict what its calls may do (decision 19).
	Approvals AgentApprovals `yaml:"approvals,omitempty"`

	within []regie.ToolScope // of the files that narrow it
}

// AgentApprovals are the agent's level of the approval hierarchy (spec 4.4).
type AgentApprovals struct {
	// Require is all, or empty, which leaves the default to the settings.
	Require string `yaml:"require,omitempty"`
	// RequireValidation has every call asked about, which no rule lifts (decision 49).
	RequireValidation bool `yaml:"require_validation,omitempty"`
	// Rules forbid calls, or ask about them.
	Rules []Rule `yaml:"rules,omitempty"`
}

// checkValues holds the agent's values to what they mean together.
func (a *Agent) checkValues() error {
	if a.Tools != nil && len(a.Tools) == 0 {
		return regie.Errorf(regie.CodeBadRequest, "tools is empty, which would be all tools: leave it out, or name some")
	}
	for _, pattern := range a.Tools {
		if err := checkPattern(strings.TrimPrefix(pattern, "!")); err != nil {
			return err
		}
	}
	return nil
}

// Scopes are the scopes that a tool must be in, all of them.
func (a *Agent) Scopes() []regie.ToolScope {
	if len(a.Tools) == 0 {
		return a.within
	}
	return append(slices.Clone(a.within), a.Tools)
}

// Within returns the agent with the restrictions of another definition of it: its tools, limits,
// budget and approvals.
func (a *Agent) Within(other *Agent) Agent {
	out := *a
	out.within = slices.Concat(a.within, other.Scopes())
	out.Approvals.Require = cmp.Or(a.Approvals.Require, other.Approvals.Require)
	out.Approvals.RequireValidation = a.Approvals.RequireValidation || other.Approvals.RequireValidation
	out.Approvals.Rules = slices.Concat(a.Approvals.Rules, other.Approvals.Rules)
	return out
}

// ParseAgent reads the definition of an agent, in YAML or JSON, as strictly as regie.yaml. where is
// how people find it. It returns CodeBadRequest for an unknown key or a bad value.
func ParseAgent(where string, data []byte) (out Agent, err error) {
	var doc yaml.Node
	if len(data) > MaxAgentFile {
		err = regie.Errorf(regie.CodeBadRequest, "it has more than %d bytes", MaxAgentFile)
	} else if err = yaml.Unmarshal(data, &doc); err == nil && len(doc.Content) > 0 {
		root := doc.Content[0]
		if err = keyCheck(keyRules()).checkNode(root, reflect.TypeFor[Agent](), "", "agents.*"); err == nil {
			err = root.Decode(&out)
		}
	}
	if err != nil {
		return Agent{}, regie.Errorf(regie.CodeBadRequest, "the agent in %s is not valid: %v", where, err)
	}
	markRules(out.Approvals.Rules, where, "approvals")
	return out, nil
}

// ParseAgentFile reads an agent of a Markdown file: its definition is the front matter, its
// instructions are the text behind it. It returns CodeBadRequest for what is no such file.
func ParseAgentFile(where string, data []byte) (Agent, error) {
	if len(data) > MaxAgentFile || !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return Agent{}, regie.Errorf(regie.CodeBadRequest,
			"the agent in %s is not valid: it is no text in UTF-8, or has more than %d bytes", where, MaxAgentFile)
	}
	front, body, err := skill.SplitFrontMatter(where, string(bytes.TrimPrefix(data, []byte("\uFEFF"))))
	if err != nil {
		return Agent{}, err
	}
	out, err := ParseAgent(where, []byte(front))
	out.Instructions = joinInstructions(out.Instructions, body)
	return out, err
}

// JSON returns the definition as JSON, under the keys of regie.yaml.
func (a *Agent) JSON() json.RawMessage {
	var keys map[string]any
	text, err := yaml.Marshal(a)
	if err == nil {
		err = yaml.Unmarshal(text, &keys)
	}
	if err != nil || keys == nil { // texts, numbers and lists always marshal
		return json.RawMessage("{}")
	}
	data, _ := jsonv2.Marshal(keys, jsonv2.Deterministic(true))
	return data
}

// CheckAgent returns CodeBadRequest for an agent with a provider or fallback that is not
// configured, or with an unknown size of model.
func (c *Config) CheckAgent(name string, agent *Agent) error {
	if agent.Provider != "" && name != mainAgent { // chooseProvider checks that of main
		if _, configured := c.Named(agent.Provider); !configured && agent.Provider != ProviderDemo {
			return regie.Errorf(regie.CodeBadRequest, "the agent %s names the provider %q, which is not configured: use %s",
				name, agent.Provider, strings.Join(append(c.ProviderNames(), ProviderDemo), ", "))
		}
	}
	if provider := cmp.Or(agent.Provider, c.Provider); slices.Contains(modelSizes, agent.Model) {
		if p := c.Providers[provider]; provider != "" && name != mainAgent && p.Models[agent.Model] == "" {
			return regie.Errorf(regie.CodeBadRequest,
				"the agent %s wants a %s model, and none of the provider %s is known: name a model, or set providers.%s.models",
				name, agent.Model, provider, provider)
		}
	}
	_, err := c.Fallbacks(name, agent)
	return err
}

// modelSizes are the sizes that an agent can ask for (spec 6.3).
var modelSizes = []string{"small", DefaultSize, "large"}

// checkAgents checks the agents of the settings.
func (c *Config) checkAgents() error {
	for _, name := range slices.Sorted(maps.Keys(c.File.Agents)) {
		agent := c.File.Agents[name]
		if err := c.CheckAgent(name, &agent); err != nil {
			return regie.Errorf(regie.CodeBadRequest, "%v (in %s)", err, c.sourceOf("agents."+name))
		}
	}
	return nil
}

// AgentModel returns the provider and the model of an agent: its own, else those that are given.
func (c *Config) AgentModel(agent *Agent, provider, model string) (string, string) {
	switch {
	case agent.Provider == "" && agent.Model == "":
		return provider, model
	case agent.Provider == "" || agent.Provider == provider:
		return provider, cmp.Or(agent.Model, model)
	case agent.Provider == c.Provider:
		return agent.Provider, cmp.Or(agent.Model, c.Model)
	case agent.Provider == ProviderDemo:
		return ProviderDemo, ProviderDemo
	}
	return agent.Provider, c.ModelOf(agent.Provider, cmp.Or(agent.Model, DefaultSize))
}
