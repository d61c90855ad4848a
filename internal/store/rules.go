package store

import "github.com/regie-run/regie"

// RuleFilter selects standing rules (spec 4.4).
type RuleFilter struct {
	Root string `query:"root" doc:"The directory of a workspace; all of them where it is left out."`
	// Ended includes expired and revoked rules.
	Ended bool     `query:"ended" doc:"Those too that allow nothing any more."`
	ID    regie.ID `query:"id" doc:"One rule, in whatever state."`
	Short string   `query:"short" doc:"The end of an id, or its beginning from eight digits on, in whatever state."`
	// After is the cursor: the list continues behind it, oldest first. Limit is the page size, 0
	// for all.
	After Mark `query:"cursor" list:"rules" doc:"next_cursor of the page before."`
	Limit int  `query:"limit" min:"1" max:"1000" doc:"How many at most; 50 where it is left out."`
}

// StandingRule is a rule with its details for a person (spec 4.4).
type StandingRule struct {
	regie.Rule
	State       regie.RuleState `json:"state"`
	Workspace   string          `json:"workspace"` // its name, for people
	SessionName string          `json:"session_name,omitempty"`
	// RoundID and Call name the approved call that the rule comes from.
	RoundID regie.ID       `json:"round_id,omitzero"`
	Call    regie.Sentence `json:"call,omitzero"`
}

// RuleList is standing rules, the oldest first, with the result of verifying the logs of their
// workspaces (decision 15).
type RuleList struct {
	Rules []StandingRule `json:"rules"`
	Audit *VerifyReport  `json:"audit,omitempty"`
	// AuditError says where rules differ from the log.
	AuditError string `json:"audit_error,omitempty"`
}

// RevokeRules is the transition that revokes rules, all of them or none.
type RevokeRules struct {
	RuleIDs []regie.ID
	By      string
}
