package gemini

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// How much one request has: the API takes a hundred texts.
const (
	embedTexts = 64
	embedBytes = 128 << 10
)

// Embedder implements provider.Embeds (ai.google.dev/api/embeddings). The server would cut a text
// that is too long without notice, so this package cuts it first.
func (p *Provider) Embedder(model string, dimensions int) (provider.Embedder, error) {
	path, resource := embedPath(model)
	return wire.NewEmbedder(wire.EmbedConfig{
		Server: p.server, Name: p.cfg.Name, Model: model, API: Name, Dimensions: dimensions, Path: path,
		Texts: embedTexts, Bytes: embedBytes, Longest: embedLongest(model),
		Encode: func(purpose provider.Purpose, texts []string) []byte {
			return appendEmbed(nil, resource, taskOf(model, purpose), dimensions, texts)
		},
		Decode: func(body []byte, _ int) (wire.Embedded, error) { return decodeEmbed(body) },
	})
}

// embedLongest bounds a text in bytes, at three a token: 2,048 tokens before the second generation,
// 8,192 from it on.
func embedLongest(model string) int {
	if named(model) {
		return 6 << 10
	}
	return 24 << 10
}

// named reports whether the request names the purpose in a member of its own. From the second
// generation on the text carries it.
func named(model string) bool {
	return !strings.HasPrefix(strings.ToLower(strings.TrimPrefix(model, "models/")), "gemini-embedding-2")
}

func taskOf(model string, purpose provider.Purpose) string {
	switch {
	case !named(model):
		return ""
	case purpose == provider.ForQuery:
		return "RETRIEVAL_QUERY"
	default:
		return "RETRIEVAL_DOCUMENT"
	}
}

func appendEmbed(b []byte, resource, task string, dimensions int, texts []string) []byte {
	b = wire.AppendList(append(b, `{"requests":`...), texts, func(b []byte, text string) []byte {
		b = wire.AppendString(append(b, `{"model":`...), resource)
		b = wire.AppendString(append(b, `,"content":{"parts":[{"text":`...), text)
		b = append(b, `}]}`...)
		if task != "" {
			b = append(append(append(b, `,"taskType":"`...), task...), '"')
		}
		if dimensions > 0 {
			b = strconv.AppendInt(append(b, `,"outputDimensionality":`...), int64(dimensions), 10)
		}
		return append(b, '}')
	})
	return append(b, '}')
}

func decodeEmbed(body []byte) (out wire.Embedded, err error) {
	var answer struct {
		Embeddings []struct {
			Values json.RawMessage `json:"values"`
		} `json:"embeddings"`
		Usage json.RawMessage `json:"usageMetadata"` // of the second generation
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return out, err
	}
	var usage struct {
		Tokens int64 `json:"promptTokenCount"`
	}
	if wire.Claimed(answer.Usage, &usage) {
		out.Tokens = usage.Tokens
	}
	for i := range answer.Embeddings {
		vector, err := wire.Vector(answer.Embeddings[i].Values)
		if err != nil {
			return out, err
		}
		out.Vectors = append(out.Vectors, vector)
	}
	return out, nil
}
