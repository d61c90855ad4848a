// Package approval decides whether a call may run, needs an approval, or is forbidden, what a
// person's approval binds, and which rule a person's answer makes (spec 4.4, decisions 19 and 20).
// It is pure: its answers depend on its arguments alone, the time among them.
//
// Decide returns the verdict, Covers checks what an approval holds for, ScopeFor and RuleFrom turn
// an answer for a session or for always into a rule. The engine asks, waits and stores.
package approval

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// OnApproval decides about a call that needs an approval in an unattended run (spec 4.4, 10.1).
type OnApproval string

// The policies of an unattended run.
const (
	Park        OnApproval = "park" // the round waits for a person, without a slot
	DenyAndGoOn OnApproval = "deny" // the model is told and goes on
	FailRun     OnApproval = "fail" // the round ends DENIED
)

// Policy is what a run allows without asking. Its JSON form is stored with the round.
type Policy struct {
	// Allow lists tools that need no approval in this run: canonical names, "*" for any part
	// ("files.*").
	Allow []string `json:"allow,omitempty"`
	// Ask lists tools that need one in this run, against any rule.
	Ask        []string   `json:"ask,omitempty"`
	OnApproval OnApproval `json:"on_approval,omitempty"`
	// WaitNetwork has the run wait for a model that cannot be reached, instead of ending (decision
	// 42).
	WaitNetwork bool `json:"wait_network,omitempty"`
	// Questions says that a person can answer the agent (decision 37).
	Questions bool `json:"questions,omitempty"`
	// Relaunch says what the model may do once its calls have succeeded; empty is RelaunchChain
	// (spec 3.3).
	Relaunch Relaunch `json:"relaunch,omitempty"`
	// French has what Regie tells the model said in French.
	French bool `json:"french,omitempty"`
	// Restitution is for the answers after tool results (spec 6.2). The agent's goes before it.
	Restitution Restitution `json:"restitution,omitempty"`
	// OnDeny says what follows a refusal without a reason; empty is OnDenyExplain (decision 65).
	// The engine sets it.
	OnDeny OnDeny `json:"on_deny,omitempty"`
	// ReasoningEffort, ServiceTier and OneCall are parameters of the round's model calls (spec 6.3,
	// 13). They are fixed when the round starts, so that its requests stay consistent and can be
	// rebuilt byte for byte; empty leaves each to the vendor.
	ReasoningEffort string `json:"reasoning_effort,omitempty"`
	ServiceTier     string `json:"service_tier,omitempty"`
	// OneCall asks for one call in a reply, where the vendor can be asked so.
	OneCall bool `json:"one_call,omitempty"`
	// Temperature and Cache are the agent's at the start of the run: the sampling temperature, and
	// whether the response cache serves and keeps its answers (spec 6.4). The engine sets them, not
	// the request.
	Temperature *float64 `json:"temperature,omitempty"`
	Cache       bool     `json:"cache,omitempty"`
	// TopP and MaxOutput are parameters of the round's model calls too, Scopes the tools that the
	// agent may call, in all of them. NoSummaries has no model asked for a summary of the thread.
	TopP        *float64          `json:"top_p,omitempty"`
	MaxOutput   int               `json:"max_output_tokens,omitempty"`
	Scopes      []regie.ToolScope `json:"scopes,omitempty"`
	NoSummaries bool              `json:"no_summaries,omitempty"`
	// CacheIfTold uses the cache only for a model that accepts a temperature: some take none, and
	// answer differently each time.
	CacheIfTold bool `json:"cache_if_told,omitempty"`
	// Document is a message for people where the workspace's document was not read in full; the
	// engine sets it.
	Document regie.Sentence `json:"document,omitzero"`
	// Fallback are the providers that go on where the run's own does not answer, in their order
	// (spec 3.6); settled by the engine too.
	Fallback []Fallback `json:"fallback,omitempty"`
	// ClientTools are those that an OpenAI-compatible client has brought with its request (decision
	// 35). They are the round's own.
	ClientTools []regie.ClientTool `json:"client_tools,omitempty"`
	// Caps lower those of the configuration; the engine sets them, for a widget.
	Caps regie.Caps `json:"caps,omitzero"`
}

// Fallback is a provider that may go on with a run: pinned when it begins, as its own is.
type Fallback struct {
	Provider string `json:"provider_id"`
	Model    string `json:"model"`
	// Settings is the fingerprint of the provider's settings, zero for one that has none.
	Settings regie.Hash    `json:"settings,omitzero"`
	Dialect  regie.Dialect `json:"dialect"`
	// Level1 names its documentation, which says how to reply in its dialect.
	Level1 regie.Hash `json:"level1"`
}

// Restitution says how an answer after tool results is held to plain language (decision 63).
type Restitution string

// The restitutions. An empty one is guided in a chat and off in an unattended run.
const (
	RestitutionGuided    Restitution = "guided"
	RestitutionStrict    Restitution = "strict"    // the answer has four parts, too
	RestitutionUnchecked Restitution = "unchecked" // the model is guided, and its answer stands
	RestitutionOff       Restitution = "off"
)

// Checks reports whether answers are checked.
func (r Restitution) Checks() bool { return r == RestitutionGuided || r == RestitutionStrict }

// OnDeny says what follows a refusal without a reason.
type OnDeny string

// The ways to go on after one.
const (
	OnDenyExplain OnDeny = "explain" // the model says why it asked
	OnDenyEnd     OnDeny = "end"
)

// Relaunch is a policy for the model call that follows a batch (spec 3.3).
type Relaunch string

// The relaunch policies.
const (
	RelaunchChain Relaunch = "chain" // the tools stay there
	// they are withheld, so that the model answers; they come back when a call failed
	RelaunchAnswer Relaunch = "answer"
)

// tierWord is what a tier of service looks like; which ones a vendor has, the settings know.
var tierWord = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// Validate returns CodeBadPattern for a pattern that cannot match a tool name, and CodeBadRequest
// for any other invalid value. The empty OnApproval leaves the choice to the engine.
func (p Policy) Validate() error {
	for _, pattern := range slices.Concat(p.Allow, p.Ask) {
		if _, err := path.Match(pattern, "toolkit.operation"); err != nil || pattern == "" {
			return regie.Errorf(regie.CodeBadPattern, "%q is not a tool pattern: write files.write_file or files.*",
				pattern)
		}
	}
	switch {
	case p.ReasoningEffort != "" && !slices.Contains(regie.Efforts(), p.ReasoningEffort):
		return regie.Errorf(regie.CodeBadRequest, "%q is not a reasoning effort: use %s", p.ReasoningEffort,
			strings.Join(regie.Efforts(), ", "))
	case p.ServiceTier != "" && !tierWord.MatchString(p.ServiceTier):
		return regie.Errorf(regie.CodeBadRequest, "%q is not a service tier", p.ServiceTier)
	}
	switch p.Relaunch {
	case "", RelaunchChain, RelaunchAnswer:
	default:
		return regie.Errorf(regie.CodeBadRequest, "%q is not a relaunch policy: use chain or answer",
			string(p.Relaunch))
	}
	switch p.Restitution {
	case "", RestitutionGuided, RestitutionStrict, RestitutionUnchecked, RestitutionOff:
	default:
		return regie.Errorf(regie.CodeBadRequest, "%q is not a restitution: use guided, strict, unchecked or off",
			string(p.Restitution))
	}
	switch p.OnApproval {
	case "", Park, DenyAndGoOn, FailRun:
		return nil
	default:
		return regie.Errorf(regie.CodeBadRequest, "%q is not a policy for approvals: use park, deny or fail",
			string(p.OnApproval))
	}
}

// matchesAny reports whether a pattern matches a tool.
func matchesAny(patterns []string, tool string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return ok && err == nil
	})
}

// grounds are the patterns that allow a tool. A malformed one never does, nor does any allow a call
// without a tool.
func (p Policy) grounds(tool string) []regie.Ground {
	var out []regie.Ground
	for _, pattern := range p.Allow {
		if ok, err := path.Match(pattern, tool); ok && err == nil && tool != "" {
			out = append(out, regie.Ground{
				Source: regie.SourceRun, Verdict: regie.VerdictAllow,
				Sentence: regie.Say("the run was started with %q allowed", pattern),
			})
		}
	}
	return out
}
