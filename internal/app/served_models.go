package app

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// listTime is what a provider has to list its models.
const listTime = 5 * time.Second

// listModels asks each configured provider what it has, and says what clients are told of it.
func (e *Engine) listModels(ctx context.Context) ([]dispatch.ProviderModels, error) {
	out := []dispatch.ProviderModels{}
	for _, p := range ListModels(ctx, e.config, listTime) {
		view := dispatch.ProviderModels{
			Name: p.Name, Type: cmp.Or(p.Type, p.Name), Chosen: p.Chosen, Reachable: p.Reachable, Code: p.Code,
			Error: p.Error, Sizes: p.Sizes, Models: []dispatch.ModelView{},
		}
		if p.Failure != nil {
			view.Said = regie.SentenceOf(p.Failure)
		}
		for i := range p.Models {
			m := &p.Models[i]
			model := dispatch.ModelView{
				Name: m.Name, Chosen: m.Chosen, Tools: m.Tools, Thinking: m.Thinking, Embeds: m.Embeds,
				ContextTokens: m.ContextTokens, MaxOutput: m.MaxOutput,
			}
			if m.Price.Known {
				model.Price = &dispatch.ModelPrice{
					Input: m.Price.Input, CachedInput: m.Price.CachedInput, CacheWrite: m.Price.CacheWrite,
					Output: m.Price.Output, UpTo: m.Price.UpTo,
				}
			}
			view.Models = append(view.Models, model)
		}
		out = append(out, view)
	}
	if has := func(p dispatch.ProviderModels) bool { return p.Name == e.config.Provider }; e.config.Provider != "" &&
		!slices.ContainsFunc(out, has) {
		out = append(out, dispatch.ProviderModels{ // one that needs no settings: the demo, a recording
			Name: e.config.Provider, Type: e.config.Provider, Chosen: true, Reachable: true,
			Models: []dispatch.ModelView{{
				Name: e.config.Model, Chosen: true, Tools: true,
				Price: &dispatch.ModelPrice{},
			}},
		})
	}
	return out, ctx.Err()
}

// ServedModels are the models of a server's providers as those of this machine are told.
func ServedModels(list []dispatch.ProviderModels) (out []ProviderInfo) {
	for _, p := range list {
		info := ProviderInfo{
			Name: p.Name, Type: p.Type, Chosen: p.Chosen, Reachable: p.Reachable, Code: p.Code,
			Error: p.Error, Said: p.Said, Sizes: p.Sizes, HasKey: p.Reachable,
		}
		for i := range p.Models {
			m := &p.Models[i]
			model := ModelInfo{
				Name: m.Name, Tools: m.Tools, Thinking: m.Thinking, Embeds: m.Embeds, ContextTokens: m.ContextTokens,
				MaxOutput: m.MaxOutput, Chosen: m.Chosen,
			}
			if m.Price != nil {
				model.Price = Price{
					Known: true, Input: m.Price.Input, CachedInput: m.Price.CachedInput, CacheWrite: m.Price.CacheWrite,
					Output: m.Price.Output, UpTo: m.Price.UpTo,
				}
			}
			info.Models = append(info.Models, model)
		}
		out = append(out, info)
	}
	return out
}
