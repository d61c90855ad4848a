package client

import (
	"context"
	"net/http"

	"github.com/regie-run/regie/internal/dispatch"
)

// PresenceService says which people are there, as control.PresenceService.
type PresenceService struct{ client *Client }

// Beat counts a heartbeat of the caller's user.
func (p *PresenceService) Beat(ctx context.Context) (dispatch.Presence, error) {
	return ask[dispatch.Presence](ctx, p.client, http.MethodPost, "/api/v1/presence", nil)
}

// List returns the users who are there, and those who were within 24 hours.
func (p *PresenceService) List(ctx context.Context) ([]dispatch.Presence, error) {
	return all[dispatch.Presence](ctx, p.client, "/api/v1/presence")
}
