package client

import (
	"context"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// Workspaces implements dispatch.Places.
func (c *Client) Workspaces(ctx context.Context) ([]regie.Workspace, error) {
	return all[regie.Workspace](ctx, c, "/api/v1/workspaces")
}

// OpenWorkspace implements dispatch.Places.
func (c *Client) OpenWorkspace(ctx context.Context, in dispatch.WorkspaceRequest) (out regie.Workspace, err error) {
	err = c.call(ctx, http.MethodPost, "/api/v1/workspaces", in, &out)
	return out, err
}

// NewSession implements dispatch.Places.
func (c *Client) NewSession(ctx context.Context, in dispatch.SessionRequest) (out regie.Session, err error) {
	if in.SessionID.IsZero() { // a repetition makes the same one
		in.SessionID = regie.NewID()
	}
	err = c.call(ctx, http.MethodPost, "/api/v1/sessions", in, &out)
	return out, err
}

// Agents implements dispatch.Places.
func (c *Client) Agents(ctx context.Context) ([]dispatch.AgentView, error) {
	return all[dispatch.AgentView](ctx, c, "/api/v1/agents")
}

// Tools implements dispatch.Places.
func (c *Client) Tools(ctx context.Context) ([]regie.ToolDefinition, error) {
	return all[regie.ToolDefinition](ctx, c, "/api/v1/tools")
}

// Providers implements dispatch.Places.
func (c *Client) Providers(ctx context.Context) ([]dispatch.ProviderView, error) {
	return all[dispatch.ProviderView](ctx, c, "/api/v1/providers")
}

// Query implements dispatch.Places.
func (c *Client) Query(ctx context.Context, in dispatch.QueryRequest) (out dispatch.QueryResult, err error) {
	err = c.call(ctx, http.MethodPost, "/api/v1/queries", in, &out)
	return out, err
}
