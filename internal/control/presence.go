package control

import (
	"context"

	"github.com/regie-run/regie/internal/dispatch"
)

// PresenceService says which people are there (spec 5.4).
type PresenceService struct{ *core }

// Beat counts a heartbeat of the caller's user, who is there for some minutes. Streams need none,
// except those of API tokens, which programs open.
func (p *PresenceService) Beat(ctx context.Context) (dispatch.Presence, error) {
	if _, err := p.authorize(ctx, "beat"); err != nil {
		return dispatch.Presence{}, err
	}
	user, err := p.Owner(ctx)
	if err != nil {
		return dispatch.Presence{}, err
	}
	present := p.Present
	present.Beat(ctx, user.ID)
	out, err := present.Of(ctx, user.ID)
	out.User = user.Name
	return out, err
}

// List returns the users who are there, and those who were within 24 hours.
func (p *PresenceService) List(ctx context.Context) ([]dispatch.Presence, error) {
	if _, err := p.authorize(ctx, "list_presence"); err != nil {
		return nil, err
	}
	out, err := p.Present.All(ctx)
	for i := range out {
		if err == nil {
			out[i].User, err = p.Store.UserName(ctx, out[i].UserID)
		}
	}
	return out, err
}
