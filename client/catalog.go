package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Catalog is what a session can be made of, as control.Catalog.
type Catalog struct{ client *Client }

// Tools lists what agents can call.
func (c *Catalog) Tools(ctx context.Context) ([]regie.ToolDefinition, error) {
	return all[regie.ToolDefinition](ctx, c.client, "/api/v1/tools")
}

// Providers lists what can answer.
func (c *Catalog) Providers(ctx context.Context) ([]dispatch.ProviderView, error) {
	return all[dispatch.ProviderView](ctx, c.client, "/api/v1/providers")
}

// AddProvider tries a provider and stores it. The server uses it from its next start on.
func (c *Catalog) AddProvider(ctx context.Context, in dispatch.NewProvider) (dispatch.ProviderView, error) {
	return ask[dispatch.ProviderView](ctx, c.client, http.MethodPost, "/api/v1/providers", in)
}

// ChangeProvider tries a stored provider with changes and stores it.
func (c *Catalog) ChangeProvider(ctx context.Context, in dispatch.ProviderEdit) (dispatch.ProviderView, error) {
	return ask[dispatch.ProviderView](ctx, c.client, http.MethodPatch, "/api/v1/providers/"+url.PathEscape(in.Name), in)
}

// RemoveProvider removes a stored provider.
func (c *Catalog) RemoveProvider(ctx context.Context, name string) error {
	return c.client.call(ctx, http.MethodDelete, "/api/v1/providers/"+url.PathEscape(name), nil, nil)
}

// Models asks each configured provider what it has.
func (c *Catalog) Models(ctx context.Context) ([]dispatch.ProviderModels, error) {
	return all[dispatch.ProviderModels](ctx, c.client, "/api/v1/models")
}

// Cache is the response cache, as control.Cache.
type Cache struct{ client *Client }

// Stats says what is in the response cache of the workspace at root, or of all for "".
func (c *Cache) Stats(ctx context.Context, root string) (store.CacheStats, error) {
	query := url.Values{"root": {root}}.Encode()
	return ask[store.CacheStats](ctx, c.client, http.MethodGet, "/api/v1/cache?"+query, nil)
}

// Clear empties the cache. What was answered from it stays in the sessions.
func (c *Cache) Clear(ctx context.Context, in dispatch.ClearRequest) (dispatch.Cleared, error) {
	return ask[dispatch.Cleared](ctx, c.client, http.MethodPost, "/api/v1/cache/clear", in)
}
