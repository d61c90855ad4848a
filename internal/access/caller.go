package access

import (
	"context"
	"slices"

	"github.com/regie-run/regie"
)

// Via says by what a caller was let in.
type Via string

// The ways in.
const (
	ViaSocket  Via = "socket"  // the engine's own socket: this machine's user
	ViaFile    Via = "file"    // the token of the data directory
	ViaToken   Via = "token"   // an API token
	ViaBrowser Via = "browser" // a browser's cookie
	ViaVisitor Via = "visitor" // a widget's frame
)

// Caller is who asks.
type Caller struct {
	User regie.User
	Via  Via
	// Token is the credential; it is zero for the token of the data directory, which opens
	// everything.
	Token regie.Token
	// Surface is the scope of the interface for programs (MCP, /v1) through which the caller came;
	// empty for Regie's own.
	Surface regie.TokenScope
	// Visitor is set for a visitor of a widget, who has no scope and one session.
	Visitor *Visitor
}

// Visitor is a visitor of a widget.
type Visitor struct {
	Widget string
	// Session is the only one that the visitor may read and write; zero before the first message.
	Session regie.ID
}

// IsOwner reports whether the caller is, or acts for, the owner of the data directory, who may do
// everything.
func (c *Caller) IsOwner() bool { return c.Token.ID.IsZero() }

// Has reports whether the caller may do what a scope opens.
func (c *Caller) Has(scope regie.TokenScope) bool {
	return c.IsOwner() || slices.Contains(c.Token.Scopes, scope)
}

// Began reports whether a session was begun with the caller's token.
func (c *Caller) Began(session *regie.Session) bool {
	return !c.IsOwner() && session.TokenID == c.Token.ID
}

// Restricted reports whether the caller sees some workspaces only.
func (c *Caller) Restricted() bool { return len(c.Token.Workspaces) > 0 }

// Sees reports whether a workspace is the caller's.
func (c *Caller) Sees(workspace regie.ID) bool {
	return !c.Restricted() || slices.Contains(c.Token.Workspaces, workspace)
}

// Scopes are what the caller may do.
func (c *Caller) Scopes() []regie.TokenScope {
	if c.IsOwner() {
		return regie.TokenScopes()
	}
	return c.Token.Scopes
}

// By is the caller's name in logs: the user, and the token of a program; said is the person for
// whom a client says it asks.
func (c *Caller) By(said string) string {
	switch {
	case c.IsOwner():
		return said
	case c.Via == ViaBrowser:
		return c.User.Name
	case c.Visitor != nil:
		return "a visitor of " + c.Visitor.Widget
	}
	name := c.User.Name + " (" + string(c.Via) + " " + c.Token.Name + ")"
	if said != "" && said != c.User.Name {
		name += ": " + said
	}
	return name
}

// MissingScope is the error of a caller who lacks a scope.
func MissingScope(scope regie.TokenScope) error {
	return regie.Errorf(regie.CodeMissingScope, "this requires a token with the scope %s", string(scope))
}

// ErrRestricted is returned for what is about all workspaces, to a caller who sees some.
var ErrRestricted = regie.Errorf(regie.CodeForbidden,
	"this concerns all workspaces, and the token is restricted to some")

// ErrNoToken is returned to a request without a token that can be read.
var ErrNoToken = regie.Errorf(regie.CodeNoToken,
	"the request has no token, or a wrong one: send it as Authorization: Bearer …")

// ErrNobody is the error of a request without a caller.
var ErrNobody = regie.Errorf(regie.CodeForbidden, "the request has no valid login")

type callerKey struct{}

// With returns a context of a caller.
func With(ctx context.Context, caller *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// AsOwner returns a context of this machine's user, who may do everything.
func AsOwner(ctx context.Context) context.Context { return With(ctx, owner) }

var owner = &Caller{Via: ViaSocket} // one for all of the owner's streams, each of which holds it

// From returns the caller of a context, nil without one.
func From(ctx context.Context) *Caller {
	caller, _ := ctx.Value(callerKey{}).(*Caller)
	return caller
}
