package control

import (
	"cmp"
	"context"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// Catalog says what there is to work with: tools, providers, models.
type Catalog struct{ *core }

// Tools lists what agents can call: the wire of a tool's server that is away is left out.
func (c *Catalog) Tools(ctx context.Context) ([]regie.ToolDefinition, error) {
	if _, err := c.authorize(ctx, "list_tools"); err != nil {
		return nil, err
	}
	return c.core.Tools(ctx).Definitions(), nil
}

// Providers lists what can answer. Keys are never shown.
func (c *Catalog) Providers(ctx context.Context) ([]dispatch.ProviderView, error) {
	if _, err := c.authorize(ctx, "list_providers"); err != nil {
		return nil, err
	}
	out := []dispatch.ProviderView{}
	names := c.Settings.ProviderNames()
	if c.Settings.Provider != "" && !slices.Contains(names, c.Settings.Provider) {
		names = append(names, c.Settings.Provider)
	}
	for _, name := range names {
		p, _ := c.Settings.Named(name)
		out = append(out, dispatch.ProviderView{
			Name: name, Type: cmp.Or(p.Type, name), BaseURL: p.BaseURL, HasKey: p.APIKey != "",
			Chosen: name == c.Settings.Provider,
		})
	}
	return out, nil
}

// Models asks each configured provider what it has; one that does not answer says so, in its place.
func (c *Catalog) Models(ctx context.Context) ([]dispatch.ProviderModels, error) {
	if _, err := c.authorize(ctx, "list_models"); err != nil {
		return nil, err
	}
	return c.ListModels(ctx)
}
