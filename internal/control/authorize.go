package control

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
)

// everyCaller is the scope of operations that every caller may do.
const everyCaller regie.TokenScope = ""

// requiredScopes is the table of who may do what: the scope that an operation needs. An operation
// that is missing is refused to everybody.
var requiredScopes = map[string]regie.TokenScope{
	"presence.beat":       regie.ScopeChat,
	"presence.list":       everyCaller,
	"users.list":          everyCaller,
	"users.me":            everyCaller,
	"tokens.list":         regie.ScopeAdmin,
	"tokens.add":          regie.ScopeAdmin,
	"tokens.revoke":       regie.ScopeAdmin,
	"tokens.revoke_own":   everyCaller,
	"tokens.link_browser": regie.ScopeAdmin,
}

// authorize returns the caller of a context, who may do the operation. It returns CodeForbidden
// without a caller, and CodeMissingScope, with its name, where the caller lacks the scope.
func authorize(ctx context.Context, operation string) (*access.Caller, error) {
	scope, known := requiredScopes[operation]
	caller := access.From(ctx)
	switch {
	case caller == nil, !known:
		return nil, access.ErrNobody
	case scope != everyCaller && !caller.Has(scope):
		return nil, access.MissingScope(scope)
	}
	return caller, nil
}
