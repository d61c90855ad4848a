//go:build faults

package crash

import (
	"slices"
	"testing"
)

// pinned are the seeds of sessions that once failed. TestCrash (one engine) and TestNodes replay
// theirs before any others.
var pinned = []struct {
	seed    uint64
	engines int
	kind    string // of its scenario
	why     string
}{
	{491843693, 2, "commands", "a command left a directory without a file, and the invariant took that for unreadable evidence"},
	{491843727, 3, "commands", "the same"},
	{442957707, 1, "long", "a write that the loop guard refused was judged by itself: its equal had been carried out in the round before"},
	{826516898, 1, "answers", "an edited answer that was repeated while the first one was carried out met its own effect and was refused"},
	{141016416, 1, "paused", "an edited answer that came twice at once was refused: the first one had been carried out"},
}

// pin has a run replay the pinned sessions of so many engines.
func (h *harness) pin(engines int) {
	for _, row := range pinned {
		if row.engines == engines {
			h.pinned = append(h.pinned, row.seed)
		}
	}
	h.t.Logf("replays %v first", h.pinned)
}

// nextPlan returns the plan of the next session, a pinned one first. It leaves out the kinds that
// are apart.
func (h *harness) nextPlan(apart ...string) plan {
	for {
		seed := h.next
		if h.replayed < len(h.pinned) {
			seed = h.pinned[h.replayed]
			h.replayed++
		} else if h.next++; slices.Contains(h.pinned, seed) { // it has run
			continue
		}
		p := planOf(seed)
		if !slices.Contains(apart, p.kind) && (p.kind == h.only || !slices.Contains(kinds, h.only)) {
			return p
		}
	}
}

// TestPinned_Kind: a pinned seed still means the scenario that failed. Where a new kind moves the
// seeds, find another one.
func TestPinned_Kind(t *testing.T) {
	for _, row := range pinned {
		if kind := planOf(row.seed).kind; kind != row.kind {
			t.Errorf("pinned seed %d is of kind %q, no longer %q: %s", row.seed, kind, row.kind, row.why)
		}
	}
}
