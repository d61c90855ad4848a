package client

import (
	"context"
	"net/http"

	"github.com/regie-run/regie/internal/dispatch"
)

// Limits implements dispatch.Settings.
func (c *Client) Limits(ctx context.Context) (out dispatch.LimitSettings, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/settings/limits", nil, &out)
	return out, err
}

// SetLimits implements dispatch.Settings.
func (c *Client) SetLimits(ctx context.Context, in dispatch.LimitChanges) (out dispatch.LimitSettings, err error) {
	err = c.call(ctx, http.MethodPatch, "/api/v1/settings/limits", in, &out)
	return out, err
}
