package access

import (
	"context"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// Caller is who asks.
type Caller struct {
	User regie.User
	Via  dispatch.Via
	// Token is the credential; it is zero for the token of the data directory, which opens
	// everything.
	Token regie.Token
}

// everything reports whether the caller is the owner of the data directory, or stands for the
// owner.
func (c *Caller) everything() bool { return c.Token.ID.IsZero() }

// Has reports whether the caller may do what a scope opens.
func (c *Caller) Has(scope regie.TokenScope) bool {
	return c.everything() || slices.Contains(c.Token.Scopes, scope)
}

// Began reports whether a session was begun with the caller's token.
func (c *Caller) Began(session *regie.Session) bool {
	return !c.everything() && session.TokenID == c.Token.ID
}

// Restricted reports whether the caller sees some workspaces only.
func (c *Caller) Restricted() bool { return len(c.Token.Workspaces) > 0 }

// Sees reports whether a workspace is the caller's.
func (c *Caller) Sees(workspace regie.ID) bool {
	return !c.Restricted() || slices.Contains(c.Token.Workspaces, workspace)
}

// Scopes are what the caller may do.
func (c *Caller) Scopes() []regie.TokenScope {
	if c.everything() {
		return regie.TokenScopes()
	}
	return c.Token.Scopes
}

// by is the caller's name in logs: the user, and with which token where it is a program; said is
// whom a client says it asks for.
func (c *Caller) by(said string) string {
	switch {
	case c.everything():
		return said
	case c.Via == dispatch.ViaBrowser:
		return c.User.Name
	}
	name := c.User.Name + " (" + string(c.Via) + " " + c.Token.Name + ")"
	if said != "" && said != c.User.Name {
		name += ": " + said
	}
	return name
}

// Require returns CodeMissingScope, with its name, where the caller of a context may not do what a
// scope opens, and CodeForbidden where nobody was let in.
func Require(ctx context.Context, scope regie.TokenScope) error {
	caller := From(ctx)
	switch {
	case caller == nil:
		return errNobody
	case !caller.Has(scope):
		return regie.Errorf(regie.CodeMissingScope, "this needs a token with the scope %s", string(scope))
	}
	return nil
}

var errNobody = regie.Errorf(regie.CodeForbidden, "nobody was let in here")

type callerKey struct{}

// With returns a context of a caller.
func With(ctx context.Context, caller *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// From returns the caller of a context, nil where nobody was let in.
func From(ctx context.Context) *Caller {
	caller, _ := ctx.Value(callerKey{}).(*Caller)
	return caller
}
