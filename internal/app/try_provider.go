package app

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
)

// TriedProvider is a provider that was asked for its models.
type TriedProvider struct {
	config.Provider
	Models []dispatch.ModelView
	// Model is the one that is taken, or offered first; it may be empty.
	Model string
	// Untried is why nothing was tried: the server does not list its models.
	Untried error
}

// TryProvider asks a provider for its models. Where an OpenAI-compatible server has nothing at an
// address, it tries and takes /v1 below it. It returns the codes of a provider that does not answer
// or refuses the key.
func TryProvider(ctx context.Context, p config.Provider) (TriedProvider, error) {
	out := TriedProvider{Provider: p}
	out.Models, out.Untried = askModels(ctx, p)
	if regie.CodeOf(out.Untried) == regie.CodeProviderRejected && p.Type == config.ProviderOpenAI {
		below := p
		below.BaseURL = strings.TrimRight(p.BaseURL, "/") + "/v1"
		if models, failed := askModels(ctx, below); failed == nil {
			out = TriedProvider{Provider: below, Models: models}
		}
	}
	out.Model = out.preferredModel()
	if out.Untried != nil && regie.CodeOf(out.Untried) != regie.CodeProviderRejected {
		return out, out.Untried
	}
	return out, nil
}

// TryModel tries a provider with a model, or with the preferred one for "". It returns the codes of
// TryProvider, CodeProviderRejected where neither is known, and CodeNoModel for a model that the
// server does not list.
func TryModel(ctx context.Context, p config.Provider, model string) (TriedProvider, error) {
	out, err := TryProvider(ctx, p)
	if err == nil && model == "" {
		err = out.Untried
	}
	if out.Model = cmp.Or(model, out.Model); err == nil && out.Model != "" {
		err = out.CheckModel(out.Model)
	}
	return out, err
}

// CheckModel refuses a model that the server does not list.
func (t *TriedProvider) CheckModel(name string) error {
	if len(t.Models) == 0 || slices.ContainsFunc(t.Models, func(m dispatch.ModelView) bool {
		return m.Name == name || m.Name == name+":latest"
	}) {
		return nil
	}
	return regie.Errorf(regie.CodeNoModel, "the server has no model %s: it has %s", name, t.ModelNames())
}

// ModelNames lists the models.
func (t *TriedProvider) ModelNames() string {
	var out []string
	for i := range t.Models {
		out = append(out, t.Models[i].Name)
	}
	return strings.Join(out, ", ")
}

// preferredModel returns the model that is offered first: the medium one, else the first with
// tools.
func (t *TriedProvider) preferredModel() (first string) {
	for i := range t.Models {
		m := &t.Models[i]
		if m.Name == t.Provider.Models[config.DefaultSize] {
			return m.Name
		}
		if m.Tools && first == "" && (t.Type == config.ProviderOllama || len(t.Models) == 1) {
			first = m.Name
		}
	}
	return first
}

// tryStored is TryModel for the service. It returns CodeNoModel where no model is known.
func tryStored(ctx context.Context, p config.Provider, model string) (
	tried config.Provider, found string, untested, err error,
) {
	out, err := TryModel(ctx, p, model)
	if err == nil && out.Model == "" {
		err = regie.Errorf(regie.CodeNoModel, "name the model: the server has %s", out.ModelNames())
	}
	return out.Provider, out.Model, out.Untried, err
}
