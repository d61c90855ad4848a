package dispatch

import (
	"context"
	"encoding/json"

	"github.com/regie-run/regie"
)

// Places is the part of Control that says what there is to work with: workspaces, agents, tools,
// providers.
type Places interface {
	// Workspaces lists the workspaces that this store knows, by name.
	Workspaces(ctx context.Context) ([]regie.Workspace, error)
	// OpenWorkspace returns the workspace that a directory of the engine's machine belongs to, and
	// makes it the first time (spec 8.1). It returns CodePathProtected for the home directory and /
	// unless Here is set, and the codes of a directory that cannot be opened.
	OpenWorkspace(ctx context.Context, in WorkspaceRequest) (regie.Workspace, error)
	// NewSession makes a session without a message. The session's id makes a repeated request
	// change nothing.
	NewSession(ctx context.Context, in SessionRequest) (regie.Session, error)
	// Agents lists the agents, Tools what they can call: the wire of a tool's server that is away
	// is left out. Providers lists what can answer.
	Agents(ctx context.Context) ([]AgentView, error)
	Tools(ctx context.Context) ([]regie.ToolDefinition, error)
	Providers(ctx context.Context) ([]ProviderView, error)
	// Query calls a query of a workspace, without a model and without a session (spec 4.1): it is
	// validated and judged as a model's call is. It returns CodeForbidden for an action,
	// CodePathProtected for what a person would have to be asked about, and the tool's own codes.
	Query(ctx context.Context, in QueryRequest) (QueryResult, error)
}

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
	// Known opens a workspace that is there already, and makes none: CodeMissingScope says so where
	// there is none, or no such directory.
	Known bool `json:"-"`
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
	// TokenID is the token of who makes it. Only who lets callers in says it; no request does.
	TokenID regie.ID `json:"-"`
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
