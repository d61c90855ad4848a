package dispatch

import (
	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/engine"
)

// MessagesRequest names a part of a session's thread: the messages after a sequence number, or with
// Before the last ones before one, and their largest number; zero means 1,000. They come in the
// order of the thread either way.
type MessagesRequest struct {
	SessionID regie.ID
	After     int64 `query:"after" doc:"The sequence number behind which to begin."`
	Before    int64 `query:"before" min:"1" doc:"In place of after: the last messages in front of this sequence number; that of the oldest one known goes back from there."`
	Limit     int   `query:"limit" min:"1" max:"1000" doc:"How many at most; 50 where it is left out."`
	// Cursor is for a transport: it goes before After and Before.
	Cursor string `query:"cursor" doc:"next_cursor of the page before: goes before after and before, and on in the direction of that page."`
}

// ForkRequest forks a session. The new session's id makes a repeated request change nothing.
type ForkRequest struct {
	SessionID regie.ID `json:"session_id"` // the new one's
	From      regie.ID `json:"from"`
	// At is a sequence number of the log, RoundID a run in its place; neither means the end.
	At      int64    `json:"at,omitempty"`
	RoundID regie.ID `json:"round_id,omitzero"`
	Name    string   `json:"name,omitempty"`
}

// RemoveRequest removes a session. Removing what is removed changes nothing.
type RemoveRequest struct {
	SessionID regie.ID `json:"session_id"`
	By        string   `json:"by,omitempty" query:"by" doc:"Who removes it, for the audit."`
}

// SessionChange is what changes of a session: one of its name, its mode and its state.
type SessionChange struct {
	SessionID regie.ID `json:"session_id,omitzero"`
	Name      string   `json:"name,omitempty"`
	// State can be CLOSED: the chat is closed, and a message opens it again. All other states come
	// by themselves.
	State regie.SessionState `json:"state,omitempty"`
	// ApprovalMode is ask, accept_edits, plan or auto; it needs the scope approve.
	ApprovalMode regie.Mode `json:"approval_mode,omitempty"`
}

// ReadRequest says how far the person has read a session; it never goes back.
type ReadRequest struct {
	SessionID regie.ID `json:"session_id"`
	Seq       int64    `json:"read_seq"`
}

// Replay is what running a stored round once more gave (invariant 17).
type Replay = engine.Replay

// ReplayStep is one model call of a Replay.
type ReplayStep = engine.ReplayStep
