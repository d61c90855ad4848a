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

// TestChanges_Uncovered: a command may make or remove directories without files, which its evidence
// names as not covered by an undo. Anything else that is not covered is a violation, and so is
// evidence that cannot be read.
func TestChanges_Uncovered(t *testing.T) {
	file := []regie.FileChange{{Path: "s1/a.txt", After: regie.FileState{Hash: regie.HashOf([]byte("a"))}}}
	const uncovered, unreadable = "leaves what no undo brings back", "cannot be read"
	for name, row := range map[string]struct {
		changed any
		want    string // in the violation
		files   int
	}{
		"a file":                       {snapshot.Changes{Files: file}, "", 1},
		"a directory":                  {snapshot.Changes{Uncovered: 1, Names: []string{"s1/"}}, "", 0},
		"a directory beside a file":    {snapshot.Changes{Files: file, Uncovered: 1, Names: []string{"s1/deep/"}}, "", 1},
		"a directory that has a file":  {snapshot.Changes{Files: file, Uncovered: 1, Names: []string{"s1/"}}, uncovered, 1},
		"a file that is not covered":   {snapshot.Changes{Uncovered: 1, Names: []string{"s1/a.txt"}}, uncovered, 0},
		"a directory and such a file":  {snapshot.Changes{Uncovered: 2, Names: []string{"s1/", "a.txt"}}, uncovered, 0},
		"what has no name":             {snapshot.Changes{Uncovered: 2, Names: []string{"s1/"}}, uncovered, 0},
		"the history of a repository":  {snapshot.Changes{Git: true}, uncovered, 0},
		"what is no list of changes":   {[]int{1}, unreadable, 0},
		"a directory and a repository": {snapshot.Changes{Git: true, Uncovered: 1, Names: []string{"s1/"}}, uncovered, 0},
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

// TestCheckUndo_Uncovered: an undo names each command of its round that left more than files
// (decision 16).
func TestCheckUndo_Uncovered(t *testing.T) {
	call := regie.Call{ID: regie.NewID(), Tool: shell.Name, State: regie.CallSucceeded}
	why := regie.Say("more")
	for name, row := range map[string]struct {
		effects []regie.Effect
		fails   bool
	}{
		"named":                  {[]regie.Effect{{CallID: call.ID, Why: &why}}, false},
		"named without a reason": {[]regie.Effect{{CallID: call.ID}}, true},
		"not named":              {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			failed := false
			c := &check{Case: Case{Saw: func(string) {}, Fail: func(string, ...any) { failed = true }}, uncovered: map[regie.ID]bool{call.ID: true}}
			view := store.RoundView{Exchanges: []store.ExchangeView{{Calls: []regie.Call{call}}}}
			c.checkUndo(t.Context(), &view, &regie.Undo{State: regie.UndoDone, Effects: row.effects}, nil, nil)
			if failed != row.fails {
				t.Errorf("violated: %v, want %v", failed, row.fails)
			}
		})
	}
}
