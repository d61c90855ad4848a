package ollama

import (
	"encoding/json"
	"strconv"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// Bounds of one request. The server may be the owner's own machine, and may stop in the middle of a
// batch: a small batch loses little.
const (
	embedTexts   = 32
	embedBytes   = 64 << 10
	embedLongest = 24 << 10
)

// Embedder implements provider.Embeds (docs.ollama.com/api/embed). The server refuses a text that
// is too long and this package cuts it: the server would cut it without notice.
func (p *Provider) Embedder(model string, dimensions int) (provider.Embedder, error) {
	return wire.NewEmbedder(wire.EmbedConfig{
		Server: p.server, Name: p.cfg.Name, Model: model, API: Name, Dimensions: dimensions,
		Free: p.free, Path: "/api/embed",
		Texts: embedTexts, Bytes: embedBytes, Longest: embedLongest,
		Encode: func(_ provider.Purpose, texts []string) []byte {
			return appendEmbed(nil, model, dimensions, p.cfg.KeepAlive, texts)
		},
		Decode: func(body []byte, _ int) (wire.Embedded, error) { return decodeEmbed(body) },
	})
}

func appendEmbed(b []byte, model string, dimensions int, keepAlive string, texts []string) []byte {
	b = wire.AppendString(append(b, `{"model":`...), model)
	b = append(b, `,"truncate":false`...)
	b = appendKeepAlive(b, keepAlive)
	if dimensions > 0 {
		b = strconv.AppendInt(append(b, `,"dimensions":`...), int64(dimensions), 10)
	}
	b = append(b, `,"input":`...)
	return append(wire.AppendList(b, texts, wire.AppendString), '}')
}

func decodeEmbed(body []byte) (out wire.Embedded, err error) {
	var answer struct {
		Embeddings []json.RawMessage `json:"embeddings"`
		Tokens     json.RawMessage   `json:"prompt_eval_count"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return out, err
	}
	_ = wire.Claimed(answer.Tokens, &out.Tokens)
	for _, raw := range answer.Embeddings {
		vector, err := wire.Vector(raw)
		if err != nil {
			return out, err
		}
		out.Vectors = append(out.Vectors, vector)
	}
	return out, nil
}
