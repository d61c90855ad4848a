package client

import (
	"context"
	"net/http"

	"github.com/regie-run/regie/internal/store"
)

// Stats is the dashboard, as control.Stats.
type Stats struct{ client *Client }

// Get returns the counters of a period.
func (s *Stats) Get(ctx context.Context, filter store.StatFilter) (store.StatReport, error) {
	return ask[store.StatReport](ctx, s.client, http.MethodGet, "/api/v1/stats?"+queryOf(filter), nil)
}

// Rebuild writes the roll-ups of all workspaces anew from the stored rounds.
func (s *Stats) Rebuild(ctx context.Context) error {
	return s.client.call(ctx, http.MethodPost, "/api/v1/stats/rebuild", nil, nil)
}
