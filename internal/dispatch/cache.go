package dispatch

import (
	"context"

	"github.com/regie-run/regie/internal/store"
)

// Caching is what a surface can do with the response cache (spec 6.4).
type Caching interface {
	// CacheStats says what is in the cache of the workspace at root, or of all of them for "".
	CacheStats(ctx context.Context, root string) (store.CacheStats, error)
	// ClearCache empties it. What was answered from it stays in the sessions.
	ClearCache(ctx context.Context, in ClearRequest) (Cleared, error)
}

// ClearRequest names the workspace whose cached answers go, by its root; "" means all of them.
type ClearRequest struct {
	Root string `json:"root,omitempty"`
}

// Cleared is how many answers went.
type Cleared struct {
	Entries int64 `json:"entries"`
}
