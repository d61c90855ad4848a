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
	var out store.CacheStats
	caller, err := s.authorize(ctx, "show_cache")
	if err != nil {
		return out, err
	}
	roots, err := s.roots(ctx, caller, root)
	for _, at := range roots {
		some, err := s.Store.CacheStats(ctx, at, time.Now())
		if err != nil {
			return out, err
		}
		out.Entries, out.Bytes, out.Hits = out.Entries+some.Entries, out.Bytes+some.Bytes, out.Hits+some.Hits
		out.Saved, out.Expired = out.Saved+some.Saved, out.Expired+some.Expired
		if out.Oldest.IsZero() || !some.Oldest.IsZero() && some.Oldest.Before(out.Oldest) {
			out.Oldest = some.Oldest
		}
	}
	return out, err
}

// Clear empties the cache. What was answered from it stays in the sessions.
func (s *Cache) Clear(ctx context.Context, in dispatch.ClearRequest) (dispatch.Cleared, error) {
	var out dispatch.Cleared
	caller, err := s.authorize(ctx, "clear_cache")
	if err != nil {
		return out, err
	}
	roots, err := s.roots(ctx, caller, in.Root)
	if err == nil && len(roots) > 0 {
		err = s.writable()
	}
	if err != nil {
		return out, err
	}
	defer s.Cache.Clear()
	for _, at := range roots {
		gone, err := s.Store.ClearCache(ctx, at)
		if out.Entries += gone; err != nil {
			return out, err
		}
	}
	return out, nil
}
