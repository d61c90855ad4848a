package config

import "time"

// Cache bounds the response cache (spec 6.4). Whether an agent uses it is the agent's own key.
type Cache struct {
	// TTL is how long an answer is given again; zero means 24 h.
	TTL time.Duration `yaml:"ttl"`
	// MaxBytes bounds it in the database; zero means 64 MiB.
	MaxBytes int64 `yaml:"max_bytes"`
	// Casefold has two questions that differ only in the case of letters be one.
	Casefold bool `yaml:"casefold"`
}

// The words of an agent's cache.
const (
	CacheAuto = "auto"
	CacheOn   = "on"
	CacheOff  = "off"
)

// Caches reports whether answers of the agent may come from the response cache. The agent's setting
// decides; without one, only a request with a fixed temperature is cached, because only that
// repeats its answer.
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
