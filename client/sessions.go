package client

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

func selected(root, short string, id regie.ID) url.Values {
	query := url.Values{"root": {root}, "short": {short}}
	if !id.IsZero() {
		query.Set("id", id.String())
	}
	return query
}

// Sessions implements dispatch.Sessions.
func (c *Client) Sessions(ctx context.Context, f store.SessionFilter) ([]store.SessionSummary, error) {
	query := selected(f.Root, f.Short, f.ID)
	if f.API {
		query.Set("api", "true")
	}
	if f.Type != "" {
		query.Set("type", string(f.Type))
	}
	return list[store.SessionSummary](ctx, c, "/api/v1/sessions", query, f.Before, cmp.Or(f.Limit, 1000))
}

// Messages implements dispatch.Sessions.
func (c *Client) Messages(ctx context.Context, in dispatch.MessagesRequest) ([]store.MessageView, error) {
	query := url.Values{"after": {strconv.FormatInt(in.After, 10)}, "limit": {strconv.Itoa(cmp.Or(in.Limit, 1000))}}
	if in.Before > 0 {
		query.Del("after")
		query.Set("before", strconv.FormatInt(in.Before, 10))
	}
	return all[store.MessageView](ctx, c, "/api/v1/sessions/"+in.SessionID.String()+"/messages?"+query.Encode())
}

// Session implements dispatch.Sessions.
func (c *Client) Session(ctx context.Context, session regie.ID) (out store.SessionView, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/sessions/"+session.String(), nil, &out)
	return out, err
}

// Fork implements dispatch.Sessions.
func (c *Client) Fork(ctx context.Context, in dispatch.ForkRequest) (out store.Forked, err error) {
	if in.SessionID.IsZero() { // a repetition makes the same one
		in.SessionID = regie.NewID()
	}
	err = c.call(ctx, http.MethodPost, "/api/v1/sessions/"+in.From.String()+"/fork", in, &out)
	return out, err
}

// Remove implements dispatch.Sessions.
func (c *Client) Remove(ctx context.Context, in dispatch.RemoveRequest) (out store.Removed, err error) {
	err = c.call(ctx, http.MethodDelete, "/api/v1/sessions/"+in.SessionID.String()+"?"+
		url.Values{"by": {in.By}}.Encode(), nil, &out)
	return out, err
}

// Rename implements dispatch.Sessions.
func (c *Client) Rename(ctx context.Context, in dispatch.RenameRequest) error {
	return c.call(ctx, http.MethodPatch, "/api/v1/sessions/"+in.SessionID.String(), in, nil)
}

// MarkRead implements dispatch.Sessions.
func (c *Client) MarkRead(ctx context.Context, in dispatch.ReadRequest) error {
	return c.call(ctx, http.MethodPut, "/api/v1/sessions/"+in.SessionID.String()+"/read", in, nil)
}

// Export implements dispatch.Sessions.
func (c *Client) Export(ctx context.Context, session regie.ID) (out store.SessionExport, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/sessions/"+session.String()+"/export", nil, &out)
	return out, err
}

// Verify implements dispatch.Sessions.
func (c *Client) Verify(ctx context.Context, f store.LogFilter) ([]store.LogReport, error) {
	return all[store.LogReport](ctx, c, "/api/v1/verify?"+selected(f.Root, f.Short, f.ID).Encode())
}

// Replay implements dispatch.Sessions.
func (c *Client) Replay(ctx context.Context, round regie.ID) (out dispatch.Replay, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/rounds/"+round.String()+"/replay", nil, &out)
	return out, err
}
