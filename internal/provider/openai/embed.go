package openai

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// embeds is how a vendor's /embeddings differs from what one takes by the book.
type embeds struct {
	// none says that the vendor has no embeddings, or none in this API.
	none bool
	// dimensions is the member that shortens the vectors; empty if the vendor has none.
	dimensions string
	// texts and bytes bound a request.
	texts, bytes int
}

// embeddings holds each vendor's embedding rules, from public documentation or from its server's
// answers.
var embeddings = map[string]embeds{
	"": {dimensions: "dimensions", texts: 64, bytes: 96 << 10},
	// platform.openai.com/docs/api-reference/embeddings: 2,048 texts, 8,192 tokens in each and
	// 300,000 in all.
	"openai": {dimensions: "dimensions", texts: 256, bytes: 256 << 10},
	// docs.mistral.ai/api/endpoint/embeddings: 16,384 tokens in all ("Too many tokens in batch"),
	// output_dimension for codestral-embed.
	"mistral":    {dimensions: "output_dimension", texts: 64, bytes: 32 << 10},
	"openrouter": {dimensions: "dimensions", texts: 96, bytes: 128 << 10},
	"vllm":       {dimensions: "dimensions", texts: 64, bytes: 96 << 10},
	"lmstudio":   {texts: 32, bytes: 64 << 10},
	// llama.cpp tools/server/README.md: started with --embeddings; a text has to fit into one
	// physical batch (--ubatch-size), else 500.
	"llamacpp": {texts: 32, bytes: 64 << 10},
	"groq":     {none: true}, "deepseek": {none: true}, "perplexity": {none: true},
}

// embedLongest is how many bytes a text may have: 8,192 tokens at three bytes each.
const embedLongest = 24 << 10

// Embedder implements provider.Embeds.
func (p *Provider) Embedder(model string, dimensions int) (provider.Embedder, error) {
	how, known := embeddings[p.cfg.Vendor]
	if !known {
		how = embeddings[""]
	}
	api := p.quirks.vendor
	switch {
	case how.none:
		return nil, regie.Errorf(regie.CodeBadRequest, "%s has no embeddings: let another provider embed",
			p.quirks.vendor)
	case dimensions != 0 && how.dimensions == "":
		return nil, regie.Errorf(regie.CodeBadRequest, "the vectors of %s cannot be shortened: leave dimensions out",
			p.quirks.vendor)
	case p.quirks.free || p.cfg.Vendor == "": // owners of these servers name models freely
		api += " " + p.server.Base()
	}
	return wire.NewEmbedder(wire.EmbedConfig{
		Server: p.server, Name: p.cfg.Name, Model: model, API: api, Dimensions: dimensions,
		Free: p.quirks.free, Path: "/embeddings",
		Texts: how.texts, Bytes: how.bytes, Longest: embedLongest,
		Encode: func(_ provider.Purpose, texts []string) []byte { return how.request(nil, model, dimensions, texts) },
		Decode: p.decodeEmbed,
	})
}

func (h *embeds) request(b []byte, model string, dimensions int, texts []string) []byte {
	b = wire.AppendString(append(b, `{"model":`...), model)
	if dimensions > 0 {
		b = append(append(append(b, `,"`...), h.dimensions...), `":`...)
		b = strconv.AppendInt(b, int64(dimensions), 10)
	}
	b = append(b, `,"input":`...)
	return append(wire.AppendList(b, texts, wire.AppendString), '}')
}

// decodeEmbed reads an answer. Vectors with an index may come in any order; without one they keep
// the order of the texts.
func (p *Provider) decodeEmbed(body []byte, texts int) (out wire.Embedded, err error) {
	var answer struct {
		Data []struct {
			Index     *int            `json:"index"`
			Embedding json.RawMessage `json:"embedding"`
		} `json:"data"`
		Usage json.RawMessage `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return out, err
	}
	if wire.Said(answer.Error) { // under status 200, from routers
		return out, p.server.InBand(body)
	}
	if len(answer.Data) != texts {
		return out, fmt.Errorf("%d vectors for %d texts", len(answer.Data), texts)
	}
	var usage struct {
		Prompt int64 `json:"prompt_tokens"`
		Total  int64 `json:"total_tokens"`
	}
	if wire.Claimed(answer.Usage, &usage) {
		out.Tokens = max(usage.Prompt, usage.Total)
	}
	out.Vectors = make([][]float32, texts)
	for i := range answer.Data {
		at := i
		if said := answer.Data[i].Index; said != nil {
			at = *said
		}
		if at < 0 || at >= texts || out.Vectors[at] != nil {
			return out, fmt.Errorf("a vector for text %d of %d, or two", at, texts)
		}
		if out.Vectors[at], err = wire.Vector(answer.Data[i].Embedding); err != nil {
			return out, err
		}
	}
	return out, nil
}
