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
		puts      int
		bytes     int
		step      time.Duration
		want      int // how many of the latest are kept
		wantBytes int
	}{
		"few":       {10, 1000, 0, 10, 10_000},
		"many":      {maxWarm + 9, 10, 0, maxWarm, 10 * maxWarm},
		"large":     {20, maxWarmBytes / 4, 0, 4, maxWarmBytes},
		"too large": {3, maxWarmBytes + 1, 0, 0, 0},
		"old":       {10, 1, maxWarmIdle / 3, 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			var w warmth
			for n := range c.puts {
				w.keepThread(&warmThread{session: id(n), bytes: c.bytes, since: now.Add(time.Duration(n) * c.step)})
			}
			if w.order.Len() != c.want || len(w.at) != c.want || w.bytes != c.wantBytes {
				t.Errorf("%d of %d are kept, %d bytes", w.order.Len(), c.puts, w.bytes)
			}
			for n := range c.puts {
				if kept := w.takeThread(id(n)) != nil; kept != (n >= c.puts-c.want) {
					t.Errorf("the thread of session %d is kept: %v", n, kept)
				}
				if w.takeThread(id(n)) != nil {
					t.Errorf("the thread of session %d has two holders", n)
				}
			}
			if w.bytes != 0 || len(w.at) != 0 {
				t.Errorf("%d bytes are left of nothing", w.bytes)
			}
		})
	}
	var w warmth
	w.keepThread(&warmThread{session: id(1), bytes: 10, since: now})
	w.keepThread(&warmThread{session: id(1), bytes: 30, since: now})
	if k := w.takeThread(id(1)); w.bytes != 0 || k == nil || k.bytes != 30 {
		t.Errorf("a thread that comes again stands beside itself: %+v, %d bytes", k, w.bytes)
	}
	e := &Engine{}
	e.warmth.keepThread(&warmThread{session: id(2), since: now})
	if e.Forget(id(2)); e.warmth.takeThread(id(2)) != nil {
		t.Error("a removed session's thread is kept")
	}
}
