package store

import (
	"time"

	"github.com/regie-run/regie"
)

// CachedReply is an answer in the response cache (spec 6.4), under the hash of the request. It is
// deleted with the session that received it. Only the user and workspace of that session can read
// it.
type CachedReply struct {
	Key             regie.Hash
	SessionID       regie.ID // where it is read; where it is kept, it is the one of the transition
	Provider, Model string
	Reply           []byte // in the cache's format
	Usage           regie.Usage
	At              time.Time // when the model gave it
	Expires         time.Time
}

// CacheOf names the workspace and the user that look into the response cache.
type CacheOf struct {
	WorkspaceID, UserID regie.ID
}

// CacheStats counts the entries of the response cache, of one workspace or of all.
type CacheStats struct {
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`
	// Hits counts the answers from the present entries, Saved estimates the tokens saved by them.
	Hits  int64 `json:"hits"`
	Saved int64 `json:"tokens_saved"`
	// Expired counts the expired entries, which the next new entry removes.
	Expired int64     `json:"expired"`
	Oldest  time.Time `json:"oldest,omitzero"`
}
