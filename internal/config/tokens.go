package config

import "github.com/regie-run/regie"

// TokenLimits are those of one token on one server; zero means the default.
type TokenLimits struct {
	// RequestsPerMinute is how many requests a minute may have in the long run, and how many may
	// come at once; 1,200 by default.
	RequestsPerMinute int `yaml:"requests_per_minute"`
	// ConcurrentRequests is how many are answered at once, 64 by default; ConcurrentStreams how
	// many streams are open, 1,000 by default.
	ConcurrentRequests int `yaml:"concurrent_requests"`
	ConcurrentStreams  int `yaml:"concurrent_streams"`
}

// maxTokenLimit bounds each of them: beyond it there is no limit at all.
const maxTokenLimit = 1_000_000

func (l TokenLimits) check(path string) error {
	for _, n := range []int{l.RequestsPerMinute, l.ConcurrentRequests, l.ConcurrentStreams} {
		if n < 0 || n > maxTokenLimit {
			return regie.Errorf(regie.CodeBadRequest,
				"token_limits in %s holds %d: a limit is a whole number from 1 to %d", path, n, maxTokenLimit)
		}
	}
	return nil
}
