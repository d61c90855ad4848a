package spell_test

import (
	"testing"

	"github.com/regie-run/regie/internal/spell"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"same", "same", 0},
		{"reed", "read", 1},
		{"raed", "read", 1}, // two neighbours, exchanged
		{"rad", "read", 1},
		{"kitten", "sitting", 3},
		{"résumé", "resume", 2}, // letters, not bytes
		{"abcd", "dcba", 3},     // the middle exchanged, the ends changed
	} {
		if got, back := spell.Distance(c.a, c.b), spell.Distance(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("%q and %q: %d and %d, want %d", c.a, c.b, got, back, c.want)
		}
	}
}
