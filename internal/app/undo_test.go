package app_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// over writes a file whatever it holds.
func over(id, path, content string) call {
	return call{id, "files__write_file", fmt.Sprintf(`{"path":%q,"content":%q,"mode":"overwrite"}`, path, content)}
}

// undoing is a harness whose files are compared as a whole.
type undoing struct {
	*harness
	conn    *app.Conn
	damaged bool // the test has damaged the database
}

func newUndoing(t *testing.T, m *model, before map[string]string, tools ...tool.Tool) *undoing {
	t.Helper()
	u := &undoing{harness: newHarness(t, m, tools...)}
	for name, content := range before {
		u.put(name, content)
	}
	u.conn = u.connect()
	t.Cleanup(func() { _ = u.conn.Close() })
	return u
}

func (u *undoing) put(name, content string) {
	u.t.Helper()
	path := filepath.Join(u.root, name)
	fatal(u.t, os.MkdirAll(filepath.Dir(path), 0o755))
	fatal(u.t, os.WriteFile(path, []byte(content), 0o644))
}

// tree is all that the workspace holds: files with their content, directories with a slash.
func (u *undoing) tree() map[string]string {
	u.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(u.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == u.root {
			return err
		}
		name, _ := filepath.Rel(u.root, path)
		if d.IsDir() {
			out[name+"/"] = ""
			return nil
		}
		data, err := os.ReadFile(path)
		out[name] = string(data)
		return err
	})
	fatal(u.t, err)
	return out
}

func (u *undoing) holds(what string, want map[string]string) {
	u.t.Helper()
	if diff := cmp.Diff(want, u.tree()); diff != "" {
		u.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// say gives the agent a message and waits for the end of its round.
func (u *undoing) say(session regie.ID, text string) dispatch.Run {
	u.t.Helper()
	in := u.request(everything)
	in.SessionID, in.Text = session, text
	run, err := u.conn.Submit(u.t.Context(), in)
	fatal(u.t, err)
	u.await(u.conn, run)
	return run
}

func (u *undoing) plan(in dispatch.UndoRequest) regie.UndoPlan {
	u.t.Helper()
	plan, err := u.conn.Undos.Plan(u.t.Context(), in)
	fatal(u.t, err)
	return plan
}

func (u *undoing) undo(in dispatch.UndoRequest) regie.Undo {
	u.t.Helper()
	done, err := u.conn.Undos.Undo(u.t.Context(), in)
	fatal(u.t, err)
	if done.State != regie.UndoDone || done.Left() > 0 {
		u.t.Errorf("the undo is %s, %d files were left: %+v", done.State, done.Left(), done.Files)
	}
	u.verified()
	return done
}

// refused expects that nothing happens.
func (u *undoing) refused(code regie.Code, says string, in dispatch.UndoRequest) {
	u.t.Helper()
	before := u.tree()
	_, err := u.conn.Undos.Undo(u.t.Context(), in)
	if regie.CodeOf(err) != code || !strings.Contains(err.Error(), says) {
		u.t.Errorf("got %q (%v), want %q with %q", regie.CodeOf(err), err, code, says)
	}
	u.holds("refused, so nothing is changed", before)
	u.verified()
}

func (u *undoing) verified() {
	u.t.Helper()
	reports, err := u.conn.Verify(u.t.Context(), store.LogFilter{})
	for _, r := range reports {
		if r.Error != "" {
			u.t.Errorf("a log does not verify: %s", r.Error)
		}
	}
	if err != nil && (!u.damaged || regie.CodeOf(err) != regie.CodeCorrupt) {
		u.t.Error(err)
	}
}

// TestUndo takes a whole round back and brings it again: files that it wrote, several times, that
// it made with their directories, with their permissions; then the round before it (decision 16).
func TestUndo(t *testing.T) {
	t.Parallel()
	m := newModel(t,
		replyWith("", over("a", "a.txt", "A1\n"), over("b", "new/deep/b.txt", "B1\n")), replyWith("First."),
		replyWith("", over("c", "a.txt", "A2\n"), over("d", "a.txt", "A3\n"), over("e", "c.txt", "C\n"), call{"f", "files__write_file", `{"path":"new/deep/b.txt","content":"B2\n","mode":"append"}`}), replyWith("Second."))
	u := newUndoing(t, m, map[string]string{"a.txt": "A0\n", "other.txt": "mine\n"})
	fatal(t, os.Chmod(filepath.Join(u.root, "a.txt"), 0o750))
	zero, session := u.tree(), regie.NewID()
	first := u.say(session, "one")
	one := u.tree()
	second := u.say(session, "two")
	two := u.tree()

	plan := u.plan(dispatch.UndoRequest{Root: u.root})
	if plan.RoundID != second.RoundID || plan.State != regie.UndoPlanned || plan.Text != "two" || len(plan.Files) != 3 || len(plan.Conflicts(false)) > 0 {
		t.Errorf("the plan is %+v", plan)
	}
	if got := plan.Previews[0].Diff; !strings.Contains(got, "-A3\n+A1\n") {
		t.Errorf("the diff of a.txt is %q", got)
	}
	u.holds("a plan changes nothing", two)
	u.refused(regie.CodeUndoConflict, "it has been changed since", dispatch.UndoRequest{Target: first.RoundID})

	undone := u.undo(dispatch.UndoRequest{Root: u.root, Plan: plan.Plan})
	u.holds("the second round undone", one)
	u.refused(regie.CodeConflict, undone.ID.String(), dispatch.UndoRequest{Target: second.RoundID})
	before := u.undo(dispatch.UndoRequest{Root: u.root})
	if before.RoundID != first.RoundID {
		t.Errorf("the next undo is of %s", before.RoundID)
	}
	u.holds("the first round undone: files that it made are gone, with their directories", zero)
	if info, err := os.Stat(filepath.Join(u.root, "a.txt")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("a.txt has the permissions %v, %v", info.Mode(), err)
	}
	if _, err := u.conn.Undos.Undo(t.Context(), dispatch.UndoRequest{Root: u.root}); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("a third undo: %v", err)
	}

	u.undo(dispatch.UndoRequest{Target: before.ID})
	u.holds("the first undo taken back", one)
	redone := u.undo(dispatch.UndoRequest{Target: undone.ID})
	if redone.Undoes != undone.ID {
		t.Errorf("the redo undoes %s", redone.Undoes)
	}
	u.holds("redone", two)
	u.undo(dispatch.UndoRequest{Target: redone.ID})
	u.holds("the redo undone", one)
	view, err := u.conn.Get(t.Context(), second.RoundID)
	if err != nil || len(view.Undos) != 3 {
		t.Errorf("runs show knows %d undos, %v", len(view.Undos), err)
	}
}

// TestUndoConflict undoes nothing where a file is not as the round left it, unless it is forced;
// what is replaced comes back then.
func TestUndoConflict(t *testing.T) {
	t.Parallel()
	u := newUndoing(t, newModel(t, replyWith("", over("a", "a.txt", "A1\n"), over("b", "b.txt", "B1\n")), replyWith("ok")), map[string]string{"a.txt": "A0\n"})
	zero := u.tree()
	u.say(regie.NewID(), "go")
	u.put("a.txt", "mine\n")
	mine := u.tree()
	plan := u.plan(dispatch.UndoRequest{Root: u.root})
	if conflicts := plan.Conflicts(false); len(conflicts) != 1 || !conflicts[0].Forceable || len(plan.Conflicts(true)) != 0 {
		t.Errorf("conflicts %+v", conflicts)
	}
	u.refused(regie.CodeUndoConflict, "a.txt (it has been changed since)", dispatch.UndoRequest{Root: u.root})
	forced := u.undo(dispatch.UndoRequest{Root: u.root, Force: true})
	if !forced.Forced {
		t.Error("nobody could tell that it was forced")
	}
	u.holds("forced", zero)
	u.undo(dispatch.UndoRequest{Target: forced.ID})
	u.holds("what somebody else wrote is there again", mine)
	u.put("a.txt", "more\n")
	u.refused(regie.CodeStalePreview, "look at it again", dispatch.UndoRequest{Root: u.root, Force: true, Plan: plan.Plan})
}

// TestUndoTwice asks for one undo from two terminals, and for the same one again.
func TestUndoTwice(t *testing.T) {
	t.Parallel()
	u := newUndoing(t, newModel(t, replyWith("", over("a", "a.txt", "A1\n")), replyWith("ok")), map[string]string{"a.txt": "A0\n"})
	other := u.connect()
	u.say(regie.NewID(), "go")
	var wg sync.WaitGroup
	errs := make([]error, 8)
	same := regie.NewID()
	for i := range errs {
		wg.Go(func() {
			in := dispatch.UndoRequest{Root: u.root}
			if i%2 == 0 {
				in.UndoID = same
			}
			_, errs[i] = []*app.Conn{u.conn, other}[i/4].Undos.Undo(t.Context(), in)
		})
	}
	wg.Wait()
	done := 0
	for i, err := range errs {
		if err == nil {
			done++
		} else if code := regie.CodeOf(err); code != regie.CodeConflict && code != regie.CodeNotFound {
			t.Errorf("%d: %v", i, err)
		}
	}
	if done != 1 && done != 4 { // one of the others, or all that are the same
		t.Errorf("%d of them were heard: %v", done, errs)
	}
	u.holds("undone once", map[string]string{"a.txt": "A0\n"})
	u.verified()
}
