package store

import "github.com/regie-run/regie"

// RuleFilter selects standing rules (spec 4.4).
type RuleFilter struct {
	Root string `query:"root" doc:"The directory of a workspace; all of them where it is left out."`
	// Ended has those that are expired or revoked too.
	Ended bool     `query:"ended" doc:"Those too that allow nothing any more."`
	ID    regie.ID `query:"id" doc:"One rule, in whatever state."`
	Short string   `query:"short" doc:"The end of an id, or its beginning from eight digits on, in whatever state."`
	// After selects what comes behind this place of the list, which has the oldest first; Limit is
	// how many at most, 0 for all.
	After Mark `query:"cursor" list:"rules" doc:"next_cursor of the page before."`
	Limit int  `query:"limit" min:"1" max:"1000" doc:"How many at most; 50 where it is left out."`
}

// StandingRule is a rule with what a person wants to know of it (spec 4.4).
type StandingRule struct {
	regie.Rule
	State       regie.RuleState `json:"state"`
	Workspace   string          `json:"workspace"` // its name, for people
	SessionName string          `json:"session_name,omitempty"`
	// RoundID and Call identify the call of the answer that made the rule, and its effect.
	RoundID regie.ID       `json:"round_id,omitzero"`
	Call    regie.Sentence `json:"call,omitzero"`
}

// RuleList is standing rules, the oldest first, with what verifying the logs of their workspaces
// found (decision 15).
type RuleList struct {
	Rules []StandingRule `json:"rules"`
	Audit *VerifyReport  `json:"audit,omitempty"`
	// AuditError says where rules are not what was written.
	AuditError string `json:"audit_error,omitempty"`
}

// RevokeRules is the transition that takes rules back, all of them or none.
type RevokeRules struct {
	RuleIDs []regie.ID
	By      string
}
