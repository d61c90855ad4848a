package control

import (
	"context"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// Catalog says what there is to work with: tools, providers, models.
type Catalog struct {
	*core
	changing sync.Mutex // of stored providers
}

// Tools lists what agents can call: the wire of a tool's server that is away is left out.
func (c *Catalog) Tools(ctx context.Context) ([]regie.ToolDefinition, error) {
	if _, err := c.authorize(ctx, "list_tools"); err != nil {
		return nil, err
	}
	return c.core.Tools(ctx).Definitions(), nil
}

// Models asks each configured provider what it has; one that does not answer says so, in its place.
func (c *Catalog) Models(ctx context.Context) ([]dispatch.ProviderModels, error) {
	if _, err := c.authorize(ctx, "list_models"); err != nil {
		return nil, err
	}
	return c.ListModels(ctx)
}

// Check examines the server's machine as regie doctor does. It takes some seconds.
func (c *Catalog) Check(ctx context.Context) ([]dispatch.Check, error) {
	if _, err := c.authorizeAll(ctx, "check_machine"); err != nil {
		return nil, err
	}
	return c.Examine(ctx), nil
}
