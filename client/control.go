package client

import (
	"context"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// RequestControl answers what a run that the session started now would get, and reserves a free
// slot for 30 s or until the first message (spec 5.1, decision 43).
func (c *Client) RequestControl(ctx context.Context, session regie.ID) (store.Controlled, error) {
	return ask[store.Controlled](ctx, c, http.MethodPost, "/api/v1/sessions/"+session.String()+"/control", nil)
}

// ReleaseControl gives a reserved slot back.
func (c *Client) ReleaseControl(ctx context.Context, session regie.ID) error {
	return c.call(ctx, http.MethodDelete, "/api/v1/sessions/"+session.String()+"/control", nil, nil)
}
