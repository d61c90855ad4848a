package app

import (
	"context"
	"errors"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/doctor"
	"github.com/regie-run/regie/internal/index"
	"github.com/regie-run/regie/internal/price"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
)

// newEmbedder makes the embedder of the settings, nil where there is none. Nobody is asked. It
// returns CodeProviderAuth where its key is not there, and what provider.Embeds returns.
func newEmbedder(c *config.Config) (provider.Embedder, error) {
	settings, wanted, ok := c.Embedding()
	if !ok {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if err := settings.Keyless(); err != nil {
		return nil, err
	}
	var p provider.Provider
	var err error
	if settings.Type == config.ProviderOpenAI { // Responses has no embeddings of its own: they are beside it
		p, err = openai.New(openai.Config{
			Name: settings.Name, BaseURL: settings.BaseURL,
			APIKey: settings.APIKey, Vendor: settings.Wire(),
		})
	} else {
		p, err = newProvider(settings, 0)
	}
	if err != nil {
		return nil, err
	}
	embeds, ok := p.(provider.Embeds)
	if !ok {
		return nil, regie.Errorf(regie.CodeBadRequest,
			"%s has no embeddings: use Ollama, an OpenAI-compatible server or Gemini", settings.Name)
	}
	return embeds.Embedder(wanted.Model, wanted.Dimensions)
}

// embedPrice is what the embedder costs; known is false where nobody knows it. One that is free by
// declaration costs nothing, unless the file says otherwise (decision 29).
func embedPrice(c *config.Config, e provider.Embedder) (p price.Price, known bool) {
	settings, _, _ := c.Embedding()
	p, stated, known := c.PriceOf(settings, e.Model())
	if e.Free() && !stated {
		return price.Price{}, true
	}
	return p, known
}

// embedMoney is what embedding costs and may cost: of the caps those that bound a day, because it
// belongs to no round.
func embedMoney(c *config.Config, e provider.Embedder) index.Money {
	caps := c.File.Caps("main")
	m := index.Money{Capped: caps != regie.Caps{}, PerDay: caps.Workspace}
	if m.PerDay == 0 || caps.Day > 0 && caps.Day < m.PerDay {
		m.PerDay = caps.Day
	}
	m.Price, m.Known = embedPrice(c, e)
	return m
}

// tryEmbedder asks the embedder for one vector; nil where none is configured. One that a budget
// keeps from being asked is not asked.
func tryEmbedder(ctx context.Context, c *config.Config) *doctor.Embedder {
	settings, wanted, ok := c.Embedding()
	if !ok {
		return nil
	}
	state := &doctor.Embedder{
		Name: settings.Name, Type: settings.Type, Model: wanted.Model, Unpriced: true,
		Capped: c.File.Caps("main") != regie.Caps{},
	}
	failed := func(err error) *doctor.Embedder {
		if errors.Is(err, context.DeadlineExceeded) {
			err = regie.Errorf(regie.CodeTimeout, "%s did not answer within %s",
				settings.BaseURL, embedTryTime.String())
		}
		state.Code, state.Error, state.Said = provider.CodeOf(err), err.Error(), regie.SentenceOf(err)
		return state
	}
	e, err := newEmbedder(c)
	if err != nil {
		return failed(err)
	}
	if _, known := embedPrice(c, e); known {
		state.Unpriced = false
	} else if state.Capped {
		return state
	}
	ctx, cancel := context.WithTimeout(ctx, embedTryTime)
	defer cancel()
	start := time.Now()
	made, err := e.Embed(ctx, provider.ForQuery, []string{"where the paths of a workspace are checked"})
	if err != nil {
		return failed(err)
	}
	state.Took, state.Dimensions = time.Since(start), len(made.Vectors[0])
	return state
}

// embedTryTime bounds the trying of an embedder, whose model may have to be loaded first.
const embedTryTime = 20 * time.Second
