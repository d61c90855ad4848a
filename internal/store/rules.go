package store

import "github.com/regie-run/regie"

// RuleFilter selects standing rules (spec 4.4).
type RuleFilter struct {
	Root string // of the workspace; empty for all
	// Ended has those that are expired or revoked too.
	Ended bool
	ID    regie.ID // of one rule, in whatever state; zero for all that are selected
	// Short is the end of an id, or its beginning from eight digits on, as InboxFilter.Short.
	Short string
	// After selects what comes behind this place of the list, which has the oldest first; Limit is
	// how many at most, 0 for all.
	After Mark
	Limit int
}

// StandingRule is a rule with what a person wants to know of it (spec 4.4).
type StandingRule struct {
	regie.Rule
	State       regie.RuleState `json:"state"`
	Workspace   string          `json:"workspace"` // its name, for people
	SessionName string          `json:"session_name,omitempty"`
	// RoundID and Call say where the call is from whose answer made the rule, and what it did.
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
