package invariant

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/snapshot"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/toolkit/shell"
)

// TestChanges_Uncovered: what an undo does not cover is a violation, and so is evidence that cannot
// be read.
func TestChanges_Uncovered(t *testing.T) {
	file := []regie.FileChange{{Path: "s1/a.txt", After: regie.FileState{Hash: regie.HashOf([]byte("a"))}}}
	const uncovered, unreadable = "leaves what no undo brings back", "cannot be read"
	for name, row := range map[string]struct {
		changed any
		want    string // in the violation
		files   int
	}{
		"a file":                      {snapshot.Changes{Files: file}, "", 1},
		"a file that is not covered":  {snapshot.Changes{Uncovered: 1, Names: []string{"s1/a.txt"}}, uncovered, 0},
		"ignored files":               {snapshot.Changes{Aside: true}, uncovered, 0},
		"the history of a repository": {snapshot.Changes{Git: true}, uncovered, 0},
		"what is no list of changes":  {[]int{1}, unreadable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			changed, err := json.Marshal(row.changed)
			if err != nil {
				t.Fatal(err)
			}
			call := regie.Call{ID: regie.NewID(), Tool: shell.Name, State: regie.CallSucceeded, Intent: []byte(`{"sandbox":"landlock"}`), Changed: changed}
			call.StartedAt = time.Unix(1, 0)
			var failed []string
			c := &check{Case: Case{Saw: func(string) {}, Fail: func(format string, args ...any) { failed = append(failed, fmt.Sprintf(format, args...)) }}}
			c.views = []store.RoundView{{Exchanges: []store.ExchangeView{{Calls: []regie.Call{call}}}}}
			made := c.changes()[call.ID]
			if len(made) != row.files {
				t.Errorf("%d files, want %d", len(made), row.files)
			}
			if all := strings.Join(failed, "\n"); (all != "") != (row.want != "") || !strings.Contains(all, row.want) {
				t.Errorf("violations %q, want %q", all, row.want)
			}
		})
	}
}
