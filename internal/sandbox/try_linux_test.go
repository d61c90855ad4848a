//go:build linux

package sandbox

import (
	"os"
	"testing"
	"time"
)

func TestSkeleton(t *testing.T) {
	for _, tier := range []Tier{Bubblewrap, Landlock} {
		s := New(Config{Environ: os.Environ(), Home: "/root"})
		start := time.Now()
		c := s.try(t.Context(), tier)
		t.Log(tier, c.Missing, c.Err, time.Since(start))
		for _, p := range c.Probes {
			t.Log(p)
			if !p.Held {
				t.Error("not held")
			}
		}
	}
}
