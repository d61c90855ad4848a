package wire

import (
	"net/http"
	"testing"
	"time"
)

// TestRetryAfter: what a vendor wishes is believed up to a day, and what is no time is no wish.
func TestRetryAfter(t *testing.T) {
	date := func(in time.Duration) string { return time.Now().Add(in).UTC().Format(http.TimeFormat) }
	for value, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-5": 0, "0": 0, "NaN": 0, "7": 7 * time.Second, "0.5": 500 * time.Millisecond, "3600": time.Hour,
		"86399": 86399 * time.Second, "86400": 24 * time.Hour, "90000": 24 * time.Hour, "1e400": 24 * time.Hour, "Inf": 24 * time.Hour,
		date(time.Hour): time.Hour, date(-time.Hour): 0, date(90 * time.Hour): 24 * time.Hour,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {value}}); got > want || got < want-2*time.Second {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}
