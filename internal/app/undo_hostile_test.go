package app_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// TestUndoHostile puts something else in the place of what a round left: nothing is undone, nothing
// is followed out of the workspace, and where there is no file to keep, force undoes nothing
// either.
func TestUndoHostile(t *testing.T) {
	t.Parallel()
	const forceable, never = true, false
	for name, c := range map[string]struct {
		hinder func(u *undoing, at func(string) string) error
		says   string // "" undoes
		force  bool
	}{
		"a directory": {func(_ *undoing, at func(string) string) error {
			return os.Rename(mkdir(at("x")), move(at("d/a.txt"), at("moved")))
		}, "is a directory", never},
		"a link to another file": {func(_ *undoing, at func(string) string) error {
			return os.Symlink(at("other.txt"), move(at("d/a.txt"), at("moved")))
		}, "symbolic link", never},
		"a link out of the workspace": {func(_ *undoing, at func(string) string) error {
			return os.Symlink("/etc/hostname", move(at("d/a.txt"), at("moved")))
		}, "symbolic link", never},
		"a FIFO": {func(_ *undoing, at func(string) string) error {
			return syscall.Mkfifo(move(at("d/a.txt"), at("moved")), 0o600)
		}, "FIFO", never},
		"another file of the same content": {func(_ *undoing, at func(string) string) error {
			return os.WriteFile(move(at("d/a.txt"), at("moved")), []byte("A1\n"), 0o644)
		}, "", forceable},
		"nobody may write it": {func(_ *undoing, at func(string) string) error {
			return os.Chmod(at("d/a.txt"), 0o444)
		}, "read-only", never},
		"its directory is gone": {func(_ *undoing, at func(string) string) error {
			return os.RemoveAll(at("d"))
		}, "it has been deleted since", forceable},
		"its directory is a file": {func(_ *undoing, at func(string) string) error {
			return os.WriteFile(move(at("d"), at("moved")), nil, 0o644)
		}, "not a directory", never},
		"its directory is a link": {func(_ *undoing, at func(string) string) error {
			return os.Symlink("moved", move(at("d"), at("moved")))
		}, "leads to moved/a.txt", never},
		"its directory leads out": {func(u *undoing, at func(string) string) error {
			return os.Symlink(u.t.TempDir(), move(at("d"), at("moved")))
		}, "leads out of the workspace", never},
		"changed by a byte": {func(_ *undoing, at func(string) string) error {
			return os.WriteFile(at("d/a.txt"), []byte("A1"), 0o644)
		}, "it has been changed since", forceable},
		"the kept content was erased": {func(u *undoing, _ func(string) string) error {
			return u.raw("UPDATE blobs SET data = NULL WHERE hash = ?", regie.HashOf([]byte("A0\n")))
		}, "it was erased", never},
		"the kept content is damaged": {func(u *undoing, _ func(string) string) error {
			u.damaged = true
			return u.raw("UPDATE blobs SET data = x'413021' WHERE hash = ?", regie.HashOf([]byte("A0\n")))
		}, "damaged", never},
		"the workspace was moved": {func(u *undoing, _ func(string) string) error {
			return os.Rename(u.root, u.root+"-moved")
		}, "not where it was", never},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUndoing(t, newModel(t, replyWith("", over("a", "d/a.txt", "A1\n"), over("b", "b.txt", "B1\n")), replyWith("ok")), map[string]string{"d/a.txt": "A0\n", "other.txt": "mine\n"})
			u.say(regie.NewID(), "go")
			root := u.root
			fatal(t, c.hinder(u, func(name string) string { return filepath.Join(root, name) }))
			if strings.HasPrefix(name, "the workspace") {
				if _, err := u.conn.Undos.Undo(t.Context(), dispatch.UndoRequest{Root: root}); regie.CodeOf(err) != regie.CodeFileNotFound || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v", err)
				}
				return
			}
			in := dispatch.UndoRequest{Root: root}
			if c.says == "" {
				u.undo(in)
				return
			}
			u.refusedQuietly(c.says, in)
			in.Force = true
			if !c.force {
				u.refusedQuietly(c.says, in)
				return
			}
			u.undo(in)
			if data, err := os.ReadFile(filepath.Join(root, "d", "a.txt")); err != nil || string(data) != "A0\n" {
				t.Errorf("forced, and it holds %q, %v", data, err)
			}
		})
	}
}

func mkdir(path string) string {
	_ = os.Mkdir(path, 0o755)
	return path
}

// move moves something away and returns where it was.
func move(from, to string) string {
	if err := os.Rename(from, to); err != nil {
		panic(err)
	}
	return from
}

// raw goes around the store.
func (b *harness) raw(query string, args ...any) error {
	b.alters()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.settings.DataDir, sqlite.FileName)+"?_pragma=busy_timeout(2000)")
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(b.t.Context(), query, args...)
	return err
}

// refusedQuietly expects UNDO_CONFLICT, and that the one file that could be undone was not.
func (u *undoing) refusedQuietly(says string, in dispatch.UndoRequest) {
	u.t.Helper()
	plan := u.plan(in)
	if len(plan.Conflicts(in.Force)) != 1 {
		u.t.Errorf("the plan has the conflicts %+v", plan.Conflicts(in.Force))
	}
	_, err := u.conn.Undos.Undo(u.t.Context(), in)
	if regie.CodeOf(err) != regie.CodeUndoConflict || !strings.Contains(err.Error(), says) {
		u.t.Errorf("got %q (%v), want UNDO_CONFLICT with %q", regie.CodeOf(err), err, says)
	}
	if data, err := os.ReadFile(filepath.Join(u.root, "b.txt")); err != nil || string(data) != "B1\n" {
		u.t.Errorf("b.txt holds %q, %v: something was undone", data, err)
	}
	left, err := filepath.Glob(filepath.Join(u.root, ".regie-*"))
	if err != nil || len(left) > 0 {
		u.t.Errorf("left behind: %v", left)
	}
	u.verified()
}

// gated is a harness whose store says when it commits.
func (u *undoing) gated(gate func(committed, wrote bool) error) {
	u.t.Helper()
	fatal(u.t, u.conn.Close())
	u.conn = u.attach(app.Options{TuneStore: func(c *sqlite.Config) { c.Gate = gate }})
}

// TestUndoMeanwhile changes a file when its undo is intended already, and before it is put back: it
// stays as it is, the undo says so, the others go back, and what was left can be undone again.
func TestUndoMeanwhile(t *testing.T) {
	t.Parallel()
	u := newUndoing(t, newModel(t, replyWith("", over("a", "a.txt", "A1\n"), over("b", "b.txt", "B1\n")), replyWith("ok")), map[string]string{"a.txt": "A0\n"})
	u.alters()
	run := u.say(regie.NewID(), "go")
	var armed atomic.Bool
	u.gated(func(committed, wrote bool) error {
		if committed && wrote && armed.Load() {
			var open int
			db, err := sql.Open("sqlite", "file:"+filepath.Join(u.settings.DataDir, sqlite.FileName))
			if err == nil {
				err = db.QueryRowContext(t.Context(), "SELECT count(*) FROM undos WHERE state = 'INTENDED'").Scan(&open)
			}
			if err != nil || db.Close() != nil {
				t.Error(err)
			}
			if open == 1 {
				u.put("a.txt", "mine\n")
				armed.Store(false)
			}
		}
		return nil
	})
	armed.Store(true)
	done, err := u.conn.Undos.Undo(t.Context(), dispatch.UndoRequest{Root: u.root})
	if err != nil || done.State != regie.UndoDone || done.Left() != 1 || armed.Load() {
		t.Fatalf("%+v, %v", done, err)
	}
	if f := done.Files[0]; f.Path != "a.txt" || f.Outcome != regie.FileNotUndone || f.Code != regie.CodeFileChanged || f.Why == nil {
		t.Errorf("it says of a.txt: %+v", f)
	}
	u.holds("the others went back", map[string]string{"a.txt": "mine\n"})
	u.verified()
	u.refused(regie.CodeUndoConflict, "a.txt", dispatch.UndoRequest{Target: run.RoundID})
	u.put("a.txt", "A1\n")
	u.undo(dispatch.UndoRequest{Target: run.RoundID})
	u.holds("the rest", map[string]string{"a.txt": "A0\n"})
}

// dying is what the child of TestUndoKilled is told.
type dying struct {
	Settings config.Config
	In       dispatch.UndoRequest
	After    int // commits of the undo
}

// TestUndoKilled kills an undo with SIGKILL at each of its commits, before and after: the next
// engine ends it, once, before anything else.
func TestUndoKilled(t *testing.T) {
	t.Parallel()
	if in := (dying{}); isChild(t, &in) {
		undoAndDie(t, in)
		return
	}
	// What the three files hold is kept, the undo is intended, the undo is done: each has a before
	// and an after.
	for after := range 9 {
		u := newUndoing(t, newModel(t, replyWith("", over("a", "a.txt", "A1\n"), over("b", "n/b.txt", "B1\n"), over("c", "c.txt", "C1\n")), replyWith("ok"), replyWith("again")),
			map[string]string{"a.txt": "A0\n", "c.txt": "C0\n"})
		zero, session := u.tree(), regie.NewID()
		run := u.say(session, "go")
		one := u.tree()
		fatal(t, u.conn.Close())
		in := dispatch.UndoRequest{UndoID: regie.NewID(), Target: run.RoundID}
		child := u.child(dying{u.settings, in, after})
		out, err := child.CombinedOutput()
		status, ok := child.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || status.Signal() != syscall.SIGKILL {
			if after < 6 {
				t.Fatalf("%d: the child was not killed: %v\n%s", after, err, out)
			}
			break // there are no more commits
		}
		u.conn = u.connect()
		view := u.round(u.conn, run.RoundID)
		switch {
		case len(view.Undos) == 0:
			u.holds("nothing was intended, so nothing has changed", one)
		case view.Undos[0].State != regie.UndoDone || view.Undos[0].Left() > 0:
			t.Errorf("%d: it was not ended: %+v", after, view.Undos[0])
		default:
			u.holds("ended", zero)
		}
		u.undo(in) // whoever asked for it asks again
		u.holds("undone", zero)
		u.say(session, "and now?")
		if err := u.conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

func undoAndDie(t *testing.T, in dying) {
	t.Helper()
	var left atomic.Int64
	left.Store(1 << 40)
	conn, err := app.Connect(context.Background(), app.Options{Config: in.Settings, StoreOnly: true, TuneStore: func(c *sqlite.Config) {
		c.Gate = func(bool, bool) error {
			if left.Add(-1) < 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			return nil
		}
	}})
	fatal(t, err)
	left.Store(int64(in.After))
	if _, err := conn.Undos.Undo(context.Background(), in.In); err != nil {
		t.Fatal(err)
	}
}

// TestUndoAgainstRuns undoes from one process while another starts runs in the same session:
// whichever comes first, no run begins while an undo is under way, and none is lost.
func TestUndoAgainstRuns(t *testing.T) {
	t.Parallel()
	m := newModel(t, append([]http.HandlerFunc{replyWith("", over("a", "a.txt", "A1\n"), over("b", "b.txt", "B1\n")), replyWith("ok")}, slices.Repeat([]http.HandlerFunc{replyWith("more")}, 8)...)...)
	u := newUndoing(t, m, map[string]string{"a.txt": "A0\n"})
	other := u.connect()
	session := regie.NewID()
	run := u.say(session, "go")
	target, undone := run.RoundID, 0
	for range 6 {
		var wg sync.WaitGroup
		var done regie.Undo
		var failed error
		var next dispatch.Run
		wg.Go(func() { done, failed = other.Undos.Undo(t.Context(), dispatch.UndoRequest{Target: target}) })
		wg.Go(func() {
			in := u.request(everything)
			in.SessionID, in.Text = session, "and"
			var err error
			if next, err = u.conn.Submit(t.Context(), in); err != nil {
				t.Errorf("a message was refused: %v", err)
			}
		})
		wg.Wait()
		switch code := regie.CodeOf(failed); {
		case failed == nil:
			undone, target = undone+1, done.ID
		case code != regie.CodeRoundInProgress:
			t.Errorf("the undo: %v", failed)
		}
		u.await(u.conn, next)
	}
	events := u.events(session)
	under := false
	for i := range events {
		var body struct{ State string }
		fatal(t, json.Unmarshal(events[i].Body, &body))
		switch {
		case events[i].Type == regie.EventUndo:
			under = body.State == string(regie.UndoIntended)
		case events[i].Type == regie.EventRound && under:
			t.Errorf("row %d: a run goes on while an undo is under way", i+1)
		}
	}
	t.Logf("%d undos came between", undone)
	u.verified()
}

// events is all of a session's log.
func (u *undoing) events(session regie.ID) (out []regie.Event) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), time.Minute)
	defer cancel()
	view, err := u.conn.Session(u.t.Context(), session)
	fatal(u.t, err)
	err = u.conn.Events(ctx, session, 0, func(item dispatch.Item) error {
		if item.Event != nil {
			out = append(out, *item.Event)
		}
		if int64(len(out)) >= view.Head {
			return errSeen
		}
		return nil
	})
	if !errors.Is(err, errSeen) {
		u.t.Fatal(err)
	}
	return slices.Clip(out)
}

// column is what a query gives, in one text.
func (u *undoing) column(query string) string {
	u.t.Helper()
	u.alters()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(u.settings.DataDir, sqlite.FileName))
	fatal(u.t, err)
	defer db.Close()
	rows, err := db.QueryContext(u.t.Context(), query)
	fatal(u.t, err)
	defer rows.Close()
	var out strings.Builder
	for rows.Next() {
		var value sql.NullString
		fatal(u.t, rows.Scan(&value))
		out.WriteString(value.String + "\n")
	}
	fatal(u.t, rows.Err())
	return out.String()
}
