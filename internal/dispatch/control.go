package dispatch

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/store"
)

// Control is all that a surface can do (spec 10: none has powers of its own). The engine of this process implements it, and so
// does the client of another process's engine.
type Control interface {
	// Submit stores a message and starts its round.
	Submit(ctx context.Context, in RunRequest) (Run, error)
	// Interrupt, Pause and Resume are the words of decision 6; each is durable when it returns.
	Interrupt(ctx context.Context, round regie.ID) error
	Pause(ctx context.Context, round regie.ID) error
	Resume(ctx context.Context, round regie.ID) error
	// Stop ends whatever runs in a session and closes it as cancelled; Close closes an idle chat, which a message opens again.
	Stop(ctx context.Context, session regie.ID) error
	CloseSession(ctx context.Context, session regie.ID) error
	// Inbox returns what waits for people; Decide and Answer store what they say, each accepted once, and go on with the round.
	Inbox(ctx context.Context, filter store.InboxFilter) (store.Inbox, error)
	Decide(ctx context.Context, in DecideRequest) (store.Resolved, error)
	Answer(ctx context.Context, in AnswerRequest) (store.Resolved, error)
	// Resolve stores what a person found out about a call whose outcome nobody knew (decision 5).
	Resolve(ctx context.Context, in ResolveRequest) error
	// Get returns a round with everything that happened in it.
	Get(ctx context.Context, round regie.ID) (store.RoundView, error)
	// List returns the newest rounds of the workspace at root, or of all for "".
	List(ctx context.Context, root string, limit int) ([]store.RoundSummary, error)
	// Events gives a session's log after a sequence number and then follows it, until sink returns an error or ctx ends.
	Events(ctx context.Context, session regie.ID, after int64, sink func(Item) error) error
}

// RunRequest is a message for an agent in a workspace.
type RunRequest struct {
	// ClientID makes a repeated request add nothing (spec 2.3).
	ClientID string `json:"client_message_id"`
	// SessionID names the session; its first message makes it.
	SessionID regie.ID `json:"session_id"`
	// Root is the workspace's directory, an absolute path; FoundBy says how it was found (spec 8.1).
	Root    string `json:"root"`
	FoundBy string `json:"found_by"`
	Text    string `json:"text"`
	Agent   string `json:"agent"`
	// Provider and Model name what answers; Settings is the fingerprint of the provider's settings as the caller sees them.
	Provider string          `json:"provider"`
	Model    string          `json:"model"`
	Settings regie.Hash      `json:"settings,omitzero"`
	Policy   approval.Policy `json:"policy"`
	// Limits lowers the defaults of spec 3.2 where a field is not zero.
	Limits regie.Limits `json:"limits"`
	// WhenBusy says what becomes of the message while a round of the session is open (decision 10).
	WhenBusy store.WhenBusy `json:"when_busy,omitempty"`
	// RequireValidation has every call of a new session asked about (decision 49).
	RequireValidation bool `json:"require_validation,omitempty"`
}

// Run is the answer to a RunRequest.
type Run struct {
	SessionID regie.ID `json:"session_id"`
	RoundID   regie.ID `json:"round_id"`
	MessageID regie.ID `json:"message_id"`
	Seq       int64    `json:"seq"`
	Duplicate bool     `json:"duplicate,omitempty"`
	// Pending says that the message waits for its place in the thread of the open round RoundID (decision 10).
	Pending bool `json:"pending,omitempty"`
	// Answered says that the message was taken as the answer to the question that the round waited for.
	Answered bool `json:"answered,omitempty"`
}

// DecideRequest is a person's word on calls of one approval (spec 4.4).
type DecideRequest struct {
	ApprovalID regie.ID `json:"approval_id"`
	// Request is the answer's own id: saying it again adds nothing.
	Request   string           `json:"request_id"`
	Decisions []regie.Decision `json:"decisions"`
	By        string           `json:"by"`
	// StoreOnly leaves going on to the next engine.
	StoreOnly bool `json:"store_only,omitempty"`
}

// ResolveRequest is a person's word on an UNKNOWN call.
type ResolveRequest struct {
	CallID regie.ID         `json:"call_id"`
	As     regie.ResolvedAs `json:"as"`
	Note   string           `json:"note,omitempty"`
	By     string           `json:"by,omitempty"`
}

// AnswerRequest is a person's answer to a question (spec 4.5).
type AnswerRequest struct {
	QuestionID regie.ID            `json:"question_id"`
	Request    string              `json:"request_id"`
	Reply      regie.QuestionReply `json:"reply"`
	By         string              `json:"by"`
	StoreOnly  bool                `json:"store_only,omitempty"`
}
