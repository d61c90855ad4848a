package app

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

const (
	// maxTokenName bounds a token's name in characters.
	maxTokenName = 100
	// maxTokenPlaces bounds the workspaces that a token is restricted to.
	maxTokenPlaces = 100
)

// user is the one user of this installation (spec 11.2).
func (l *local) user(ctx context.Context) (regie.User, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.own(ctx)
	return l.owner, err
}

// Users implements dispatch.Identity.
func (l *local) Users(ctx context.Context) ([]dispatch.UserView, error) {
	owner, err := l.user(ctx)
	return []dispatch.UserView{{User: owner, Role: dispatch.RoleOwner}}, err
}

// Me implements dispatch.Identity: whoever asks the engine itself is its user.
func (l *local) Me(ctx context.Context) (dispatch.Me, error) {
	owner, err := l.user(ctx)
	if err != nil {
		return dispatch.Me{}, err
	}
	places, err := l.store.Workspaces(ctx)
	return dispatch.Me{
		User: dispatch.UserView{User: owner, Role: dispatch.RoleOwner}, Via: dispatch.ViaSocket,
		Scopes: regie.TokenScopes(), Workspaces: places,
	}, err
}

// Tokens implements dispatch.Identity.
func (l *local) Tokens(ctx context.Context, filter store.TokenFilter) ([]regie.Token, error) {
	return l.store.Tokens(ctx, filter, time.Now())
}

// AddToken implements dispatch.Identity.
func (l *local) AddToken(ctx context.Context, in dispatch.TokenRequest) (dispatch.MadeToken, error) {
	if err := l.mayStore(); err != nil {
		return dispatch.MadeToken{}, err
	}
	name := strings.Join(strings.Fields(plain.Strip(in.Name)), " ")
	switch {
	case name == "":
		return dispatch.MadeToken{}, regie.Errorf(regie.CodeBadRequest,
			"a token needs a name, by which it is known when it is to be revoked")
	case utf8.RuneCountInString(name) > maxTokenName:
		return dispatch.MadeToken{}, regie.Errorf(regie.CodeBadRequest,
			"the name has more than %d characters", maxTokenName)
	case access.Looks(name):
		return dispatch.MadeToken{}, regie.Errorf(regie.CodeBadRequest,
			"the name holds a token: names are shown to whoever may list them")
	case in.Workspaces != nil && len(in.Workspaces) == 0: // whoever says none does not mean all
		return dispatch.MadeToken{}, regie.Errorf(regie.CodeBadRequest,
			"the list of workspaces is empty: name those that the token sees, or leave workspaces out for all of them")
	case len(in.Workspaces) > maxTokenPlaces:
		return dispatch.MadeToken{}, regie.Errorf(regie.CodeBadRequest,
			"there are %d workspaces, at most %d are allowed", len(in.Workspaces), maxTokenPlaces)
	case in.OnApproval != "" && in.OnApproval != "deny" && in.OnApproval != "park":
		return dispatch.MadeToken{}, regie.Errorf(regie.CodeBadRequest,
			"%q does not say what becomes of what needs an approval: use deny or park", in.OnApproval)
	case in.NeverExpires && !in.ExpiresAt.IsZero():
		return dispatch.MadeToken{}, regie.Errorf(regie.CodeBadRequest,
			"expires_at says when the token ends, and never_expires that it does not: send one of them")
	case !in.ExpiresAt.IsZero() && !in.ExpiresAt.After(time.Now()):
		return dispatch.MadeToken{}, regie.Errorf(regie.CodeBadRequest, "a token that ends at %s has ended already",
			in.ExpiresAt.UTC().Format(time.RFC3339))
	case in.ExpiresAt.Year() > 9999:
		return dispatch.MadeToken{}, regie.Errorf(regie.CodeBadRequest,
			"nothing lasts until the year %d", in.ExpiresAt.Year())
	}
	scopes, err := regie.ValidateScopes(in.Scopes)
	if err != nil {
		return dispatch.MadeToken{}, err
	}
	owner, err := l.user(ctx)
	if err != nil {
		return dispatch.MadeToken{}, err
	}
	if in.TokenID.IsZero() {
		in.TokenID = regie.NewID()
	}
	slices.SortFunc(in.Workspaces, func(a, b regie.ID) int { return slices.Compare(a[:], b[:]) })
	secret := access.NewSecret()
	made, err := l.store.CreateToken(ctx, store.NewToken{Hash: access.HashOf(secret), Token: regie.Token{
		ID: in.TokenID, UserID: owner.ID, Kind: regie.TokenAPI, Name: name, Scopes: scopes,
		Workspaces: slices.Compact(in.Workspaces), OnApproval: in.OnApproval,
		CreatedBy: plain.Line(in.By), ExpiresAt: in.Ends(time.Now()),
	}})
	if err != nil {
		return dispatch.MadeToken{}, err
	}
	return dispatch.MadeToken{Token: made, Secret: secret}, nil
}

// SetupLink implements dispatch.Identity.
func (l *local) SetupLink(context.Context) (dispatch.SetupLink, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.setupLink == nil {
		return dispatch.SetupLink{}, regie.Errorf(regie.CodeConflict,
			"nothing is served to browsers from here: regie serve does")
	}
	return dispatch.SetupLink{URL: l.setupLink()}, nil
}

// RevokeTokens implements dispatch.Identity.
func (l *local) RevokeTokens(ctx context.Context, in dispatch.RevokeTokensRequest) error {
	if err := l.mayStore(); err != nil {
		return err
	}
	if len(in.TokenIDs) == 0 {
		return regie.Errorf(regie.CodeBadRequest, "the request names no token")
	}
	if err := l.store.RevokeTokens(ctx, store.RevokeTokens{TokenIDs: in.TokenIDs, By: plain.Line(in.By)}); err != nil {
		return err
	}
	l.mu.Lock()
	revoked := l.revoked
	l.mu.Unlock()
	if revoked != nil {
		revoked()
	}
	return nil
}
