// Package approval decides whether a call may run, is asked about, or is forbidden, what a person's approval binds, and which rule a
// person's answer makes (spec 4.4, decisions 19 and 20). It is pure: its answers depend on its arguments alone, the time among them.
//
// Decide is the verdict, Bind what an approval holds for, ScopeFor and RuleFrom what an answer for a session or for always becomes.
// Asking, waiting and storing are the engine's work.
package approval

import (
	"path"

	"github.com/regie-run/regie"
)

// OnApproval says what happens with a call that needs an approval while nobody watches (spec 4.4, 10.1).
type OnApproval string

// The policies of an unattended run.
const (
	Park        OnApproval = "park" // the round waits for a person, without a slot
	DenyAndGoOn OnApproval = "deny" // the model is told and goes on
	FailRun     OnApproval = "fail" // the round ends DENIED
)

// Policy is what a run allows by itself. Its JSON form is stored with the round.
type Policy struct {
	// Allow lists tools that need no approval in this run: canonical names, "*" for any part ("files.*").
	Allow      []string   `json:"allow,omitempty"`
	OnApproval OnApproval `json:"on_approval,omitempty"`
	// WaitNetwork has the run wait for a model that cannot be reached, instead of ending (decision 42).
	WaitNetwork bool `json:"wait_network,omitempty"`
	// Questions says that somebody is there to answer the agent (decision 37).
	Questions bool `json:"questions,omitempty"`
}

// Validate returns CodeBadPattern for a pattern that cannot match a tool name, and CodeBadRequest for an unknown OnApproval. The empty
// OnApproval leaves the choice to the engine.
func (p Policy) Validate() error {
	for _, pattern := range p.Allow {
		if _, err := path.Match(pattern, "toolkit.operation"); err != nil || pattern == "" {
			return regie.Errorf(regie.CodeBadPattern, "%q is not a tool pattern: write files.write_file or files.*", pattern)
		}
	}
	switch p.OnApproval {
	case "", Park, DenyAndGoOn, FailRun:
		return nil
	default:
		return regie.Errorf(regie.CodeBadRequest, "%q is not a policy for approvals: use park, deny or fail", string(p.OnApproval))
	}
}

// grounds are the patterns that allow a tool. A malformed one never does, nor does any allow a call without a tool.
func (p Policy) grounds(tool string) []regie.Ground {
	var out []regie.Ground
	for _, pattern := range p.Allow {
		if ok, err := path.Match(pattern, tool); ok && err == nil && tool != "" {
			out = append(out, regie.Ground{
				Source: regie.SourceRun, Verdict: regie.VerdictAllow, Sentence: regie.Say("the run was started with %q allowed", pattern),
			})
		}
	}
	return out
}
