// Package approval decides whether a call may run, must ask a person, or is forbidden. It is pure (spec 4.4, decision 19).
//
// At this stage it knows the app's default (writes ask) and the allow rules that a run was started with; the whole hierarchy and
// the asking itself come with the approvals' issue.
package approval

import (
	"path"

	"github.com/regie-run/regie"
)

// Verdict is what is to happen with a call.
type Verdict string

// The verdicts.
const (
	Allow Verdict = "ALLOW"
	Ask   Verdict = "ASK"
)

// OnApproval says what happens with an action that needs an approval while nobody can be asked (spec 4.4, 10.1).
type OnApproval string

// The policies of an unattended run.
const (
	DenyAndGoOn OnApproval = "deny" // the model is told and goes on
	FailRun     OnApproval = "fail" // the round ends DENIED
)

// Policy is what a run allows by itself. Its JSON form is stored with the round.
type Policy struct {
	// Allow lists tools that need no approval in this run: canonical names, "*" for any part ("files.*").
	Allow      []string   `json:"allow,omitempty"`
	OnApproval OnApproval `json:"on_approval,omitempty"`
}

// Validate refuses patterns that cannot match a tool name.
func (p Policy) Validate() error {
	for _, pattern := range p.Allow {
		if _, err := path.Match(pattern, "toolkit.operation"); err != nil || pattern == "" {
			return regie.Errorf(regie.CodeBadPattern, "%q is not a tool pattern: write files.write_file or files.*", pattern)
		}
	}
	if p.OnApproval != "" && p.OnApproval != DenyAndGoOn && p.OnApproval != FailRun {
		return regie.Errorf(regie.CodeBadRequest, "%q is not a policy for approvals: use deny or fail", string(p.OnApproval))
	}
	return nil
}

// Decide gives the verdict on a call of a tool: queries run, actions ask unless the policy allows them.
func Decide(policy Policy, tool string, kind regie.CallKind) Verdict {
	if kind == regie.KindQuery {
		return Allow
	}
	for _, pattern := range policy.Allow {
		if ok, err := path.Match(pattern, tool); ok && err == nil {
			return Allow
		}
	}
	return Ask
}
