package app

import (
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/provider/cache"
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
