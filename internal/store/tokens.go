package store

import (
	"time"

	"github.com/regie-run/regie"
)

// MaxTokens bounds the tokens of one user that are neither expired nor revoked.
const MaxTokens = 1000

// NewToken is the transition that stores a token (spec 11.2). It reads ID, UserID, Kind, Name,
// Scopes, Workspaces, OnApproval, CreatedBy and ExpiresAt. Hash is the hash of its secret.
type NewToken struct {
	Token regie.Token
	Hash  regie.Hash
}

// TokenFilter selects tokens.
type TokenFilter struct {
	// UserID is the owner; zero for all users.
	UserID regie.ID
	ID     regie.ID        `query:"id" doc:"One token, in whatever state."`
	Short  string          `query:"short" doc:"The end of an id, or its beginning from eight digits on, in whatever state."`
	Kind   regie.TokenKind `query:"kind" enum:"api browser" doc:"Those of programs, or the logins of browsers; both where it is left out."`
	Ended  bool            `query:"ended" doc:"Those too that have expired or were revoked."`
	// After is the cursor: the list continues behind it, oldest first. Limit is the page size, 0
	// for all.
	After Mark `query:"cursor" list:"tokens" doc:"next_cursor of the page before."`
	Limit int  `query:"limit" min:"1" max:"1000" doc:"How many at most; 50 where it is left out."`
}

// RevokeTokens is the transition that revokes tokens, all of them or none. Once it returns they
// open nothing, on any node.
type RevokeTokens struct {
	TokenIDs []regie.ID
	By       string
}

// Visitor is a visitor of a widget (spec 10.3): the hash of a secret that opens one session, which
// the visitor's first message makes.
type Visitor struct {
	SessionID regie.ID
	Widget    string
	Hash      regie.Hash
	ExpiresAt time.Time
}
