package client

import (
	"cmp"
	"context"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// The types of sessions, for programs outside of this module (see types.go).
type (
	// ForkRequest forks a session.
	ForkRequest = dispatch.ForkRequest
	// MessagesRequest names a part of a session's thread.
	MessagesRequest = dispatch.MessagesRequest
	// ReadRequest says how far the person has read a session; it never goes back.
	ReadRequest = dispatch.ReadRequest
	// RemoveRequest removes a session.
	RemoveRequest = dispatch.RemoveRequest
	// SessionChange changes one thing of a session.
	SessionChange = dispatch.SessionChange
	// Replay is what running a stored round once more gave (invariant 17).
	Replay = dispatch.Replay
	// Forked is the answer to a Fork.
	Forked = store.Forked
	// LogFilter selects logs.
	LogFilter = store.LogFilter
	// LogReport says of one log whether it is what was written (spec 11.4).
	LogReport = store.LogReport
	// MessageView is a message with its place in the log and the calls that it owns.
	MessageView = store.MessageView
	// Removed is the answer to a Remove.
	Removed = store.Removed
	// SessionExport is all that a person can check of a session (spec 10.3).
	SessionExport = store.SessionExport
	// SessionFilter selects sessions; those that were removed are never among them.
	SessionFilter = store.SessionFilter
	// SessionSummary is one line of sessions list (spec 10.1).
	SessionSummary = store.SessionSummary
	// SessionView is a session with its thread (spec 10.1 sessions show).
	SessionView = store.SessionView
)

// Sessions lists sessions, the one where something happened last first.
func (c *Client) Sessions(ctx context.Context, f store.SessionFilter) ([]store.SessionSummary, error) {
	return list[store.SessionSummary](ctx, c, "/api/v1/sessions", f, cmp.Or(f.Limit, 1000))
}

// Messages returns a part of a session's thread, in its order.
func (c *Client) Messages(ctx context.Context, in dispatch.MessagesRequest) ([]store.MessageView, error) {
	in.Limit = cmp.Or(in.Limit, 1000)
	return all[store.MessageView](ctx, c, "/api/v1/sessions/"+in.SessionID.String()+"/messages?"+queryOf(in))
}

// Session returns a session with its thread.
func (c *Client) Session(ctx context.Context, session regie.ID) (store.SessionView, error) {
	return ask[store.SessionView](ctx, c, http.MethodGet, "/api/v1/sessions/"+session.String(), nil)
}

// Fork copies a session's thread up to a point into a new session (decision 17). Files are not
// forked.
func (c *Client) Fork(ctx context.Context, in dispatch.ForkRequest) (store.Forked, error) {
	if in.SessionID.IsZero() { // a repetition makes the same one
		in.SessionID = regie.NewID()
	}
	return ask[store.Forked](ctx, c, http.MethodPost, "/api/v1/sessions/"+in.From.String()+"/fork", in)
}

// Remove erases what a session held; the chain of its log stays.
func (c *Client) Remove(ctx context.Context, in dispatch.RemoveRequest) (store.Removed, error) {
	return ask[store.Removed](ctx, c, http.MethodDelete, "/api/v1/sessions/"+in.SessionID.String()+"?"+queryOf(in),
		nil)
}

// ChangeSession gives a session another name or mode, or closes it.
func (c *Client) ChangeSession(ctx context.Context, in dispatch.SessionChange) error {
	return c.call(ctx, http.MethodPatch, "/api/v1/sessions/"+in.SessionID.String(), in, nil)
}

// MarkRead says how far the person has read (decision 45).
func (c *Client) MarkRead(ctx context.Context, in dispatch.ReadRequest) error {
	return c.call(ctx, http.MethodPut, "/api/v1/sessions/"+in.SessionID.String()+"/read", in, nil)
}

// Export returns all that a person can check of a session.
func (c *Client) Export(ctx context.Context, session regie.ID) (store.SessionExport, error) {
	return ask[store.SessionExport](ctx, c, http.MethodGet, "/api/v1/sessions/"+session.String()+"/export", nil)
}

// Verify checks the logs that a filter selects (spec 11.4).
func (c *Client) Verify(ctx context.Context, f store.LogFilter) ([]store.LogReport, error) {
	return all[store.LogReport](ctx, c, "/api/v1/verify?"+queryOf(f))
}

// Replay runs a stored round once more from the store alone and compares what it would ask of the
// model.
func (c *Client) Replay(ctx context.Context, round regie.ID) (dispatch.Replay, error) {
	return ask[dispatch.Replay](ctx, c, http.MethodGet, "/api/v1/rounds/"+round.String()+"/replay", nil)
}

// NewSession makes a session without a message.
func (c *Client) NewSession(ctx context.Context, in dispatch.SessionRequest) (regie.Session, error) {
	if in.SessionID.IsZero() { // a repetition makes the same one
		in.SessionID = regie.NewID()
	}
	return ask[regie.Session](ctx, c, http.MethodPost, "/api/v1/sessions", in)
}

// Prompt returns what would be sent to a session's model now, or what was sent in a stored model
// call, byte for byte (decision 14).
func (c *Client) Prompt(ctx context.Context, in dispatch.PromptRequest) (dispatch.Prompt, error) {
	return ask[dispatch.Prompt](ctx, c, http.MethodGet, "/api/v1/prompt?"+queryOf(in), nil)
}
