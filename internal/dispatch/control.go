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
}

// Run is the answer to a RunRequest.
type Run struct {
	SessionID regie.ID `json:"session_id"`
	RoundID   regie.ID `json:"round_id"`
	MessageID regie.ID `json:"message_id"`
	Seq       int64    `json:"seq"`
	Duplicate bool     `json:"duplicate,omitempty"`
}
