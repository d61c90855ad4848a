package client

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
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

// Models asks each configured provider what it has.
func (c *Catalog) Models(ctx context.Context) ([]dispatch.ProviderModels, error) {
	return all[dispatch.ProviderModels](ctx, c.client, "/api/v1/models")
}
