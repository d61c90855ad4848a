package app

import (
	"context"

	"github.com/regie-run/regie/internal/dispatch"
)

// Beat implements dispatch.Attendance.
func (c *Conn) Beat(ctx context.Context) (dispatch.Presence, error) {
	return on(ctx, c, func(control dispatch.Control) (dispatch.Presence, error) { return control.Beat(ctx) })
}

// Presence implements dispatch.Attendance.
func (c *Conn) Presence(ctx context.Context) ([]dispatch.Presence, error) {
	return on(ctx, c, func(control dispatch.Control) ([]dispatch.Presence, error) { return control.Presence(ctx) })
}
