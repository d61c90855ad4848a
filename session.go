package regie

import (
	"slices"
	"time"
)

// SessionType says what a session is for (spec 1, decision 22).
type SessionType string

// The session types.
const (
	SessionChat       SessionType = "CHAT"
	SessionSeed       SessionType = "SEED" // an automation's template: never run
	SessionAutomation SessionType = "AUTOMATION"
	SessionSubagent   SessionType = "SUBAGENT" // a child session, never listed as a chat
)

// SessionState is derived from the session's round, waits and flags and stored in the same
// transaction (decision 12).
type SessionState string

// The session states, in the order of decision 12: the first that applies is the state.
const (
	SessionClosed            SessionState = "CLOSED"
	SessionPaused            SessionState = "PAUSED"
	SessionActive            SessionState = "ACTIVE"
	SessionQueued            SessionState = "QUEUED"
	SessionWaitingValidation SessionState = "WAITING_VALIDATION"
	SessionWaitingResponse   SessionState = "WAITING_RESPONSE"
	SessionWaitingNetwork    SessionState = "WAITING_NETWORK"
	SessionWaitingProvider   SessionState = "WAITING_PROVIDER"
	SessionWaitingTask       SessionState = "WAITING_TASK"
	SessionIdle              SessionState = "IDLE"
)

// SessionEnd says why a session was closed; it is set only at CLOSED (decisions 3 and 44).
type SessionEnd string

// The session end reasons.
const (
	SessionCompleted SessionEnd = "COMPLETED"
	SessionTimeout   SessionEnd = "TIMEOUT"
	SessionError     SessionEnd = "ERROR"
	SessionCancelled SessionEnd = "CANCELLED"
)

// Workspace is the boundary of tenancy and data (spec 1): a project directory, a company, a
// household.
type Workspace struct {
	ID   ID     `json:"id"`
	Name string `json:"name"`
	// Root is the absolute path of the directory that the files toolkit is confined to; empty for a
	// workspace without files.
	Root string `json:"root,omitempty"`
	// FoundBy says how Root was detected: "regie", "git", "directory" (spec 8.1).
	FoundBy   string    `json:"found_by,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// LastActive is when something last happened in one of its sessions; a list alone has it.
	LastActive time.Time `json:"last_active,omitzero"`
}

// User is a person with credentials. The embedded default has exactly one (spec 11.2).
type User struct {
	ID        ID        `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// Session is one thread of messages in a workspace (spec 2.1).
type Session struct {
	ID          ID     `json:"id"`
	WorkspaceID ID     `json:"workspace_id"`
	UserID      ID     `json:"user_id"` // the owner
	Agent       string `json:"agent"`
	// AgentVersion is the version of an agent that was made through the interface; zero for one of
	// a file, which has none.
	AgentVersion int          `json:"agent_version,omitempty"`
	Name         string       `json:"name"`
	Type         SessionType  `json:"type"`
	Provider     string       `json:"provider_id"`
	Model        string       `json:"model"`
	State        SessionState `json:"state"`
	// Origin is empty for a session that a person began, and OriginAPISession for one of an
	// OpenAI-compatible client (decision 35).
	Origin SessionOrigin `json:"origin,omitempty"`
	// TokenID is the token that began it: to one that only opens /v1 it is its own (spec 11.2). It
	// is zero where no token did.
	TokenID ID `json:"token_id,omitzero"`
	// RequireValidation has every call of the session asked about (decision 49).
	RequireValidation bool `json:"require_validation,omitempty"`
	// ApprovalMode is ModeAsk where it is empty.
	ApprovalMode Mode `json:"approval_mode,omitempty"`
	// Tainted says that the session has read what others wrote, ReadPrivate that it has read
	// private data (decision 34). Neither is ever taken back.
	Tainted      bool       `json:"tainted,omitempty"`
	ReadPrivate  bool       `json:"read_private,omitempty"`
	EndReason    SessionEnd `json:"end_reason,omitempty"`
	CreatedAt    time.Time  `json:"created_at"`
	LastActivity time.Time  `json:"last_activity"`
	// Epoch rises with each holder; a write under an older one is refused (invariant 8).
	Epoch int64 `json:"epoch"`
	// ForkedFrom is set in a fork, for ever (decision 17).
	ForkedFrom *ForkPoint `json:"forked_from,omitempty"`
}

// Mode says which defaults of approvals a session has (decision 71). What must be asked and what is
// forbidden stay so in each.
type Mode string

// The modes.
const (
	ModeAsk         Mode = "ask"          // also where none is set
	ModeAcceptEdits Mode = "accept_edits" // changes of files run without asking; undo restores them
	ModePlan        Mode = "plan"         // only queries run, until a person approves the plan
	ModeAuto        Mode = "auto"         // as accept_edits, and commands in the sandbox without a network
)

// Modes are all modes, in the order of the key that goes through them.
func Modes() []Mode { return []Mode{ModeAsk, ModeAcceptEdits, ModePlan, ModeAuto} }

// CheckMode returns CodeBadRequest for an unknown mode; empty is none.
func CheckMode(mode Mode) error {
	if mode == "" || slices.Contains(Modes(), mode) {
		return nil
	}
	return Errorf(CodeBadRequest, "%q is not a mode: use ask, accept_edits, plan or auto", string(mode))
}

// Execution is what an AUTOMATION session came from and came to (spec 5.3).
type Execution struct {
	// AutomationID is zero for a run that no automation started.
	AutomationID ID      `json:"automation_id,omitzero"`
	Trigger      Trigger `json:"trigger"`
	// ScheduledFor is the instant that a SCHEDULED run was due at.
	ScheduledFor time.Time  `json:"scheduled_for,omitzero"`
	StartedAt    time.Time  `json:"started_at"`
	EndedAt      time.Time  `json:"ended_at,omitzero"`
	RoundTrips   int        `json:"round_trips"` // the model's replies
	Tokens       int64      `json:"tokens"`
	Cost         Spending   `json:"cost"`
	EndReason    SessionEnd `json:"end_reason,omitempty"`
}

// ForkPoint is where a session was forked (decision 17): up to and with the message at Seq of
// another session. What lies behind it, the files of the workspace among it, is not part of the
// fork.
type ForkPoint struct {
	SessionID ID    `json:"session_id"`
	Seq       int64 `json:"seq"` // 0: before its first message
}

// Copied names the original of a message in a fork and its time: the copy has the time of the fork
// (decision 17). In a fork of a fork it names the first original.
type Copied struct {
	MessageID ID        `json:"message_id"`
	At        time.Time `json:"at"`
}

// ReadMark is how far a user has read a session. The client advances it, delivery never does
// (decision 45).
type ReadMark struct {
	UserID    ID    `json:"user_id"`
	SessionID ID    `json:"session_id"`
	Seq       int64 `json:"read_seq"`
}
