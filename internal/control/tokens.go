package control

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

const (
	// maxTokenName bounds a token's name in characters.
	maxTokenName = 100
	// maxTokenPlaces bounds the workspaces that a token is restricted to.
	maxTokenPlaces = 100
)

// SetupLink lets one browser in, once.
type SetupLink struct {
	URL string `json:"url"`
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
	// NeverExpires requests a token without an end.
	NeverExpires bool   `json:"never_expires,omitempty"`
	By           string `json:"by,omitempty"`
}

// TokenLife is the default lifetime of a token.
const TokenLife = 90 * 24 * time.Hour

// Ends returns the expiry of a token that is requested now; zero means never.
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

// Tokens are the API tokens and the logins of browsers (spec 11.2).
type Tokens struct {
	*core
	server atomic.Pointer[tokenServer] // the one that runs; nil without one
}

// tokenServer is what a running server does for tokens: it makes setup links, and ends what revoked
// tokens have open.
type tokenServer struct {
	setupLink func() string
	onRevoke  func()
}

// List returns tokens, the oldest first.
func (t *Tokens) List(ctx context.Context, filter store.TokenFilter) ([]regie.Token, error) {
	if _, err := t.authorizeAll(ctx, "list_tokens"); err != nil {
		return nil, err
	}
	return t.Store.Tokens(ctx, filter, time.Now())
}

// Add makes a token and returns its secret once. A repeated id is CodeConflict. Callers cannot
// grant more than they have: no further scope, no longer life.
func (t *Tokens) Add(ctx context.Context, in TokenRequest) (MadeToken, error) {
	caller, err := t.authorizeAll(ctx, "add_token")
	if err == nil {
		err = limitToCaller(caller, &in)
	}
	if err == nil {
		err = validateToken(&in)
	}
	if err != nil {
		return MadeToken{}, err
	}
	owner, err := t.Owner(ctx)
	if err != nil {
		return MadeToken{}, err
	}
	if in.TokenID.IsZero() {
		in.TokenID = regie.NewID()
	}
	secret := access.NewSecret()
	made, err := t.Store.CreateToken(ctx, store.NewToken{Hash: access.HashOf(secret), Token: regie.Token{
		ID: in.TokenID, UserID: owner.ID, Kind: regie.TokenAPI, Name: in.Name, Scopes: in.Scopes,
		Workspaces: in.Workspaces, OnApproval: in.OnApproval,
		CreatedBy: sanitize.Line(caller.By(in.By)), ExpiresAt: in.Ends(time.Now()),
	}})
	return MadeToken{Token: made, Secret: secret}, err
}

// limitToCaller refuses or lowers what the caller does not have.
func limitToCaller(caller *access.Caller, in *TokenRequest) error {
	for _, scope := range in.Scopes {
		if slices.Contains(regie.TokenScopes(), scope) && !caller.Has(scope) {
			return regie.Errorf(regie.CodeMissingScope,
				"a token can only grant its own scopes, and it does not have %s", string(scope))
		}
	}
	if caller.Via != access.ViaToken {
		return nil
	}
	ends, end := in.Ends(time.Now()), caller.Token.ExpiresAt
	if !end.IsZero() && (ends.IsZero() || ends.After(end)) {
		in.ExpiresAt, in.NeverExpires = end, false
	}
	if caller.Token.OnApproval == "deny" {
		in.OnApproval = "deny"
	}
	return nil
}

// validateToken checks a request and normalises it for the store.
func validateToken(in *TokenRequest) (err error) {
	in.Name = strings.Join(strings.Fields(sanitize.Strip(in.Name)), " ")
	switch {
	case in.Name == "":
		return regie.Errorf(regie.CodeBadRequest,
			"a token needs a name, which you need to revoke it")
	case utf8.RuneCountInString(in.Name) > maxTokenName:
		return regie.Errorf(regie.CodeBadRequest,
			"the name has more than %d characters", maxTokenName)
	case access.Looks(in.Name):
		return regie.Errorf(regie.CodeBadRequest,
			"the name contains a token: names are visible in lists")
	case in.Workspaces != nil && len(in.Workspaces) == 0: // whoever says none does not mean all
		return regie.Errorf(regie.CodeBadRequest,
			"the list of workspaces is empty: name those that the token sees, or leave workspaces out for all of them")
	case len(in.Workspaces) > maxTokenPlaces:
		return regie.Errorf(regie.CodeBadRequest,
			"there are %d workspaces, at most %d are allowed", len(in.Workspaces), maxTokenPlaces)
	case in.OnApproval != "" && in.OnApproval != "deny" && in.OnApproval != "park":
		return regie.Errorf(regie.CodeBadRequest,
			"%q is not a way to treat calls that need an approval: use deny or park", in.OnApproval)
	case in.NeverExpires && !in.ExpiresAt.IsZero():
		return regie.Errorf(regie.CodeBadRequest,
			"expires_at says when the token ends, and never_expires that it does not: send one of them")
	case !in.ExpiresAt.IsZero() && !in.ExpiresAt.After(time.Now()):
		return regie.Errorf(regie.CodeBadRequest, "a token cannot end at %s, which is in the past",
			in.ExpiresAt.UTC().Format(time.RFC3339))
	}
	in.Scopes, err = regie.ValidateScopes(in.Scopes)
	slices.SortFunc(in.Workspaces, func(a, b regie.ID) int { return slices.Compare(a[:], b[:]) })
	in.Workspaces = slices.Compact(in.Workspaces)
	return err
}

// LinkBrowser makes a link that lets one browser in, once, within a quarter of an hour; the link
// before ends. It returns CodeConflict where nothing is served to browsers. A browser may do
// everything, so no token makes a link.
func (t *Tokens) LinkBrowser(ctx context.Context) (SetupLink, error) {
	caller, err := t.authorize(ctx, "make_setup_link")
	if err != nil {
		return SetupLink{}, err
	}
	if caller.Via == access.ViaToken {
		return SetupLink{}, regie.Errorf(regie.CodeForbidden,
			"only the token of the data directory can log a browser in, because a browser can do everything")
	}
	server := t.server.Load()
	if server == nil {
		return SetupLink{}, regie.Errorf(regie.CodeConflict,
			"no web pages are served here: use regie serve")
	}
	return SetupLink{URL: server.setupLink()}, nil
}

// Revoke ends tokens, all or none. After it returns no node accepts them; open streams end within
// seconds. A caller may always revoke its own.
func (t *Tokens) Revoke(ctx context.Context, in RevokeTokensRequest) error {
	caller, err := t.authorize(ctx, "revoke_own_token")
	if err == nil && !slices.Equal(in.TokenIDs, []regie.ID{caller.Token.ID}) {
		caller, err = t.authorizeAll(ctx, "revoke_tokens")
	}
	if err != nil {
		return err
	}
	if len(in.TokenIDs) == 0 {
		return regie.Errorf(regie.CodeBadRequest, "the request names no token")
	}
	err = t.Store.RevokeTokens(ctx, store.RevokeTokens{TokenIDs: in.TokenIDs, By: sanitize.Line(caller.By(in.By))})
	if err != nil {
		return err
	}
	if server := t.server.Load(); server != nil {
		server.onRevoke()
	}
	return nil
}
