package app

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Sessions implements dispatch.Sessions.
func (c *Conn) Sessions(ctx context.Context, filter store.SessionFilter) ([]store.SessionSummary, error) {
	return on(ctx, c, func(control dispatch.Control) ([]store.SessionSummary, error) {
		return control.Sessions(ctx, filter)
	})
}

// Session implements dispatch.Sessions.
func (c *Conn) Session(ctx context.Context, session regie.ID) (store.SessionView, error) {
	return on(ctx, c, func(control dispatch.Control) (store.SessionView, error) {
		return control.Session(ctx, session)
	})
}

// Messages implements dispatch.Sessions.
func (c *Conn) Messages(ctx context.Context, in dispatch.MessagesRequest) ([]store.MessageView, error) {
	return on(ctx, c, func(control dispatch.Control) ([]store.MessageView, error) { return control.Messages(ctx, in) })
}

// Fork implements dispatch.Sessions. The new session's id makes asking again harmless.
func (c *Conn) Fork(ctx context.Context, in dispatch.ForkRequest) (store.Forked, error) {
	if in.SessionID.IsZero() {
		in.SessionID = regie.NewID()
	}
	return on(ctx, c, func(control dispatch.Control) (store.Forked, error) { return control.Fork(ctx, in) })
}

// Remove implements dispatch.Sessions.
func (c *Conn) Remove(ctx context.Context, in dispatch.RemoveRequest) (store.Removed, error) {
	return on(ctx, c, func(control dispatch.Control) (store.Removed, error) { return control.Remove(ctx, in) })
}

// Rename implements dispatch.Sessions.
func (c *Conn) Rename(ctx context.Context, in dispatch.RenameRequest) error {
	return c.say(ctx, func(control dispatch.Control) error { return control.Rename(ctx, in) })
}

// MarkRead implements dispatch.Sessions.
func (c *Conn) MarkRead(ctx context.Context, in dispatch.ReadRequest) error {
	return c.say(ctx, func(control dispatch.Control) error { return control.MarkRead(ctx, in) })
}

// Export implements dispatch.Sessions.
func (c *Conn) Export(ctx context.Context, session regie.ID) (store.SessionExport, error) {
	return on(ctx, c, func(control dispatch.Control) (store.SessionExport, error) {
		return control.Export(ctx, session)
	})
}

// Verify implements dispatch.Sessions.
func (c *Conn) Verify(ctx context.Context, filter store.LogFilter) ([]store.LogReport, error) {
	return on(ctx, c, func(control dispatch.Control) ([]store.LogReport, error) { return control.Verify(ctx, filter) })
}

// Replay implements dispatch.Sessions.
func (c *Conn) Replay(ctx context.Context, round regie.ID) (dispatch.Replay, error) {
	return on(ctx, c, func(control dispatch.Control) (dispatch.Replay, error) { return control.Replay(ctx, round) })
}

// Workspaces implements dispatch.Places.
func (c *Conn) Workspaces(ctx context.Context) ([]regie.Workspace, error) {
	return on(ctx, c, func(control dispatch.Control) ([]regie.Workspace, error) { return control.Workspaces(ctx) })
}

// OpenWorkspace implements dispatch.Places.
func (c *Conn) OpenWorkspace(ctx context.Context, in dispatch.WorkspaceRequest) (regie.Workspace, error) {
	return on(ctx, c, func(control dispatch.Control) (regie.Workspace, error) { return control.OpenWorkspace(ctx, in) })
}

// NewSession implements dispatch.Places. The session's id makes asking again harmless.
func (c *Conn) NewSession(ctx context.Context, in dispatch.SessionRequest) (regie.Session, error) {
	if in.SessionID.IsZero() {
		in.SessionID = regie.NewID()
	}
	return on(ctx, c, func(control dispatch.Control) (regie.Session, error) { return control.NewSession(ctx, in) })
}

// Agents implements dispatch.Places.
func (c *Conn) Agents(ctx context.Context) ([]dispatch.AgentView, error) {
	return on(ctx, c, func(control dispatch.Control) ([]dispatch.AgentView, error) { return control.Agents(ctx) })
}

// Tools implements dispatch.Places.
func (c *Conn) Tools(ctx context.Context) ([]regie.ToolDefinition, error) {
	return on(ctx, c, func(control dispatch.Control) ([]regie.ToolDefinition, error) { return control.Tools(ctx) })
}

// Providers implements dispatch.Places.
func (c *Conn) Providers(ctx context.Context) ([]dispatch.ProviderView, error) {
	return on(ctx, c, func(control dispatch.Control) ([]dispatch.ProviderView, error) { return control.Providers(ctx) })
}

// Query implements dispatch.Places.
func (c *Conn) Query(ctx context.Context, in dispatch.QueryRequest) (dispatch.QueryResult, error) {
	return on(ctx, c, func(control dispatch.Control) (dispatch.QueryResult, error) { return control.Query(ctx, in) })
}
