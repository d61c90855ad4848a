package regie

import (
	"slices"
	"strings"
	"time"
)

// TokenScope is a part of what a server does that a token may open (spec 11.2). A token has those
// that it was given: none implies another.
type TokenScope string

// The scopes.
const (
	ScopeRead        TokenScope = "read"        // lists, logs, streams, queries of a workspace
	ScopeChat        TokenScope = "chat"        // sessions, messages, control words, undo
	ScopeApprove     TokenScope = "approve"     // decisions, answers, and what allows calls beforehand
	ScopeAdmin       TokenScope = "admin"       // tokens, browsers, rules, removal, the cache, undo by force
	ScopeCompletions TokenScope = "completions" // the OpenAI-compatible endpoint
	ScopeMCP         TokenScope = "mcp"         // the MCP server
	ScopeMetrics     TokenScope = "metrics"     // what Prometheus reads
)

// TokenScopes are all of them, in their order.
func TokenScopes() []TokenScope {
	return []TokenScope{ScopeRead, ScopeChat, ScopeApprove, ScopeAdmin, ScopeCompletions, ScopeMCP, ScopeMetrics}
}

// ValidateScopes returns the scopes in order, each once. It returns CodeBadRequest for an empty
// list and for an unknown scope.
func ValidateScopes(scopes []TokenScope) ([]TokenScope, error) {
	var out, known []TokenScope = nil, TokenScopes()
	for _, scope := range scopes {
		if !slices.Contains(known, scope) {
			return nil, Errorf(CodeBadRequest, "%q is not a token scope: use %s", string(scope), ScopeWords(known))
		}
	}
	for _, scope := range known {
		if slices.Contains(scopes, scope) {
			out = append(out, scope)
		}
	}
	if len(out) == 0 {
		return nil, Errorf(CodeBadRequest, "a token needs a scope: use %s", ScopeWords(known))
	}
	return out, nil
}

// ScopeWords are scopes as people read and write them.
func ScopeWords(scopes []TokenScope) string {
	words := make([]string, 0, len(scopes))
	for _, scope := range scopes {
		words = append(words, string(scope))
	}
	return strings.Join(words, ", ")
}

// TokenKind says what shows a token.
type TokenKind string

// The kinds.
const (
	TokenAPI     TokenKind = "api"     // a program, as bearer
	TokenBrowser TokenKind = "browser" // a browser, as cookie: one for each that a setup link let in
)

// TokenState is the state of a token at a moment.
type TokenState string

// The states; only an active token opens anything.
const (
	TokenActive  TokenState = "ACTIVE"
	TokenExpired TokenState = "EXPIRED"
	TokenRevoked TokenState = "REVOKED"
)

// Token is a credential of a user (spec 11.2). Its secret is shown once, when it is made; what is
// stored is the secret's hash.
type Token struct {
	ID     ID           `json:"id"`
	UserID ID           `json:"user_id"`
	Kind   TokenKind    `json:"kind"`
	Name   string       `json:"name"`
	Scopes []TokenScope `json:"scopes"`
	// Workspaces are those that the token sees; without any it sees all.
	Workspaces []ID `json:"workspaces,omitempty"`
	// OnApproval says what becomes of what an OpenAI-compatible client needs an approval for: deny,
	// park, or nothing, which is the server's own (decision 35).
	OnApproval string    `json:"on_approval,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	CreatedBy  string    `json:"created_by,omitempty"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"` // zero: it does not expire
	// LastUsedAt is when it was last used, give or take ten minutes.
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	RevokedAt  time.Time `json:"revoked_at,omitzero"`
	RevokedBy  string    `json:"revoked_by,omitempty"`
}

// StateAt returns the state of the token at a moment.
func (t *Token) StateAt(now time.Time) TokenState {
	switch {
	case !t.RevokedAt.IsZero():
		return TokenRevoked
	case !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt):
		return TokenExpired
	default:
		return TokenActive
	}
}
