package client

import (
	"context"
	"net/http"

	"github.com/regie-run/regie/internal/dispatch"
)

// Search looks through one workspace: what was said in its sessions, and its files (spec 8.3).
func (c *Client) Search(ctx context.Context, in dispatch.SearchRequest) (dispatch.Found, error) {
	return ask[dispatch.Found](ctx, c, http.MethodGet, "/api/v1/search?"+queryOf(in), nil)
}

// Models asks each configured provider what it has.
func (c *Client) Models(ctx context.Context) ([]dispatch.ProviderModels, error) {
	return all[dispatch.ProviderModels](ctx, c, "/api/v1/models")
}
