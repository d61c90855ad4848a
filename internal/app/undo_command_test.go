package app_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// entries is all that the workspace holds, as what it is: type, permissions, content or where a
// link leads.
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
	fatal(u.t, err)
	return out
}

func (u *undoing) same(what string, want map[string]string) {
	u.t.Helper()
	if diff := cmp.Diff(want, u.entries()); diff != "" {
		u.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestUndoCommand: what a command changed, created, deleted, renamed, linked and chmodded goes
// back, and comes again by an undo of the undo.
func TestUndoCommand(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	const script = `echo new > made; mkdir -p deep/er; echo x > deep/er/file; echo more >> kept; rm gone; mv from to; chmod 755 script; ln -s kept link; rm old-link; ` +
		`rm -r dir; echo secret > .env; echo built > out.o; touch seen`
	u := newUndoing(t, newModel(t, replyWith("", runs("a", script, 20)), replyWith("ok")), map[string]string{
		"kept": "a\n", "gone": "b\n", "from": "c\n", "script": "#!\n", "dir/one": "1\n", "dir/two": "2\n", "seen": "s\n", ".env": "KEY=1\n", ".gitignore": "*.o\n", "out.o": "o\n",
	})
	fatal(t, os.Symlink("from", filepath.Join(u.root, "old-link")))
	before := u.entries()
	run := u.say(regie.NewID(), "do it")
	after := u.entries()
	view := u.round(u.conn, run.RoundID)
	call := view.Exchanges[0].Calls[0]
	for _, want := range []string{"changed 12 files: ", "A made", "A deep/er/file", "M kept", "D gone", "D from", "A to", "P script", "A link", "D old-link", "D dir/one", "M .env"} {
		if !strings.Contains(call.Result, want) {
			t.Errorf("the result does not say %q:\n%s", want, call.Result)
		}
	}
	if strings.Contains(call.Result, "seen") {
		t.Errorf("the result says too much:\n%s", call.Result)
	}
	plan := u.plan(dispatch.UndoRequest{SessionID: run.SessionID})
	for i := range plan.Previews {
		if plan.Previews[i].Conflict != nil || strings.Contains(plan.Previews[i].Diff, "KEY=1") {
			t.Errorf("%s: %+v", plan.Files[i].Path, plan.Previews[i])
		}
	}
	if len(plan.Effects) != 1 || plan.Effects[0].Why == nil || !strings.HasSuffix(plan.Effects[0].Why.String(), "it changed ignored or special files, which undo cannot restore") {
		t.Errorf("of a confined command more is left than an ignored file: %+v", plan.Effects)
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

// TestUndoSparesOnlyCopies: what a command moved out of an ignored place stays where it is, and the
// undo says so; what it deleted comes back with the permissions of its directory.
func TestUndoSparesOnlyCopies(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	u := newUndoing(t, newModel(t, replyWith("", runs("a", "mv my.log notes.txt; rm -r priv ig; mkdir hollow; echo new > made", 20)), replyWith("ok")),
		map[string]string{".gitignore": "*.log\nig/\n", "ig/x": "lost\n", "my.log": "the only copy\n", "priv/plan": "secret plan\n"})
	fatal(t, os.Chmod(filepath.Join(u.root, "priv"), 0o700))
	run := u.say(regie.NewID(), "do it")
	plan := u.plan(dispatch.UndoRequest{SessionID: run.SessionID})
	if len(plan.Effects) != 1 || plan.Effects[0].Why == nil ||
		!strings.Contains(plan.Effects[0].Why.String(), "files that undo cannot restore: notes.txt; it changed ignored") {
		t.Errorf("effects: %+v", plan.Effects)
	}
	if done := u.undo(dispatch.UndoRequest{Target: run.RoundID, Plan: plan.Plan}); done.Left() != 0 {
		t.Errorf("left: %+v", done.Files)
	}
	if data, err := os.ReadFile(filepath.Join(u.root, "notes.txt")); err != nil || string(data) != "the only copy\n" {
		t.Errorf("the only copy is gone: %q, %v", data, err)
	}
	if _, err := os.Lstat(filepath.Join(u.root, "made")); err == nil {
		t.Error("what the command made is still there")
	}
	if info, err := os.Stat(filepath.Join(u.root, "priv")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the private directory came back as %v, %v", info, err)
	}
}

// TestUndoCommandConflicts: what somebody has changed since is not put back, unless that is said,
// and is kept then.
func TestUndoCommandConflicts(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	u := newUndoing(t, newModel(t, replyWith("", runs("a", "echo new > f; ln -s f l; rm gone; chmod 755 mode", 20)), replyWith("ok")), map[string]string{
		"f": "old\n", "gone": "g\n", "mode": "m\n",
	})
	before := u.entries()
	run := u.say(regie.NewID(), "do it")
	u.put("f", "mine\n")
	u.put("gone", "mine\n")
	u.put("mode", "mine\n")
	fatal(t, errors.Join(os.Remove(filepath.Join(u.root, "l")), os.Symlink("elsewhere", filepath.Join(u.root, "l"))))
	mine := u.entries()
	_, err := u.conn.Undos.Undo(t.Context(), dispatch.UndoRequest{UndoID: regie.NewID(), SessionID: run.SessionID})
	if regie.CodeOf(err) != regie.CodeUndoConflict || !strings.Contains(err.Error(), "f (") || !strings.Contains(err.Error(), "gone (") || !strings.Contains(err.Error(), "l (") {
		t.Errorf("got %v", err)
	}
	u.same("refused", mine)
	done := u.undo(dispatch.UndoRequest{SessionID: run.SessionID, Force: true})
	before["mode"] = strings.Replace(before["mode"], "m\n", "mine\n", 1) // its permissions alone were changed
	u.same("forced", before)
	u.undo(dispatch.UndoRequest{Target: done.ID})
	u.same("taken back", mine)
}
