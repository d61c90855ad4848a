package shell

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sandbox"
	"github.com/regie-run/regie/internal/snapshot"
	"github.com/regie-run/regie/internal/tool"
)

// TestAllThatIsLeft: a commit is named beside a file that no undo brings back, and both beside a
// command that nothing confined; and what has no name to be shown is counted.
func TestAllThatIsLeft(t *testing.T) {
	k := &toolkit{snapshots: snapshot.New(t.TempDir(), "", snapshot.DefaultBounds())}
	const git, loose, gone = "history of the repository", "it was not confined to the workspace", "files that undo cannot restore"
	for name, row := range map[string]struct {
		changed snapshot.Changes
		tier    sandbox.Tier
		want    []string
	}{
		"nothing":               {snapshot.Changes{}, sandbox.Landlock, nil},
		"a commit":              {snapshot.Changes{Git: true}, sandbox.Landlock, []string{git}},
		"a commit and a file":   {snapshot.Changes{Git: true, Uncovered: 1, Names: []string{"big"}}, sandbox.Landlock, []string{gone + ": big", git}},
		"all of it":             {snapshot.Changes{Git: true, Uncovered: 2, Names: []string{"a", "b"}}, sandbox.None, []string{gone, "a, b", git, loose}},
		"a commit, loose":       {snapshot.Changes{Git: true}, sandbox.None, []string{git, loose}},
		"what cannot be named":  {snapshot.Changes{Uncovered: 2}, sandbox.Landlock, []string{gone + ": 2"}},
		"some cannot be named":  {snapshot.Changes{Uncovered: 2, Names: []string{"a"}}, sandbox.Landlock, []string{gone + ": a, … (2)"}},
		"nothing kept it there": {snapshot.Changes{}, sandbox.None, []string{loose}},
	} {
		t.Run(name, func(t *testing.T) {
			changed, _ := json.Marshal(row.changed)
			started, _ := json.Marshal(intent{Sandbox: string(row.tier)})
			_, err := k.changes(t.Context(), &tool.Invocation{CallID: regie.NewID(), Intent: started, Changed: changed})
			if (err != nil) != (len(row.want) > 0) {
				t.Fatalf("got %v", err)
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %q", want, err)
				}
			}
			if err != nil && len(row.want) == 1 && !strings.HasSuffix(err.Error(), row.want[0]) && row.want[0] == gone+": 2" {
				t.Errorf("got %q", err)
			}
		})
	}
}
