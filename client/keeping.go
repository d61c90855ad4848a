package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Prompt returns what would be sent to a session's model now, or what was sent in a stored model
// call, byte for byte (decision 14).
func (c *Client) Prompt(ctx context.Context, in dispatch.PromptRequest) (dispatch.Prompt, error) {
	return ask[dispatch.Prompt](ctx, c, http.MethodGet, "/api/v1/prompt?"+queryOf(in), nil)
}

// CacheStats says what is in the response cache of the workspace at root, or of all for "".
func (c *Client) CacheStats(ctx context.Context, root string) (store.CacheStats, error) {
	return ask[store.CacheStats](ctx, c, http.MethodGet, "/api/v1/cache?"+url.Values{"root": {root}}.Encode(), nil)
}

// ClearCache empties the cache. What was answered from it stays in the sessions.
func (c *Client) ClearCache(ctx context.Context, in dispatch.ClearRequest) (dispatch.Cleared, error) {
	return ask[dispatch.Cleared](ctx, c, http.MethodPost, "/api/v1/cache/clear", in)
}

// PlanUndo says what an undo would do now, with its conflicts; it changes nothing.
func (c *Client) PlanUndo(ctx context.Context, in dispatch.UndoRequest) (regie.UndoPlan, error) {
	return ask[regie.UndoPlan](ctx, c, http.MethodPost, "/api/v1/undos/plan", in)
}

// Undo undoes. With a conflict nothing happens.
func (c *Client) Undo(ctx context.Context, in dispatch.UndoRequest) (regie.Undo, error) {
	if in.UndoID.IsZero() { // a repetition is the same undo
		in.UndoID = regie.NewID()
	}
	return ask[regie.Undo](ctx, c, http.MethodPost, "/api/v1/undos", in)
}
