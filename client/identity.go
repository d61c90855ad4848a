package client

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Users implements dispatch.Identity.
func (c *Client) Users(ctx context.Context) ([]dispatch.UserView, error) {
	return all[dispatch.UserView](ctx, c, "/api/v1/users")
}

// Me implements dispatch.Identity.
func (c *Client) Me(ctx context.Context) (out dispatch.Me, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/users/me", nil, &out)
	return out, err
}

// Tokens implements dispatch.Identity.
func (c *Client) Tokens(ctx context.Context, filter store.TokenFilter) ([]regie.Token, error) {
	query := url.Values{
		"ended": {strconv.FormatBool(filter.Ended)},
		"kind":  {string(filter.Kind)}, "short": {filter.Short},
	}
	if !filter.ID.IsZero() {
		query.Set("id", filter.ID.String())
	}
	return list[regie.Token](ctx, c, "/api/v1/tokens", query, filter.After, cmp.Or(filter.Limit, math.MaxInt))
}

// AddToken implements dispatch.Identity.
func (c *Client) AddToken(ctx context.Context, in dispatch.TokenRequest) (out dispatch.MadeToken, err error) {
	if in.TokenID.IsZero() { // a repetition makes the same one
		in.TokenID = regie.NewID()
	}
	err = c.call(ctx, http.MethodPost, "/api/v1/tokens", in, &out)
	return out, err
}

// SetupLink implements dispatch.Identity.
func (c *Client) SetupLink(ctx context.Context) (out dispatch.SetupLink, err error) {
	err = c.call(ctx, http.MethodPost, "/api/v1/setup-links", nil, &out)
	return out, err
}

// RevokeTokens implements dispatch.Identity.
func (c *Client) RevokeTokens(ctx context.Context, in dispatch.RevokeTokensRequest) error {
	return c.call(ctx, http.MethodPost, "/api/v1/tokens/revoke", in, nil)
}
