package config

import (
	"time"

	"github.com/regie-run/regie"
)

// Cache bounds the response cache (spec 6.4). Whether an agent uses it is the agent's own key.
type Cache struct {
	// TTL is how long an answer is given again; zero means 24 h.
	TTL time.Duration `yaml:"ttl"`
	// MaxBytes bounds it in the database, MemoryBytes in memory; zero means 64 MiB and 8 MiB.
	MaxBytes    int64 `yaml:"max_bytes"`
	MemoryBytes int64 `yaml:"memory_bytes"`
	// Casefold has two questions that differ only in the case of letters be one.
	Casefold bool `yaml:"casefold"`
}

// leastCache is less than what any cache is good for, in bytes.
const leastCache = 1 << 16

func (c *Cache) check(path string) error {
	switch {
	case c.TTL < 0:
		return regie.Errorf(regie.CodeBadRequest, "cache.ttl in %s must be positive", path)
	case c.MaxBytes != 0 && c.MaxBytes < leastCache:
		return regie.Errorf(regie.CodeBadRequest,
			"cache.max_bytes in %s must be at least 65536; an agent uses no cache with cache: off", path)
	case c.MemoryBytes != 0 && c.MemoryBytes < leastCache:
		return regie.Errorf(regie.CodeBadRequest, "cache.memory_bytes in %s must be at least 65536", path)
	default:
		return nil
	}
}

// The words of an agent's cache.
const (
	CacheAuto = "auto"
	CacheOn   = "on"
	CacheOff  = "off"
)

func (a *Agent) checkCache(path, at string) error {
	switch a.Cache {
	case "", CacheAuto, CacheOn, CacheOff:
	default:
		return regie.Errorf(regie.CodeBadRequest, "%s.cache in %s is %q: use auto, on or off", at, path, a.Cache)
	}
	if t := a.Temperature; t != nil && !(*t >= 0 && *t <= 2) { // which refuses what is no number
		return regie.Errorf(regie.CodeBadRequest, "%s.temperature in %s is not between 0 and 2", at, path)
	}
	return nil
}

// Caches reports whether the agent's answers may come from the response cache: where it says so,
// else where the same question has the same answer anyhow, which holds only where the model is told
// the temperature.
func (a *Agent) Caches() (caches, onlyIfTold bool) {
	switch a.Cache {
	case CacheOn:
		return true, false
	case CacheOff:
		return false, false
	default:
		return a.Temperature != nil && *a.Temperature == 0, true
	}
}
