package httpapi

import (
	"context"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

func (s *server) placeRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/v1/workspaces", listed(s, s.control.Workspaces))
	mux.HandleFunc("POST /api/v1/workspaces", asked(s, s.control.OpenWorkspace))
	mux.HandleFunc("POST /api/v1/sessions", asked(s, s.control.NewSession))
	mux.HandleFunc("GET /api/v1/agents", listed(s, s.control.Agents))
	mux.HandleFunc("GET /api/v1/tools", listed(s, s.control.Tools))
	mux.HandleFunc("GET /api/v1/providers", listed(s, s.control.Providers))
	mux.HandleFunc("POST /api/v1/queries", asked(s, s.control.Query))
}

// listed answers a request for all there is of something.
func listed[T any](s *server, list func(context.Context) ([]T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := list(r.Context())
		s.answer(w, r, http.StatusOK, out, err)
	}
}

// Workspaces implements dispatch.Places.
func (c *Client) Workspaces(ctx context.Context) (out []regie.Workspace, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/workspaces", nil, &out)
	return out, err
}

// OpenWorkspace implements dispatch.Places.
func (c *Client) OpenWorkspace(ctx context.Context, in dispatch.WorkspaceRequest) (out regie.Workspace, err error) {
	err = c.call(ctx, http.MethodPost, "/api/v1/workspaces", in, &out)
	return out, err
}

// NewSession implements dispatch.Places.
func (c *Client) NewSession(ctx context.Context, in dispatch.SessionRequest) (out regie.Session, err error) {
	err = c.call(ctx, http.MethodPost, "/api/v1/sessions", in, &out)
	return out, err
}

// Agents implements dispatch.Places.
func (c *Client) Agents(ctx context.Context) (out []dispatch.AgentView, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/agents", nil, &out)
	return out, err
}

// Tools implements dispatch.Places.
func (c *Client) Tools(ctx context.Context) (out []regie.ToolDefinition, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/tools", nil, &out)
	return out, err
}

// Providers implements dispatch.Places.
func (c *Client) Providers(ctx context.Context) (out []dispatch.ProviderView, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/providers", nil, &out)
	return out, err
}

// Query implements dispatch.Places.
func (c *Client) Query(ctx context.Context, in dispatch.QueryRequest) (out dispatch.QueryResult, err error) {
	err = c.call(ctx, http.MethodPost, "/api/v1/queries", in, &out)
	return out, err
}
