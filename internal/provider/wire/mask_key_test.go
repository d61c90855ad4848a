package wire

import (
	"net/http"
	"testing"
)

// TestHide takes keys out of what a server said, and nothing else.
func TestHide(t *testing.T) {
	for name, c := range map[string]struct{ bearer, other, said, want string }{
		"a key":               {"sk-12345678", "", "no such key: sk-12345678.", "no such key: [the API key]."},
		"a short one":         {"k", "", "check the API key", "check the API key"},
		"not in its own":      {"sk-12345678", "the API key", "sk-12345678 or the API key", "[the API key] or [the API key]"},
		"one in the other":    {"12345678", "sk-12345678", "it is sk-12345678", "it is [the API key]"},
		"none":                {"", "", "nothing", "nothing"},
		"twice, side by side": {"abcdefgh", "", "abcdefghabcdefgh", "[the API key][the API key]"},
	} {
		header := http.Header{}
		header.Set("Authorization", "Bearer "+c.bearer)
		header.Set("X-Api-Key", c.other)
		if got := string((&Server{cfg: Config{Header: header}}).hide([]byte(c.said))); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
