package app

import (
	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/index"
	"github.com/regie-run/regie/internal/price"
	"github.com/regie-run/regie/internal/provider"
)

// newEmbedder makes the embedder of the settings without calling it, nil without one. It returns
// CodeProviderAuth where its key is missing, and the errors of provider.Embeds.
func newEmbedder(c *config.Config) (provider.Embedder, error) {
	settings, wanted, ok := c.Embedding()
	if !ok {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if err := settings.Keyless(); err != nil {
		return nil, err
	}
	if settings.Type == config.ProviderOpenAI { // Responses has no embeddings of its own: they are beside it
		settings.API = config.APIChat
	}
	p, err := newProvider(settings, 0)
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

// embedPrice returns the price of the embedder; known is false where it is unknown. An embedder
// declared as free costs nothing unless the file gives a price (decision 29).
func embedPrice(c *config.Config, e provider.Embedder) (p price.Price, known bool) {
	settings, _, _ := c.Embedding()
	p, stated, known := c.PriceOf(settings, e.Model())
	if e.Free() && !stated {
		return price.Price{}, true
	}
	return p, known
}

// embedMoney returns what embedding costs and may cost: of the caps those that bound a day, because
// it belongs to no round.
func embedMoney(c *config.Config, e provider.Embedder) index.Money {
	caps := c.File.Caps("main")
	m := index.Money{Capped: caps != regie.Caps{}, PerDay: caps.Workspace}
	if m.PerDay == 0 || caps.Day > 0 && caps.Day < m.PerDay {
		m.PerDay = caps.Day
	}
	m.Price, m.Known = embedPrice(c, e)
	return m
}
