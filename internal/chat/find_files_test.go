package chat

import (
	"strings"
	"testing"
)

func TestPaths(t *testing.T) {
	listing := "docs/\ndocs/plan.md\t12 bytes\nmain_plan.go\t3 bytes\nplan.txt\t0 bytes\nlink\tlink to /etc\n\"odd\\n\"\t1 bytes\n[3 ignored: node_modules]\nnothing in . matches \"x\""
	if got := strings.Join(sortPaths(listing, "plan"), " "); got != "docs/plan.md plan.txt docs/ main_plan.go link" {
		t.Errorf("it offers %s", got)
	}
}
