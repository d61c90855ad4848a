package app

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Users implements dispatch.Identity.
func (c *Conn) Users(ctx context.Context) ([]dispatch.UserView, error) {
	return on(ctx, c, func(control dispatch.Control) ([]dispatch.UserView, error) { return control.Users(ctx) })
}

// Me implements dispatch.Identity.
func (c *Conn) Me(ctx context.Context) (dispatch.Me, error) {
	return on(ctx, c, func(control dispatch.Control) (dispatch.Me, error) { return control.Me(ctx) })
}

// Tokens implements dispatch.Identity.
func (c *Conn) Tokens(ctx context.Context, filter store.TokenFilter) ([]regie.Token, error) {
	return on(ctx, c, func(control dispatch.Control) ([]regie.Token, error) { return control.Tokens(ctx, filter) })
}

// AddToken implements dispatch.Identity. Where the engine went after it had made the token, its id
// says so: the secret is lost, and never shown twice.
func (c *Conn) AddToken(ctx context.Context, in dispatch.TokenRequest) (dispatch.MadeToken, error) {
	if in.TokenID.IsZero() {
		in.TokenID = regie.NewID()
	}
	return on(ctx, c, func(control dispatch.Control) (dispatch.MadeToken, error) { return control.AddToken(ctx, in) })
}

// SetupLink implements dispatch.Identity.
func (c *Conn) SetupLink(ctx context.Context) (dispatch.SetupLink, error) {
	return on(ctx, c, func(control dispatch.Control) (dispatch.SetupLink, error) { return control.SetupLink(ctx) })
}

// RevokeTokens implements dispatch.Identity.
func (c *Conn) RevokeTokens(ctx context.Context, in dispatch.RevokeTokensRequest) error {
	return c.say(ctx, func(control dispatch.Control) error { return control.RevokeTokens(ctx, in) })
}
