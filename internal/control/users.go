package control

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
)

// Role is what a user is in an installation or a workspace (spec 11.2).
type Role string

// RoleOwner is the role of the one user of a single-user installation.
const RoleOwner Role = "owner"

// UserView is a user as others see it.
type UserView struct {
	regie.User
	Role Role `json:"role"`
}

// Me is the caller.
type Me struct {
	User UserView   `json:"user"`
	Via  access.Via `json:"via"`
	// Token is the API token or the browser's login; it is not there for the others.
	Token  *regie.Token       `json:"token,omitempty"`
	Scopes []regie.TokenScope `json:"scopes"`
	// Workspaces are those that the caller sees.
	Workspaces []regie.Workspace `json:"workspaces"`
}

// Users are the users of this installation (spec 11.2).
type Users struct{ *core }

// List returns the users.
func (u *Users) List(ctx context.Context) ([]UserView, error) {
	if _, err := u.authorize(ctx, "list_users"); err != nil {
		return nil, err
	}
	owner, err := u.Owner(ctx)
	return []UserView{{User: owner, Role: RoleOwner}}, err
}

// Me returns the caller, and what the caller may do.
func (u *Users) Me(ctx context.Context) (Me, error) {
	caller, err := u.authorize(ctx, "show_me")
	if err != nil {
		return Me{}, err
	}
	out := Me{User: UserView{User: caller.User, Role: RoleOwner}, Via: caller.Via, Scopes: caller.Scopes()}
	if !caller.IsOwner() {
		out.Token = new(caller.Token)
	} else if out.User.User, err = u.Owner(ctx); err != nil {
		return Me{}, err
	}
	out.Workspaces, err = u.visible(ctx, caller)
	return out, err
}
