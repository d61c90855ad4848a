package client

import (
	"context"
	"net/http"

	"github.com/regie-run/regie/internal/dispatch"
)

// Beat implements dispatch.Attendance.
func (c *Client) Beat(ctx context.Context) (out dispatch.Presence, err error) {
	err = c.call(ctx, http.MethodPost, "/api/v1/presence", nil, &out)
	return out, err
}

// Presence implements dispatch.Attendance.
func (c *Client) Presence(ctx context.Context) ([]dispatch.Presence, error) {
	return all[dispatch.Presence](ctx, c, "/api/v1/presence")
}
