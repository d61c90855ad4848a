package config

import (
	"strings"
	"testing"
)

// TestTokenLimits reads what tokens may ask at once, and refuses what is no limit.
func TestTokenLimits(t *testing.T) {
	c, err := load(t, "token_limits: {requests_per_minute: 60, concurrent_streams: 5}", nil)
	if want := (TokenLimits{RequestsPerMinute: 60, ConcurrentStreams: 5}); err != nil || c.File.TokenLimits != want {
		t.Errorf("read %+v, %v", c.File.TokenLimits, err)
	}
	for content, says := range map[string]string{
		"token_limits: {concurrent_requests: -1}":        "a limit is a whole number",
		"token_limits: {requests_per_minute: 2000000}":   "a limit is a whole number",
		"token_limits: {requests: 1}":                    "line 1",
		"token_limits: {requests_per_minute: unlimited}": "line 1",
	} {
		if _, err := load(t, content, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", content, err)
		}
	}
}
