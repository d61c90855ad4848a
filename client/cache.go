package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Cache is the response cache, as control.Cache.
type Cache struct{ client *Client }

// Stats says what is in the response cache of the workspace at root, or of all for "".
func (c *Cache) Stats(ctx context.Context, root string) (store.CacheStats, error) {
	return ask[store.CacheStats](ctx, c.client, http.MethodGet, "/api/v1/cache?"+url.Values{"root": {root}}.Encode(), nil)
}

// Clear empties the cache. What was answered from it stays in the sessions.
func (c *Cache) Clear(ctx context.Context, in dispatch.ClearRequest) (dispatch.Cleared, error) {
	return ask[dispatch.Cleared](ctx, c.client, http.MethodPost, "/api/v1/cache/clear", in)
}
