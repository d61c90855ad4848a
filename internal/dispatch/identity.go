package dispatch

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Identity is the part of Control that is about who may ask (spec 11.2).
type Identity interface {
	// Users lists the users of this installation, Me says who asks and what for.
	Users(ctx context.Context) ([]UserView, error)
	Me(ctx context.Context) (Me, error)
	// Tokens lists tokens, the oldest first. AddToken makes one, and shows its secret for the only
	// time: the same id again is CodeConflict.
	Tokens(ctx context.Context, filter store.TokenFilter) ([]regie.Token, error)
	AddToken(ctx context.Context, in TokenRequest) (MadeToken, error)
	// RevokeTokens ends tokens, all of them or none: when it returns they let nobody in any more,
	// on any node; what they have open ends within seconds.
	RevokeTokens(ctx context.Context, in RevokeTokensRequest) error
	// SetupLink makes a link that lets one browser in, once, within a quarter of an hour; the one
	// before ends. It returns CodeConflict where nothing is served to browsers.
	SetupLink(ctx context.Context) (SetupLink, error)
}

// SetupLink lets one browser in, once.
type SetupLink struct {
	URL string `json:"url"`
}

// Role is what a user is in an installation or a workspace (spec 11.2).
type Role string

// RoleOwner is the role of the one user of an installation that is nobody else's.
const RoleOwner Role = "owner"

// UserView is a user as others see it.
type UserView struct {
	regie.User
	Role Role `json:"role"`
}

// Via says by what somebody was let in.
type Via string

// The ways in.
const (
	ViaSocket  Via = "socket"  // the engine's own socket: this machine's user
	ViaFile    Via = "file"    // the token of the data directory
	ViaToken   Via = "token"   // an API token
	ViaBrowser Via = "browser" // a browser's cookie
)

// Me is who asks.
type Me struct {
	User UserView `json:"user"`
	Via  Via      `json:"via"`
	// Token is the API token or the browser's login; it is not there for the others.
	Token  *regie.Token       `json:"token,omitempty"`
	Scopes []regie.TokenScope `json:"scopes"`
	// Workspaces are those that are seen.
	Workspaces []regie.Workspace `json:"workspaces"`
}

// TokenRequest makes an API token.
type TokenRequest struct {
	// TokenID is the token's own id; left out, it is new.
	TokenID regie.ID           `json:"token_id,omitzero"`
	Name    string             `json:"name" required:"true"`
	Scopes  []regie.TokenScope `json:"scopes" required:"true"`
	// Workspaces are those that it sees; left out, all of them, those to come too. A list without
	// any is refused.
	Workspaces []regie.ID `json:"workspaces,omitzero"`
	// OnApproval is deny or park, for OpenAI-compatible clients (decision 35); left out, it is as
	// regie serve says.
	OnApproval string `json:"on_approval,omitempty"`
	// ExpiresAt is when it ends; left out, after 90 days.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// NeverExpires says that it does not end by itself.
	NeverExpires bool   `json:"never_expires,omitempty"`
	By           string `json:"by,omitempty"`
}

// TokenLife is how long a token lives where nobody says.
const TokenLife = 90 * 24 * time.Hour

// Ends is when a token ends that is asked for now; zero: never.
func (r *TokenRequest) Ends(now time.Time) time.Time {
	switch {
	case r.NeverExpires:
		return time.Time{}
	case r.ExpiresAt.IsZero():
		return now.Add(TokenLife).UTC()
	}
	return r.ExpiresAt.UTC()
}

// MadeToken is a token with its secret, which is nowhere else.
type MadeToken struct {
	Token  regie.Token `json:"token"`
	Secret string      `json:"secret"`
}

// RevokeTokensRequest ends tokens, and the logins of browsers. Ending what has ended changes
// nothing.
type RevokeTokensRequest struct {
	TokenIDs []regie.ID `json:"token_ids" required:"true"`
	By       string     `json:"by,omitempty"`
}
