package provider

import (
	"context"

	"github.com/regie-run/regie"
)

// Purpose is the use of an embedded text: most models embed documents and queries differently.
type Purpose string

// The purposes.
const (
	ForDocument Purpose = "document" // it is to be found
	ForQuery    Purpose = "query"    // a person searches with it
)

// Embedding is the result of an Embedder.
type Embedding struct {
	// Vectors are one for each text, in the order of the texts: of length 1, and all of the same
	// number of dimensions.
	Vectors [][]float32
	// Cut holds the ascending indexes of the texts that the model truncated.
	Cut []int
	// Usage has Input only: the server's count, or an estimate of three bytes a token with
	// Estimated set.
	Usage     regie.Usage
	Estimated bool
}

// Embedder turns texts into vectors; texts of similar meaning have vectors close to each other
// (spec 8.3). It stores nothing and does not retry. Any goroutine may call its methods.
type Embedder interface {
	// Name is the provider's name in the configuration.
	Name() string
	// Model is the model's name in requests.
	Model() string
	// Space identifies vectors that are comparable: it names the API, the model, and the form of
	// texts.
	Space() string
	// Batch returns the bounds of one request in texts and bytes. A longer text goes alone, and is
	// cut.
	Batch() (texts, bytes int)
	// Free says that it costs nothing by declaration, as Capabilities.Free does.
	Free() bool
	// Embed embeds the texts of one batch, at least one and none blank. All texts get a vector, or
	// none. It returns CodeBadReply if a vector is missing, zero, not numeric, or of other
	// dimensions than earlier ones. Every error is an *Error with the Usage up to then, or the
	// cause of ctx if that ended first.
	Embed(ctx context.Context, purpose Purpose, texts []string) (*Embedding, error)
}

// Embeds is a Provider with an embeddings API.
type Embeds interface {
	// Embedder returns the embedder of a model. dimensions shortens the vectors of models that can
	// do that; 0 leaves it to the model. It returns CodeNoModel without a model, and CodeBadRequest
	// if the API or vendor has no embeddings or takes no dimensions.
	Embedder(model string, dimensions int) (Embedder, error)
}
