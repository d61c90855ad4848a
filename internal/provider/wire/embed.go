package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// EmbedConfig is how one API embeds texts.
type EmbedConfig struct {
	Server      *Server
	Name, Model string
	// API names the API in Space, with the server's address if models of one name may differ
	// between servers.
	API string
	// Dimensions is the requested number; 0 leaves it to the model.
	Dimensions int
	Free       bool
	Path       string
	// Texts and Bytes bound a request. Longest bounds a text, in bytes; a longer text is cut and
	// listed in Cut.
	Texts, Bytes, Longest int
	// Encode writes a request with the texts as the model gets them.
	Encode func(purpose provider.Purpose, texts []string) []byte
	// Decode reads the answer to a request of that many texts. Its error says what is wrong with
	// it.
	Decode func(body []byte, texts int) (Embedded, error)
}

// Embedded is an answer as it came: a vector for each text, in their order.
type Embedded struct {
	Vectors [][]float32
	Tokens  int64 // 0: it was not said
}

// maxVectors bounds the answer to one batch, in bytes.
const maxVectors = 32 << 20

// maxDimensions bounds a vector.
const maxDimensions = 1 << 14

// Embedder is an embedder over HTTP, of any API (spec 8.3).
type Embedder struct {
	cfg   EmbedConfig
	space string
	// dimensions are those of the first vectors; all later ones must match. 0: there were none.
	dimensions atomic.Int64
}

// NewEmbedder returns an embedder. It returns CodeNoModel without a model, and CodeBadRequest for
// impossible dimensions.
func NewEmbedder(cfg EmbedConfig) (*Embedder, error) {
	switch {
	case strings.TrimSpace(cfg.Model) == "":
		return nil, regie.Errorf(regie.CodeNoModel, "no embedding model is named for %s", cfg.Name)
	case cfg.Dimensions < 0 || cfg.Dimensions > maxDimensions:
		return nil, regie.Errorf(regie.CodeBadRequest, "a vector cannot have %d dimensions", cfg.Dimensions)
	}
	e := &Embedder{cfg: cfg, space: cfg.API + " " + cfg.Model}
	if cfg.Dimensions > 0 {
		e.space += fmt.Sprintf(" %d", cfg.Dimensions)
	}
	if said := Instruction(cfg.Model, provider.ForDocument); said != "" {
		e.space += fmt.Sprintf(" %q", said)
	}
	e.dimensions.Store(int64(cfg.Dimensions))
	return e, nil
}

// Name implements provider.Embedder.
func (e *Embedder) Name() string { return e.cfg.Name }

// Model implements provider.Embedder.
func (e *Embedder) Model() string { return e.cfg.Model }

// Space implements provider.Embedder.
func (e *Embedder) Space() string { return e.space }

// Batch implements provider.Embedder.
func (e *Embedder) Batch() (texts, bytes int) { return e.cfg.Texts, e.cfg.Bytes }

// Free implements provider.Embedder.
func (e *Embedder) Free() bool { return e.cfg.Free }

// bytesOfToken is a lower bound of the bytes of a token in nearly all text and code. It estimates
// tokens if a server does not count, and never takes a text for shorter than it is.
const bytesOfToken = 3

// Embed implements provider.Embedder. If the server refuses a batch as too large, Embed sends its
// halves, and in the end the first half of a single text, listed in Cut. A refused request
// costs nothing.
func (e *Embedder) Embed(ctx context.Context, purpose provider.Purpose, texts []string) (*provider.Embedding, error) {
	size := 0
	for _, text := range texts {
		if size += len(text); strings.TrimSpace(text) == "" {
			return nil, &provider.Error{Code: regie.CodeBadRequest, Message: "a blank text has no meaning to embed"}
		}
	}
	if len(texts) == 0 || len(texts) > e.cfg.Texts || len(texts) > 1 && size > e.cfg.Bytes {
		return nil, &provider.Error{
			Code:    regie.CodeBadRequest,
			Message: fmt.Sprintf("%d texts of %d bytes are no batch of this embedder", len(texts), size),
		}
	}
	out := &provider.Embedding{Vectors: make([][]float32, len(texts))}
	before := Instruction(e.cfg.Model, purpose)
	longest := max(256, min(e.cfg.Longest, e.cfg.Bytes)-len(before))
	ready, places := make([]string, len(texts)), make([]int, len(texts))
	for i, text := range texts {
		ready[i], places[i] = Safe(text), i
		if len(ready[i]) > longest {
			ready[i] = ready[i][:boundary(ready[i], longest)]
			out.Cut = append(out.Cut, i)
		}
	}
	if err := e.embed(ctx, purpose, before, ready, places, out); err != nil {
		if failed, ok := errors.AsType[*provider.Error](err); ok {
			failed.Usage = out.Usage
		}
		return nil, err
	}
	slices.Sort(out.Cut)
	out.Cut = slices.Compact(out.Cut)
	return out, nil
}

// shortest is the length in bytes below which a text is not cut again: a model that refuses so
// little has another reason.
const shortest = 64

// embed fills in the vectors of the texts that stand at places.
func (e *Embedder) embed(ctx context.Context, purpose provider.Purpose, before string, texts []string, places []int,
	out *provider.Embedding,
) error {
	answer, err := e.ask(ctx, purpose, before, texts)
	switch failed, ok := errors.AsType[*provider.Error](err); {
	case err == nil:
		for i, vector := range answer.Vectors {
			out.Vectors[places[i]] = vector
		}
		e.count(answer, before, texts, out)
		return nil
	case !ok || failed.Code != regie.CodeContextTooLarge:
		return err
	case len(texts) > 1:
		half := len(texts) / 2
		if err := e.embed(ctx, purpose, before, texts[:half], places[:half], out); err != nil {
			return err
		}
		return e.embed(ctx, purpose, before, texts[half:], places[half:], out)
	case len(texts[0]) < shortest:
		return err
	default:
		out.Cut = append(out.Cut, places[0])
		kept := strings.TrimSpace(texts[0][:boundary(texts[0], len(texts[0])*2/3)])
		if kept == "" {
			return err
		}
		return e.embed(ctx, purpose, before, []string{kept}, places, out)
	}
}

func (e *Embedder) count(answer Embedded, before string, texts []string, out *provider.Embedding) {
	if tokens := Tokens(answer.Tokens); tokens > 0 {
		out.Usage.Input += tokens
		return
	}
	out.Estimated = true
	for _, text := range texts {
		out.Usage.Input += int64((len(before) + len(text) + bytesOfToken - 1) / bytesOfToken)
	}
}

// ask sends one request.
func (e *Embedder) ask(ctx context.Context, purpose provider.Purpose, before string,
	texts []string,
) (_ Embedded, err error) {
	defer e.cfg.Server.Hide(&err)
	given := texts
	if before != "" {
		given = make([]string, len(texts))
		for i, text := range texts {
			given[i] = before + text
		}
	}
	body, err := e.cfg.Server.Call(ctx, e.cfg.Path, e.cfg.Encode(purpose, given), maxVectors)
	if err != nil {
		return Embedded{}, err
	}
	answer, err := e.cfg.Decode(body, len(texts))
	if err != nil {
		if _, named := errors.AsType[*provider.Error](err); named {
			return Embedded{}, err
		}
		return Embedded{}, Broken("the answer of the embedding model %s cannot be used: %v", e.cfg.Model, err)
	}
	if len(answer.Vectors) != len(texts) {
		return Embedded{}, Broken("the embedding model %s answered %d texts with %d vectors", e.cfg.Model,
			len(texts), len(answer.Vectors))
	}
	return answer, e.check(answer.Vectors)
}

// check scales vectors to length 1, and refuses invalid or mismatched ones.
func (e *Embedder) check(vectors [][]float32) error {
	wanted := int(e.dimensions.Load())
	if wanted == 0 {
		wanted = len(vectors[0])
	}
	for _, vector := range vectors {
		if len(vector) != wanted || wanted == 0 || wanted > maxDimensions {
			return Broken("the embedding model %s answered with a vector of %d dimensions where %d belong",
				e.cfg.Model, len(vector), wanted)
		}
		sum := 0.0
		for _, x := range vector {
			sum += float64(x) * float64(x)
		}
		if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
			return Broken("the embedding model %s answered with a vector that has no direction", e.cfg.Model)
		}
		length := math.Sqrt(sum)
		for i := range vector {
			vector[i] = float32(float64(vector[i]) / length)
		}
	}
	e.dimensions.Store(int64(wanted))
	return nil
}

// boundary is the last place up to n at which a text can be cut without breaking a character.
func boundary(text string, n int) int {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// Vector reads a vector, a list of numbers. It refuses null, which some servers write for NaN.
func Vector(raw []byte) ([]float32, error) {
	var numbers []*float32
	switch err := json.Unmarshal(raw, &numbers); {
	case err != nil:
		return nil, errors.New("no vector where one belongs")
	case len(numbers) > maxDimensions:
		return nil, fmt.Errorf("a vector of more than %d dimensions", maxDimensions)
	}
	out := make([]float32, len(numbers))
	for i, number := range numbers {
		if number == nil {
			return nil, errors.New("a vector with null in it")
		}
		out[i] = *number
	}
	return out, nil
}
