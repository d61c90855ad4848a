package client

import (
	"context"
	"net/http"

	"github.com/regie-run/regie/internal/dispatch"
)

// Limits returns the limits of a round by the type of its session (spec 3.2).
func (c *Client) Limits(ctx context.Context) (dispatch.LimitSettings, error) {
	return ask[dispatch.LimitSettings](ctx, c, http.MethodGet, "/api/v1/settings/limits", nil)
}

// SetLimits stores limits, all that a request names or none of them. It returns CodeConflict for a
// limit that a file or the command line fixes.
func (c *Client) SetLimits(ctx context.Context, in dispatch.LimitChanges) (dispatch.LimitSettings, error) {
	return ask[dispatch.LimitSettings](ctx, c, http.MethodPatch, "/api/v1/settings/limits", in)
}
