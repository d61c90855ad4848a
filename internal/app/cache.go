package app

import (
	"context"
	"time"

	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/provider/cache"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// newCache makes the response cache of an engine. Where several processes share a database nothing
// is held in memory: another one may erase a session, or clear the cache, and this one must not
// answer with it then.
func newCache(c config.Config, s *sqlite.Store) *cache.Cache {
	settings := cache.Config{
		Store: s, TTL: c.File.Cache.TTL, Size: c.File.Cache.MaxBytes,
		Memory: c.File.Cache.MemoryBytes,
	}
	if c.Database != "" {
		settings.Memory = -1
	}
	return cache.New(settings)
}

// CacheStats implements dispatch.Caching.
func (l *local) CacheStats(ctx context.Context, root string) (store.CacheStats, error) {
	return l.store.CacheStats(ctx, root, time.Now())
}

// ClearCache implements dispatch.Caching.
func (l *local) ClearCache(ctx context.Context, in dispatch.ClearRequest) (dispatch.Cleared, error) {
	if err := l.mayStore(); err != nil {
		return dispatch.Cleared{}, err
	}
	gone, err := l.store.ClearCache(ctx, in.Root)
	l.cache.Clear()
	return dispatch.Cleared{Entries: gone}, err
}
