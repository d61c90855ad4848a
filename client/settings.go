package client

import (
	"context"
	"net/http"

	"github.com/regie-run/regie/internal/dispatch"
)

// Limits returns the limits of a round by the type of its session (spec 3.2).
func (c *Client) Limits(ctx context.Context) (out dispatch.LimitSettings, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/settings/limits", nil, &out)
	return out, err
}

// SetLimits stores limits, all that a request names or none of them. It returns CodeConflict for a
// limit that a file or the command line fixes.
func (c *Client) SetLimits(ctx context.Context, in dispatch.LimitChanges) (out dispatch.LimitSettings, err error) {
	err = c.call(ctx, http.MethodPatch, "/api/v1/settings/limits", in, &out)
	return out, err
}
