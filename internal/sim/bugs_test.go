//go:build faults

package sim

import (
	"os"
	"slices"
	"testing"

	"github.com/regie-run/regie/internal/fault"
)

// enough is how many sessions a seeded bug may hide in.
const enough = 1000

// TestSeededBugs expects the simulation to catch each seeded bug of the loop, and those of the
// crash harness, which show here too.
func TestSeededBugs(t *testing.T) {
	for _, bug := range slices.Concat(fault.LoopBugs(), fault.Bugs()) {
		t.Run(bug, func(t *testing.T) {
			defer os.Unsetenv("REGIE_BUG")
			if err := os.Setenv("REGIE_BUG", bug); err != nil { //nolint:usetesting // t.Setenv refuses what runs side by side: the sessions do, the bugs do not
				t.Fatal(err)
			}
			failed, _, done := sweep(t, 1, enough, 1)
			if len(failed) == 0 {
				t.Errorf("the bug %s was not caught within %d sessions", bug, done)
			} else {
				t.Logf("caught after %d sessions: %s", done, failed[0])
			}
		})
	}
}
