package store

import "github.com/regie-run/regie"

// MaxTokens bounds the tokens of one user that are neither expired nor revoked.
const MaxTokens = 1000

// NewToken is the transition that stores a token (spec 11.2): ID, UserID, Kind, Name, Scopes,
// Workspaces, OnApproval, CreatedBy and ExpiresAt are read. Hash is that of its secret.
type NewToken struct {
	Token regie.Token
	Hash  regie.Hash
}

// TokenFilter selects tokens.
type TokenFilter struct {
	// UserID selects a user's tokens; zero selects all.
	UserID regie.ID
	ID     regie.ID        `query:"id" doc:"One token, in whatever state."`
	Short  string          `query:"short" doc:"The end of an id, or its beginning from eight digits on, in whatever state."`
	Kind   regie.TokenKind `query:"kind" enum:"api browser" doc:"Those of programs, or the logins of browsers; both where it is left out."`
	Ended  bool            `query:"ended" doc:"Those too that have expired or were revoked."`
	// After selects what comes behind this place of the list, which has the oldest first; Limit is
	// how many at most, 0 for all.
	After Mark `query:"cursor" list:"tokens" doc:"next_cursor of the page before."`
	Limit int  `query:"limit" min:"1" max:"1000" doc:"How many at most; 50 where it is left out."`
}

// RevokeTokens is the transition that ends tokens, all of them or none: when it returns they open
// nothing any more, on any node.
type RevokeTokens struct {
	TokenIDs []regie.ID
	By       string
}
