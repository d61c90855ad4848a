package regie

import (
	"encoding/json"
	"time"
)

// Verdict is what is to happen with a call before any person was asked (decision 19), from the
// mildest on.
type Verdict string

// The verdicts.
const (
	VerdictAllow   Verdict = "ALLOW"
	VerdictAsk     Verdict = "ASK"      // an allow rule can lift it
	VerdictMustAsk Verdict = "MUST_ASK" // no standing rule lifts it
	VerdictForbid  Verdict = "FORBID"
)

// Stricter reports whether v is stricter than another verdict.
func (v Verdict) Stricter(than Verdict) bool {
	rank := map[Verdict]int{VerdictAllow: 0, VerdictAsk: 1, VerdictMustAsk: 2, VerdictForbid: 3}
	return rank[v] > rank[than]
}

// Source names what asked for a verdict: one level of the hierarchy of spec 4.4, or one of the
// explicit reasons of decision 19.
type Source string

// The sources.
const (
	SourceApp       Source = "app"
	SourceWorkspace Source = "workspace"
	SourceAgent     Source = "agent"
	SourceSession   Source = "session"
	SourceTool      Source = "tool"    // the tool's own risk
	SourceRun       Source = "run"     // what the run was started with
	SourceRule      Source = "rule"    // a standing rule
	SourceModel     Source = "model"   // the model's validation_request (decision 40)
	SourceTaint     Source = "taint"   // decision 34
	SourceUnknown   Source = "unknown" // an earlier call of this signature has no known outcome (decision 5)
	SourceHook      Source = "hook"    // a command that the person has set up (spec 13)
	SourceMode      Source = "mode"    // the session's mode (decision 71)
)

// Ground is a reason for an approval or a refusal of a call.
type Ground struct {
	Source   Source   `json:"source"`
	Verdict  Verdict  `json:"verdict"`
	Sentence Sentence `json:"sentence"`
}

// ApprovalState is the state of an approval.
type ApprovalState string

// The approval states.
const (
	ApprovalOpen      ApprovalState = "OPEN"
	ApprovalDecided   ApprovalState = "DECIDED"   // every call of it has its decision
	ApprovalExpired   ApprovalState = "EXPIRED"   // nobody decided in time
	ApprovalWithdrawn ApprovalState = "WITHDRAWN" // the round was stopped, or steered elsewhere
)

// Approval asks a person about one batch: the ValidationContext of spec 4.4. Its calls are decided
// one by one, each once (decision 20).
type Approval struct {
	ID          ID            `json:"id"`
	SessionID   ID            `json:"session_id"`
	RoundID     ID            `json:"round_id"`
	Exchange    int           `json:"exchange"`
	Workspace   string        `json:"workspace"` // its name, for people
	Agent       string        `json:"agent"`
	State       ApprovalState `json:"state"`
	Reviews     []Review      `json:"reviews"`
	CreatedAt   time.Time     `json:"created_at"`
	ExpiresAt   time.Time     `json:"expires_at"`
	ClosedAt    time.Time     `json:"closed_at,omitzero"`
	SessionName string        `json:"session_name"`
}

// Review is one call that waits for a person's decision: its effect, the reasons, and what the
// decision binds (decision 20).
type Review struct {
	CallID ID     `json:"call_id"`
	Tool   string `json:"tool"`
	// Definition and Arguments are what is approved: the hash of the tool's definition and the
	// arguments that would run.
	Definition Hash            `json:"definition"`
	Arguments  json.RawMessage `json:"arguments"`
	Preview    Preview         `json:"preview"`
	Verdict    Verdict         `json:"verdict"`
	Grounds    []Ground        `json:"reasons"`
	Decision   *Decision       `json:"decision,omitempty"`
}

// Answer is what a person says to one call (spec 4.4).
type Answer string

// The answers.
const (
	AnswerAllow   Answer = "allow"         // once
	AnswerSession Answer = "allow_session" // and what lies within the scope, for the rest of this session
	AnswerAlways  Answer = "allow_always"  // and what lies within the scope, in this workspace
	AnswerDeny    Answer = "deny"
)

// Decision is a person's answer to one call.
type Decision struct {
	CallID ID     `json:"call_id" required:"true"`
	Answer Answer `json:"decision" required:"true"`
	// Arguments are the edited ones; none where the call runs as proposed.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Reason goes to the model with a denial (USER_REJECTED).
	Reason string `json:"reason,omitempty"`
	// Scope is what AnswerSession and AnswerAlways cover: one of those that the preview proposed.
	// Its absence means the narrowest.
	Scope *Scope `json:"scope,omitempty"`
	// ExpiresAt ends what AnswerSession and AnswerAlways leave behind; zero leaves it until it is
	// revoked.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	By        string    `json:"by,omitempty"`
	At        time.Time `json:"at,omitzero"`
}

// RuleState says whether a rule still counts (spec 4.4).
type RuleState string

// The rule states.
const (
	RuleActive  RuleState = "ACTIVE"
	RuleExpired RuleState = "EXPIRED" // its time is over
	RuleRevoked RuleState = "REVOKED" // a person took it back
)

// Rule is a standing answer (spec 4.4): made by a person's AnswerSession or AnswerAlways, or
// written by one. It never changes; it is revoked, once.
type Rule struct {
	ID          ID        `json:"id"`
	WorkspaceID ID        `json:"workspace_id"`
	SessionID   ID        `json:"session_id,omitzero"` // zero: every session of the workspace
	Verdict     Verdict   `json:"verdict"`             // ALLOW, MUST_ASK or FORBID
	Scope       Scope     `json:"scope"`
	Author      string    `json:"author"`
	CreatedAt   time.Time `json:"created_at"`
	ExpiresAt   time.Time `json:"expires_at,omitzero"`
	FromCall    ID        `json:"from_call,omitzero"`
	RevokedAt   time.Time `json:"revoked_at,omitzero"`
	RevokedBy   string    `json:"revoked_by,omitempty"`
}

// StateAt returns whether the rule counts at a time. It has ended at its last instant.
func (r *Rule) StateAt(now time.Time) RuleState {
	switch {
	case !r.RevokedAt.IsZero():
		return RuleRevoked
	case !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt):
		return RuleExpired
	default:
		return RuleActive
	}
}

// ModuleKind is the kind of a communication module (spec 4.5).
type ModuleKind string

// The communication modules.
const (
	ModuleChoice     ModuleKind = "MultipleChoice"
	ModuleValidation ModuleKind = "Validation"
)

// Module is a question to the person (spec 4.5).
type Module struct {
	Kind ModuleKind `json:"kind"`
	// Text is the question of a MultipleChoice, the message of a Validation.
	Text          string   `json:"text"`
	Options       []string `json:"options,omitempty"`
	AllowMultiple bool     `json:"allow_multiple,omitempty"`
	AllowFreeText bool     `json:"allow_free_text,omitempty"`
}

// Question is a module that waits for its answer.
type Question struct {
	ID          ID        `json:"id"`
	SessionID   ID        `json:"session_id"`
	RoundID     ID        `json:"round_id"`
	CallID      ID        `json:"call_id"`
	Workspace   string    `json:"workspace"`
	SessionName string    `json:"session_name"`
	State       WaitState `json:"state"`
	Module      Module    `json:"module"`
	CreatedAt   time.Time `json:"created_at"`
	ExpiresAt   time.Time `json:"expires_at"`
	// Reply is the answer, once it is there.
	Reply *QuestionReply `json:"reply,omitempty"`
}

// QuestionReply is a person's answer to a module: chosen options, a free text, or a yes or no.
type QuestionReply struct {
	Choices []string  `json:"choices,omitempty"`
	Text    string    `json:"text,omitempty"`
	Yes     *bool     `json:"yes,omitempty"` // of a Validation
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// ToolRole says how the loop treats a call apart from running it (spec 3.3): such tools are the
// native form of reply fields.
type ToolRole string

// The roles.
const (
	// ask_user: the round waits for the person's answer, which is the call's result (decision 40)
	RoleQuestion ToolRole = "question"
	// complete: the round ends COMPLETED once all else of its reply succeeded (decision 13)
	RoleComplete ToolRole = "complete"
	RolePlan     ToolRole = "plan" // update_plan: what the surfaces show as the plan
	// a tool of an OpenAI-compatible client: it runs there, and its call ends the round (decision
	// 35)
	RoleClient ToolRole = "client"
)
