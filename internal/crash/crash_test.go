//go:build faults

package crash

import (
	"flag"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/regie-run/regie/internal/fault"
)

var (
	kills = flag.Int("kills", 200, "how many processes to kill")
	seed  = flag.Uint64("seed", 0, "first seed; 0 takes one from the clock")
	// Loss of power and killed openings are of SQLite's files and stay with it.
	onPostgres = flag.Bool("postgres", false, "on the PostgreSQL of REGIE_TEST_POSTGRES; loss of power and openings are of SQLite alone")
	only       = flag.String("kind", "", "only scenarios of this kind")
)

// TestCrash kills the program -kills times and expects no violation. Each scenario runs at least
// twice, however few the kills.
func TestCrash(t *testing.T) {
	h := newHarness(t, "")
	h.pin(1)
	started := time.Now()
	// A long run must have been everywhere; what chance leaves out comes within twice the kills, or
	// cannot come.
	long := *kills >= 20*len(fault.Points()) && *only == ""
	for h.killed < *kills || h.runs < 2*len(kinds) || long && len(h.missing()) > 0 && h.killed < 2**kills {
		h.session()
		if len(h.violations()) > 0 || t.Failed() {
			break
		}
	}
	for _, v := range h.violations() {
		t.Error(v)
	}
	t.Logf("%d kills in %d runs, %.1f kills/s, seed %d; %d violations", h.killed, h.runs, float64(h.killed)/time.Since(started).Seconds(), h.first, len(h.violations()))
	t.Logf("killed at: %v", h.at)
	t.Logf("seen: %v", h.seen)
	if missing := h.missing(); long && !t.Failed() && len(missing) > 0 {
		t.Errorf("never seen, or never killed at: %v", missing)
	}
}

// missing are the fault points at which no process was killed, and the outcomes that no run had.
func (h *harness) missing() (out []string) {
	for _, point := range fault.Points() {
		if h.at[point] == 0 {
			out = append(out, point)
		}
	}
	for _, outcome := range outcomes {
		if h.seen[outcome] == 0 {
			out = append(out, outcome)
		}
	}
	return out
}

// bugKinds are the scenarios in which a seeded bug shows soonest; a bug without one is looked for
// in all.
var bugKinds = map[string]string{
	fault.BugRetryOnce: "allowed", fault.BugNewKey: "allowed", fault.BugDecidedTwice: "disputed", fault.BugUndoFirst: "undone", fault.BugUndoBlind: "undone",
}

// TestSeededBugs expects the harness to catch each seeded bug within a thousand kills (spec 12.3).
func TestSeededBugs(t *testing.T) {
	for _, bug := range slices.Concat(fault.Bugs(), fault.UndoBugs()) {
		t.Run(bug, func(t *testing.T) {
			h := newHarness(t, bug)
			if kind := bugKinds[bug]; kind != "" {
				h.only = kind
			}
			for h.killed < 1000 && len(h.violations()) == 0 {
				h.session()
			}
			if len(h.violations()) == 0 {
				t.Errorf("the bug %s was not caught within %d kills", bug, h.killed)
			} else {
				t.Logf("caught after %d kills: %s", h.killed, h.violations()[0])
			}
		})
	}
}

// TestScenariosDiffer keeps the plans honest: over a thousand seeds each kind of scenario says each
// thing that it is there for.
func TestScenariosDiffer(t *testing.T) {
	seen := map[string]bool{}
	for s := range uint64(1000) {
		p := planOf(s)
		seen[p.kind] = true
		seen[p.kind+" "+string(p.word)] = true
		for _, n := range p.notes {
			seen[p.kind+" "+string(n.when)] = true
		}
		for _, batch := range scenario(s) {
			for _, c := range batch {
				seen[p.kind+" "+c.tool] = true
			}
		}
	}
	want := append(slices.Clone(kinds), "stopped INTERRUPT", "stopped STOP", "busy STOP", "paused PAUSE", "messages queue", "messages steer", "busy queue",
		"answers queue", "questions ask__user", "late ask__user", "answers ledger__once", "left ledger__keyed", "allowed files__write_file",
		"json garbage", "json ledger__once", "json ledger__read", "automation garbage", "automation ledger__verifiable", "undone files__write_file", "undone ledger__once",
		"queued ledger__once",
		"commands shell__shell_exec", "commands files__write_file",
		"named steer", "named queue", "named files__write_file")
	for _, what := range want {
		if !seen[what] {
			t.Errorf("no plan has %q; there are %v", what, slices.Sorted(maps.Keys(seen)))
		}
	}
}
