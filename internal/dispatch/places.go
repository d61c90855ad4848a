package dispatch

import (
	"encoding/json"

	"github.com/regie-run/regie"
)

// QueryRequest is a call of a query.
type QueryRequest struct {
	WorkspaceID regie.ID        `json:"workspace_id" required:"true"`
	Tool        string          `json:"tool" required:"true"` // its canonical name
	Arguments   json.RawMessage `json:"arguments,omitempty"`
}

// QueryResult is what a query brought.
type QueryResult struct {
	Content string `json:"content"`
}

// WorkspaceRequest names a directory.
type WorkspaceRequest struct {
	// Path is absolute, on the machine of the engine.
	Path string `json:"path" required:"true"`
	// Here takes the directory although it is the home directory or /.
	Here bool `json:"here,omitempty"`
}

// SessionRequest makes a session. What it leaves empty the engine's settings say.
type SessionRequest struct {
	SessionID   regie.ID          `json:"session_id,omitzero"`
	WorkspaceID regie.ID          `json:"workspace_id" required:"true"`
	Agent       string            `json:"agent,omitempty"`
	Type        regie.SessionType `json:"type,omitempty"`
	Name        string            `json:"name,omitempty"`
	// RequireValidation has every call of the session asked about (decision 49).
	RequireValidation bool `json:"require_validation,omitempty"`
	// ApprovalMode is that of the session (decision 71); it needs the scope approve.
	ApprovalMode regie.Mode `json:"approval_mode,omitempty"`
}

// AgentView is an agent as it answers now.
type AgentView struct {
	Name     string `json:"name"`
	Provider string `json:"provider_id,omitempty"` // empty where none is configured
	Model    string `json:"model,omitempty"`
}

// ProviderView is a configured provider. Keys are never shown; providers of files cannot be changed
// here (decision 52).
type ProviderView struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	BaseURL string `json:"base_url,omitempty"`
	HasKey  bool   `json:"has_key"`
	Chosen  bool   `json:"chosen,omitempty"` // answers where nothing else is said
}
