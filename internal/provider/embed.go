package provider

import (
	"context"

	"github.com/regie-run/regie"
)

// Purpose is what a text is embedded for: most models place what is sought and what is asked each
// in its own way.
type Purpose string

// The purposes.
const (
	ForDocument Purpose = "document" // it is to be found
	ForQuery    Purpose = "query"    // it is what somebody looks for
)

// Embedding is what an Embedder made of texts.
type Embedding struct {
	// Vectors are one for each text, in the order of the texts: of length 1, and all of the same
	// number of dimensions.
	Vectors [][]float32
	// Cut are the places of the texts of which the model took the beginning alone, ascending.
	Cut []int
	// Usage has Input alone: what the server counted, or about a token for three bytes where it
	// counts nothing, which Estimated says.
	Usage     regie.Usage
	Estimated bool
}

// Embedder turns texts into vectors whose nearness is that of what they mean (spec 8.3). It keeps
// nothing and retries nothing by itself. Its methods may be called from any goroutine.
type Embedder interface {
	// Name is the provider's name in the configuration.
	Name() string
	// Model is the model's name, as a request has it.
	Model() string
	// Space tells vectors that may be compared from others: it names the API, the model, and how
	// texts are given to it.
	Space() string
	// Batch is how many texts, and how many bytes of them, one request takes. A text that is longer
	// than a batch is taken alone, and cut.
	Batch() (texts, bytes int)
	// Free says that it costs nothing by declaration, as Capabilities.Free does.
	Free() bool
	// Embed embeds the texts of one batch; there is at least one, and none is blank. All or none of
	// them have a vector: one that is missing, that is no number or is zero, or that has other
	// dimensions than those before is CodeBadReply. Every error is an *Error, or the cause of ctx
	// if that ended first; Usage of an Error is what was used up until then.
	Embed(ctx context.Context, purpose Purpose, texts []string) (*Embedding, error)
}

// Embeds is a Provider whose API has embeddings.
type Embeds interface {
	// Embedder returns the embedder of a model. dimensions is how many a vector is to have, for
	// models that can shorten theirs; 0 leaves it to the model. It returns CodeNoModel without a
	// model, and CodeBadRequest where the API or the vendor has no embeddings, or takes no
	// dimensions.
	Embedder(model string, dimensions int) (Embedder, error)
}
