package client

import (
	"cmp"
	"context"
	"math"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/store"
)

// The types of tokens, for programs outside of this module (see types.go).
type (
	// MadeToken is a token with its secret, which is shown once.
	MadeToken = control.MadeToken
	// SetupLink lets one browser in, once.
	SetupLink = control.SetupLink
	// RevokeTokensRequest ends tokens, all of them or none.
	RevokeTokensRequest = control.RevokeTokensRequest
	// TokenFilter chooses tokens.
	TokenFilter = store.TokenFilter
	// TokenRequest asks for a token.
	TokenRequest = control.TokenRequest
)

// Tokens are the API tokens and the logins of browsers, as control.Tokens.
type Tokens struct{ client *Client }

// List returns tokens, the oldest first.
func (t *Tokens) List(ctx context.Context, filter store.TokenFilter) ([]regie.Token, error) {
	limit := cmp.Or(filter.Limit, math.MaxInt)
	return list[regie.Token](ctx, t.client, "/api/v1/tokens", filter, limit)
}

// Add makes a token and returns its secret, which is shown this once.
func (t *Tokens) Add(ctx context.Context, in control.TokenRequest) (control.MadeToken, error) {
	if in.TokenID.IsZero() { // a repetition makes the same one
		in.TokenID = regie.NewID()
	}
	return ask[control.MadeToken](ctx, t.client, http.MethodPost, "/api/v1/tokens", in)
}

// LinkBrowser makes a link that lets one browser in, once.
func (t *Tokens) LinkBrowser(ctx context.Context) (control.SetupLink, error) {
	return ask[control.SetupLink](ctx, t.client, http.MethodPost, "/api/v1/setup-links", nil)
}

// Revoke ends tokens, all of them or none.
func (t *Tokens) Revoke(ctx context.Context, in control.RevokeTokensRequest) error {
	return t.client.call(ctx, http.MethodPost, "/api/v1/tokens/revoke", in, nil)
}
