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
	// UserID is whose; zero for everybody's.
	UserID regie.ID
	ID     regie.ID // of one token, in whatever state; zero for all that are selected
	// Short is the end of an id, or its beginning from eight digits on, as InboxFilter.Short.
	Short string
	Kind  regie.TokenKind // empty for all
	// Ended has those too that are expired or revoked.
	Ended bool
	// After selects what comes behind this place of the list, which has the oldest first; Limit is
	// how many at most, 0 for all.
	After Mark
	Limit int
}

// RevokeTokens is the transition that ends tokens, all of them or none: when it returns they open
// nothing any more, on any node.
type RevokeTokens struct {
	TokenIDs []regie.ID
	By       string
}
