package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Prompt implements dispatch.Control.
func (c *Client) Prompt(ctx context.Context, in dispatch.PromptRequest) (dispatch.Prompt, error) {
	query := url.Values{}
	for _, field := range []struct {
		name string
		id   regie.ID
	}{{"session", in.SessionID}, {"round", in.RoundID}, {"call", in.CallID}} {
		if !field.id.IsZero() {
			query.Set(field.name, field.id.String())
		}
	}
	for name, text := range map[string]string{"root": in.Root, "call_part": in.CallPart} {
		if text != "" {
			query.Set(name, text)
		}
	}
	for name, number := range map[string]int{"exchange": in.Exchange, "attempt": in.Attempt} {
		if number != 0 {
			query.Set(name, strconv.Itoa(number))
		}
	}
	var out dispatch.Prompt
	err := c.call(ctx, http.MethodGet, "/api/v1/prompt?"+query.Encode(), nil, &out)
	return out, err
}

// CacheStats implements dispatch.Caching.
func (c *Client) CacheStats(ctx context.Context, root string) (store.CacheStats, error) {
	var out store.CacheStats
	err := c.call(ctx, http.MethodGet, "/api/v1/cache?"+url.Values{"root": {root}}.Encode(), nil, &out)
	return out, err
}

// ClearCache implements dispatch.Caching.
func (c *Client) ClearCache(ctx context.Context, in dispatch.ClearRequest) (dispatch.Cleared, error) {
	var out dispatch.Cleared
	err := c.call(ctx, http.MethodPost, "/api/v1/cache/clear", in, &out)
	return out, err
}

// PlanUndo implements dispatch.Undoing.
func (c *Client) PlanUndo(ctx context.Context, in dispatch.UndoRequest) (out regie.UndoPlan, err error) {
	err = c.call(ctx, http.MethodPost, "/api/v1/undos/plan", in, &out)
	return out, err
}

// Undo implements dispatch.Undoing.
func (c *Client) Undo(ctx context.Context, in dispatch.UndoRequest) (out regie.Undo, err error) {
	if in.UndoID.IsZero() { // a repetition is the same undo
		in.UndoID = regie.NewID()
	}
	err = c.call(ctx, http.MethodPost, "/api/v1/undos", in, &out)
	return out, err
}
