package store

import (
	"time"

	"github.com/regie-run/regie"
)

// CachedReply is an answer in the response cache (spec 6.4), under the key of its request. Its
// session is the one of the original reply; removing that removes the answer. Only the user and the
// workspace of that session get it.
type CachedReply struct {
	Key             regie.Hash
	SessionID       regie.ID // where it is read; where it is kept, it is the one of the transition
	Provider, Model string
	Reply           []byte // as the cache has written it
	Usage           regie.Usage
	At              time.Time // when the model gave it
	Expires         time.Time
}

// CacheOf is the owner of the answers that a lookup in the response cache may find.
type CacheOf struct {
	WorkspaceID, UserID regie.ID
}

// CacheStats is what is in the response cache of a workspace, or of all of them.
type CacheStats struct {
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`
	// Hits is how often the entries that are there have answered, Saved about how many tokens that
	// has saved.
	Hits  int64 `json:"hits"`
	Saved int64 `json:"tokens_saved"`
	// Expired are the entries that answer no more, and go with the next one that comes.
	Expired int64     `json:"expired"`
	Oldest  time.Time `json:"oldest,omitzero"`
}
