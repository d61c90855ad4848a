package doctor

import (
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
)

// embeds looks at the embedder. Without it the search by meaning is lexical, which it says, so
// nothing of this fails.
func (x *exam) embeds(e *Embedder) {
	switch {
	case e.Code == "" && e.Unpriced && e.Capped:
		x.warn("embedder",
			"nobody knows what %s of %s costs, so under a budget it is not asked, and the search is lexical", e.Model,
			e.Name).
			fix("say its price as providers.%s.prices: {%s: {input: PRICE, output: 0}}, in US dollars for a million tokens",
				e.Name, e.Model)
	case e.Code == "":
		x.fine("embedder", "%s of %s embeds: %s dimensions after %s", e.Model, e.Name,
			strconv.Itoa(e.Dimensions), short(e.Took))
	default:
		f := x.warn("embedder", "%s of %s does not embed, so the search is lexical: %s", e.Model,
			e.Name, e.Error).quotes(e.Said).code(e.Code)
		switch {
		case e.Type == config.ProviderOllama && e.Code == regie.CodeProviderRejected:
			f.run("ollama pull " + Quote(e.Model))
		case e.Type == config.ProviderOllama && e.Code == regie.CodeProviderOffline:
			f.run("ollama serve")
		default:
			f.fix("see that embedder in regie.yaml names a model that embeds, and that its server runs and has its key")
		}
	}
}
