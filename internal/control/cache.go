package control

import (
	"context"
	"time"

	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Cache is the response cache (spec 6.4).
type Cache struct{ *core }

// Stats says what is in the cache of the workspace at root, or of all for "".
func (s *Cache) Stats(ctx context.Context, root string) (store.CacheStats, error) {
	if _, err := s.authorizeIn(ctx, "show_cache", &root); err != nil {
		return store.CacheStats{}, err
	}
	return s.Store.CacheStats(ctx, root, time.Now())
}

// Clear empties the cache. What was answered from it stays in the sessions.
func (s *Cache) Clear(ctx context.Context, in dispatch.ClearRequest) (dispatch.Cleared, error) {
	if _, err := s.authorizeIn(ctx, "clear_cache", &in.Root); err != nil {
		return dispatch.Cleared{}, err
	}
	defer s.Cache.Clear()
	gone, err := s.Store.ClearCache(ctx, in.Root)
	return dispatch.Cleared{Entries: gone}, err
}
