package engine

import (
	"testing"
	"time"

	"github.com/regie-run/regie"
)

// TestWarmth keeps threads within the bounds of their number, their bytes and their age: what was
// used least lately goes.
func TestWarmth(t *testing.T) {
	now := time.Now()
	id := func(n int) regie.ID { return regie.ID{14: byte(n >> 8), 15: byte(n)} }
	for name, c := range map[string]struct {
		puts, bytes int
		step        time.Duration
		want        int // how many of the latest are kept
	}{
		"few":       {10, 1000, 0, 10},
		"large":     {20, maxWarmBytes / 4, time.Second, 4},
		"too large": {3, maxWarmBytes + 1, time.Second, 0},
		"old":       {10, 1, maxWarmIdle / 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			var w warmth
			for n := range c.puts {
				w.keepThread(&warmThread{session: id(n), bytes: c.bytes, since: now.Add(time.Duration(n) * c.step)})
			}
			if len(w.kept) != c.want || w.bytes != c.want*c.bytes {
				t.Errorf("%d of %d are kept, %d bytes", len(w.kept), c.puts, w.bytes)
			}
			for n := range c.puts {
				if kept := w.takeThread(id(n)) != nil; kept != (n >= c.puts-c.want) {
					t.Errorf("the thread of session %d is kept: %v", n, kept)
				}
				if w.takeThread(id(n)) != nil {
					t.Errorf("the thread of session %d has two holders", n)
				}
			}
			if w.bytes != 0 {
				t.Errorf("%d bytes are left of nothing", w.bytes)
			}
		})
	}
	e := &Engine{}
	e.warmth.keepThread(&warmThread{session: id(2), bytes: 10, since: now})
	e.warmth.keepThread(&warmThread{session: id(2), bytes: 30, since: now})
	if e.Forget(id(2)); e.warmth.takeThread(id(2)) != nil || e.warmth.bytes != 0 {
		t.Error("a removed session's thread is kept")
	}
}
