package index

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLostBetween: an index that is deleted between an update and the search behind it is brought
// up to date again: an empty one would be taken for a workspace that holds nothing of what was
// asked.
func TestLostBetween(t *testing.T) {
	root, _, file := place(t, map[string]string{"a.md": "the boiler is in the cellar\n"})
	x := open(t, root, file)
	refresh(t, x)
	for _, again := range []bool{false, true} {
		if err := os.RemoveAll(filepath.Dir(file)); err != nil {
			t.Fatal(err)
		}
		if again { // another process has made it anew, and has not filled it yet
			open(t, root, file)
		}
		if got := paths(t, x, "boiler"); len(got) != 1 || got[0] != "a.md" {
			t.Errorf("made by another one: %v; found %q", again, got)
		}
	}
}
