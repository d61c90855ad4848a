package client

import (
	"context"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// Workspaces lists the workspaces that the store knows, by name.
func (c *Client) Workspaces(ctx context.Context) ([]regie.Workspace, error) {
	return all[regie.Workspace](ctx, c, "/api/v1/workspaces")
}

// OpenWorkspace returns the workspace that a directory of the engine's machine belongs to, and
// makes it the first time (spec 8.1). It returns CodePathProtected for the home directory and /
// unless Here is set.
func (c *Client) OpenWorkspace(ctx context.Context, in dispatch.WorkspaceRequest) (regie.Workspace, error) {
	return ask[regie.Workspace](ctx, c, http.MethodPost, "/api/v1/workspaces", in)
}

// NewSession makes a session without a message.
func (c *Client) NewSession(ctx context.Context, in dispatch.SessionRequest) (regie.Session, error) {
	if in.SessionID.IsZero() { // a repetition makes the same one
		in.SessionID = regie.NewID()
	}
	return ask[regie.Session](ctx, c, http.MethodPost, "/api/v1/sessions", in)
}

// Tools lists what agents can call.
func (c *Client) Tools(ctx context.Context) ([]regie.ToolDefinition, error) {
	return all[regie.ToolDefinition](ctx, c, "/api/v1/tools")
}

// Providers lists what can answer.
func (c *Client) Providers(ctx context.Context) ([]dispatch.ProviderView, error) {
	return all[dispatch.ProviderView](ctx, c, "/api/v1/providers")
}

// Query calls a query of a workspace, without a model and without a session (spec 4.1).
func (c *Client) Query(ctx context.Context, in dispatch.QueryRequest) (dispatch.QueryResult, error) {
	return ask[dispatch.QueryResult](ctx, c, http.MethodPost, "/api/v1/queries", in)
}

// Search looks through one workspace: what was said in its sessions, and its files (spec 8.3).
func (c *Client) Search(ctx context.Context, in dispatch.SearchRequest) (dispatch.Found, error) {
	return ask[dispatch.Found](ctx, c, http.MethodGet, "/api/v1/search?"+queryOf(in), nil)
}

// Models asks each configured provider what it has.
func (c *Client) Models(ctx context.Context) ([]dispatch.ProviderModels, error) {
	return all[dispatch.ProviderModels](ctx, c, "/api/v1/models")
}
