package openai

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/regie-run/regie/internal/provider"
)

// Models implements provider.Lister.
func (p *Provider) Models(ctx context.Context) ([]provider.Model, error) {
	models, err := p.server.Models(ctx, "/models", p.vendorCapabilities)
	// it has no list: its answer proves only that it is reachable
	if notThere(err) && p.quirks.models != nil {
		err = nil
		for _, name := range p.quirks.models {
			models = append(models, provider.Model{Name: name, Capabilities: p.vendorCapabilities(name)})
		}
	}
	if err == nil && p.quirks.sizes != nil {
		p.quirks.sizes(ctx, p, models)
	}
	return models, err
}

// notThere reports whether a server answered that it has no such thing.
func notThere(err error) bool {
	failed, ok := errors.AsType[*provider.Error](err)
	return ok && (failed.Status == http.StatusNotFound || failed.Status == http.StatusMethodNotAllowed)
}

// vendorCapabilities returns the capabilities common to the vendor's models.
func (p *Provider) vendorCapabilities(string) provider.Capabilities {
	return provider.Capabilities{NativeTools: !p.quirks.noTools, Free: p.quirks.free, LeastOutput: p.quirks.minOutput}
}

// sizes fills in the windows that the model list lacks. A window that cannot be read stays
// unchanged.
type sizes func(ctx context.Context, p *Provider, models []provider.Model)

// listed adds nothing: the server's model list already holds the windows.
func listed(context.Context, *Provider, []provider.Model) {}

func lmStudioSizes(ctx context.Context, p *Provider, models []provider.Model) {
	loaded, err := p.root.Models(ctx, "/api/v0/models", p.vendorCapabilities)
	if err != nil {
		return
	}
	for i := range models {
		for _, model := range loaded {
			if model.Name == models[i].Name {
				models[i] = model
			}
		}
	}
}

func llamaSizes(ctx context.Context, p *Provider, models []provider.Model) {
	if len(models) != 1 {
		return // a router: what it has not loaded has no window yet
	}
	var answer struct {
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Modalities struct {
			Vision bool `json:"vision"`
		} `json:"modalities"`
	}
	if p.root.Ask(ctx, "/props", nil, &answer) == nil {
		models[0].ContextTokens = cmp.Or(max(answer.Settings.Context, 0), models[0].ContextTokens)
		models[0].Images = answer.Modalities.Vision
	}
}

// lookTime bounds the request for the list before a conversation begins.
const lookTime = 2 * time.Second

// lookUp returns what the server's list says of a model, its window and whether it takes images,
// if its vendor reports that. The server is asked once; if it does not answer, the next call asks
// again.
func (p *Provider) lookUp(model string) provider.Capabilities {
	if p.quirks.sizes == nil || p.cfg.ContextTokens > 0 && p.cfg.Images != nil {
		return provider.Capabilities{}
	}
	p.mu.Lock()
	found, ok := p.listed[model]
	p.mu.Unlock()
	if ok {
		return found
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	models, err := p.Models(ctx)
	if err != nil {
		return provider.Capabilities{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range models {
		p.listed[models[i].Name] = models[i].Capabilities
	}
	if _, ok := p.listed[model]; !ok && len(models) == 1 { // llama.cpp serves its one model under any name
		p.listed[model] = models[0].Capabilities
	}
	return p.listed[model]
}
