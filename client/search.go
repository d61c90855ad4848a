package client

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/regie-run/regie/internal/dispatch"
)

// Search looks through one workspace: what was said in its sessions, and its files (spec 8.3).
func (c *Client) Search(ctx context.Context, in dispatch.SearchRequest) (dispatch.Found, error) {
	query := url.Values{
		"workspace": {in.WorkspaceID.String()}, "q": {in.Text}, "in": {cmp.Or(in.In, "all")},
		"mode": {cmp.Or(in.Mode, dispatch.SearchExact)},
	}
	if in.Case {
		query.Set("case", "true")
	}
	if in.Under != "" {
		query.Set("under", in.Under)
	}
	if in.Limit > 0 {
		query.Set("limit", strconv.Itoa(in.Limit))
	}
	if !in.Before.IsZero() {
		query.Set("cursor", in.Before.String())
	}
	return ask[dispatch.Found](ctx, c, http.MethodGet, "/api/v1/search?"+query.Encode(), nil)
}

// Models asks each configured provider what it has.
func (c *Client) Models(ctx context.Context) ([]dispatch.ProviderModels, error) {
	return all[dispatch.ProviderModels](ctx, c, "/api/v1/models")
}
