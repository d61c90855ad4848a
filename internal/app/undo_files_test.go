package app_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// TestUndoEditDelete takes back edits and deletions of the files toolkit, and brings them again.
func TestUndoEditDelete(t *testing.T) {
	t.Parallel()
	m := newModel(t,
		says("", call{"r", "files__read_file", `{"path":"a.txt"}`}, call{"s", "files__read_file", `{"path":"d/b.sh"}`}),
		says("", call{"e", "files__edit_file", `{"path":"a.txt","edits":[{"old":"two","new":"2"}]}`}, call{"d", "files__delete_file", `{"path":"d/b.sh"}`}),
		says("ok"))
	u := newUndoing(t, m, map[string]string{"a.txt": "one\ntwo\n", "d/b.sh": "echo\n"})
	if err := os.Chmod(filepath.Join(u.root, "d", "b.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	zero := u.tree()
	u.say(regie.NewID(), "go")
	one := u.tree()
	if one["a.txt"] != "one\n2\n" || len(one) != 2 {
		t.Fatalf("the run left %v", one)
	}
	done := u.undo(dispatch.UndoRequest{Root: u.root})
	u.holds("undone", zero)
	if info, err := os.Stat(filepath.Join(u.root, "d", "b.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("d/b.sh: %v, %v", info.Mode(), err)
	}
	u.undo(dispatch.UndoRequest{Target: done.ID})
	u.holds("redone", one)
}
