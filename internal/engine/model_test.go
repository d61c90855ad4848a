package engine

import (
	"strings"
	"testing"
)

// TestPartial: what is kept of a reply that is cut off has no hole, is bounded, and is a text that
// PostgreSQL takes.
func TestPartial(t *testing.T) {
	most, large := strings.Repeat("a", maxStreamed-1), strings.Repeat("b", maxStreamed)
	for name, c := range map[string]struct {
		pieces []string
		want   string
	}{
		"NUL":                       {[]string{"a\x00", "b"}, "a\uFFFDb"},
		"no UTF-8":                  {[]string{"a\xff", "b"}, "a\uFFFDb"},
		"a character in two pieces": {[]string{"caf\xc3", "\xa9"}, "café"},
		"just too large":            {[]string{most, "c"}, most + "c…"},
		"a large piece":             {[]string{"a", large, "c"}, "a" + large[1:] + "…"},
		"no half character":         {[]string{most, "é", "c"}, most + "…"},
		"NUL grows":                 {[]string{most, "\x00"}, most + "…"},
	} {
		var p partial
		p.add("of the attempt before")
		p.add(large)
		p.text.Reset()
		for _, piece := range c.pieces {
			p.add(piece)
		}
		if got := p.String(); got != c.want {
			t.Errorf("%s: %d bytes, want %d: %.80q", name, len(got), len(c.want), got)
		}
	}
}
