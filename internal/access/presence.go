package access

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// Beat implements dispatch.Attendance. It is a word of a person's, so that a program that only
// looks cannot say it.
func (c *confined) Beat(ctx context.Context) (dispatch.Presence, error) {
	if err := Require(ctx, regie.ScopeChat); err != nil {
		return dispatch.Presence{}, err
	}
	return c.inner.Beat(ctx)
}

// Presence implements dispatch.Attendance.
func (c *confined) Presence(ctx context.Context) ([]dispatch.Presence, error) {
	return anybody(ctx, c.inner.Presence)
}
