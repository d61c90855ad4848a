package app_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// entries is all that the workspace holds, as what it is: type, permissions, content or where a link leads.
func (u *undoing) entries() map[string]string {
	u.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(u.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == u.root {
			return err
		}
		name, _ := filepath.Rel(u.root, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case info.Mode().Type() == fs.ModeSymlink:
			content, err = os.Readlink(path)
		case info.Mode().IsRegular():
			var data []byte
			data, err = os.ReadFile(path)
			content = string(data)
		}
		out[name] = info.Mode().String() + " " + content
		return err
	})
	if err != nil {
		u.t.Fatal(err)
	}
	return out
}

func (u *undoing) same(what string, want map[string]string) {
	u.t.Helper()
	if diff := cmp.Diff(want, u.entries()); diff != "" {
		u.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestUndoCommand: what a command changed, created, deleted, renamed, linked and chmodded goes back, and comes again by an undo of the undo.
func TestUndoCommand(t *testing.T) {
	needsSandbox(t)
	const script = `echo new > made; mkdir -p deep/er; echo x > deep/er/file; echo more >> kept; rm gone; mv from to; chmod 755 script; ln -s kept link; rm old-link; ` +
		`rm -r dir; ln -s / dir; echo secret > .env; echo built > out.o; touch seen`
	u := newUndoing(t, newModel(t, says("", runs("a", script, 20)), says("ok")), map[string]string{
		"kept": "a\n", "gone": "b\n", "from": "c\n", "script": "#!\n", "dir/one": "1\n", "dir/two": "2\n", "seen": "s\n", ".env": "KEY=1\n", ".gitignore": "*.o\n", "out.o": "o\n",
	})
	if err := os.Symlink("from", filepath.Join(u.root, "old-link")); err != nil {
		t.Fatal(err)
	}
	before := u.entries()
	run := u.say(regie.NewID(), "do it")
	after := u.entries()
	view, err := u.conn.Get(t.Context(), run.RoundID)
	if err != nil {
		t.Fatal(err)
	}
	call := view.Exchanges[0].Calls[0]
	for _, want := range []string{"changed 13 files: ", "A made", "A deep/er/file", "M kept", "D gone", "D from", "A to", "P script", "A link", "D old-link", "A dir", "D dir/one", "M .env"} {
		if !strings.Contains(call.Result, want) {
			t.Errorf("the result does not say %q:\n%s", want, call.Result)
		}
	}
	if strings.Contains(call.Result, "out.o") || strings.Contains(call.Result, "seen") {
		t.Errorf("the result says too much:\n%s", call.Result)
	}
	plan := u.plan(dispatch.UndoRequest{SessionID: run.SessionID})
	for i := range plan.Previews {
		if plan.Previews[i].Conflict != nil || strings.Contains(plan.Previews[i].Diff, "KEY=1") {
			t.Errorf("%s: %+v", plan.Files[i].Path, plan.Previews[i])
		}
	}
	if len(plan.Effects) != 0 {
		t.Errorf("a confined command has effects: %+v", plan.Effects)
	}
	done := u.undo(dispatch.UndoRequest{Target: run.RoundID, Plan: plan.Plan})
	before["out.o"] = after["out.o"] // ignored
	if done.Left() != 0 {
		t.Errorf("left: %+v", done.Files)
	}
	u.same("undone", before)
	again := u.undo(dispatch.UndoRequest{Target: done.ID})
	if again.Left() != 0 {
		t.Errorf("left: %+v", again.Files)
	}
	u.same("redone", after)
	u.undo(dispatch.UndoRequest{Target: again.ID})
	u.same("undone again", before)
}
