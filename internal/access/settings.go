package access

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// Limits implements dispatch.Settings.
func (c *confined) Limits(ctx context.Context) (dispatch.LimitSettings, error) {
	if From(ctx) == nil {
		return dispatch.LimitSettings{}, ErrNobody
	}
	return c.inner.Limits(ctx)
}

// SetLimits implements dispatch.Settings. Limits are those of all workspaces.
func (c *confined) SetLimits(ctx context.Context, in dispatch.LimitChanges) (dispatch.LimitSettings, error) {
	if err := c.allowed(ctx, regie.ScopeAdmin); err != nil {
		return dispatch.LimitSettings{}, err
	}
	if From(ctx).Restricted() {
		return dispatch.LimitSettings{}, regie.Errorf(regie.CodeForbidden,
			"this is about all workspaces, and the token is restricted to some")
	}
	in.By = From(ctx).By(in.By)
	return c.inner.SetLimits(ctx, in)
}

// Search implements dispatch.Searching.
func (c *confined) Search(ctx context.Context, in dispatch.SearchRequest) (dispatch.Found, error) {
	caller := From(ctx)
	switch {
	case caller == nil:
		return dispatch.Found{}, ErrNobody
	case !caller.Sees(in.WorkspaceID):
		return dispatch.Found{}, NotFound(in.WorkspaceID)
	}
	return c.inner.Search(ctx, in)
}

// Models implements dispatch.Searching.
func (c *confined) Models(ctx context.Context) ([]dispatch.ProviderModels, error) {
	return anybody(ctx, c.inner.Models)
}
