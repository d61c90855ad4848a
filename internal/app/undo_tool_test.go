package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/tool"
)

// taking is a tool of somebody else that deletes files: it says itself what it did (tool.Undoer).
// What is named big goes into the trash.
func taking(t *testing.T, trash func() string) tool.Tool {
	t.Helper()
	read := func(inv *tool.Invocation) (c regie.FileChange, err error) {
		err = json.Unmarshal(inv.Intent, &c)
		return c, err
	}
	out, err := tool.New(regie.ToolDefinition{Name: "x.take", Description: "deletes", Kind: regie.KindAction, Class: regie.ClassOnce, Risk: regie.RiskInternal}, tool.Handler[nameArgs]{
		Prepare: func(ctx context.Context, inv *tool.Invocation, args nameArgs) (json.RawMessage, error) {
			path := filepath.Join(inv.Workspace.Root, args.Name)
			data, err := os.ReadFile(path)
			info, failed := os.Stat(path)
			if err = errors.Join(err, failed); err != nil {
				return nil, err
			}
			c := regie.FileChange{Path: args.Name, Before: regie.FileState{Hash: regie.HashOf(data), Size: info.Size(), Perm: info.Mode().Perm()}, Kept: true}
			if strings.HasPrefix(args.Name, "big") {
				c.Trash, c.Kept, c.Before.Hash = inv.CallID.String()+"/"+args.Name, false, regie.HashOf([]byte("what the system says of it"))
			} else if _, err := inv.Keep(ctx, data); err != nil {
				return nil, err
			}
			return json.Marshal(c)
		},
		Run: func(_ context.Context, inv *tool.Invocation, args nameArgs) (tool.Result, error) {
			c, err := read(inv)
			path := filepath.Join(inv.Workspace.Root, args.Name)
			switch {
			case err != nil:
			case c.Trash != "":
				to := filepath.Join(trash(), c.Trash)
				if err = os.MkdirAll(filepath.Dir(to), 0o700); err == nil {
					err = os.Rename(path, to)
				}
			default:
				err = os.Remove(path)
			}
			return tool.Result{Content: "gone"}, err
		},
		Changes: func(_ context.Context, inv *tool.Invocation) ([]regie.FileChange, error) {
			c, err := read(inv)
			return []regie.FileChange{c}, err
		},
	})
	fatal(t, err)
	return out
}

func take(id, name string) call { return call{id, "x__take", `{"name":"` + name + `"}`} }

// TestUndoDeleted restores files that any tool deleted, with their permissions and directories:
// also where the round then put a directory in the place of one, and one that was too large for a
// blob.
func TestUndoDeleted(t *testing.T) {
	t.Parallel()
	var u *undoing
	m := newModel(t, says("", take("a", "d/a.sh"), take("b", "b.txt"), over("c", "b.txt/now/a/directory.txt", "x\n"), take("e", "big.bin"), over("f", "c.txt", "c1\n"), take("g", "c.txt")),
		says("ok"))
	u = newUndoing(t, m, map[string]string{"d/a.sh": "echo\n", "b.txt": "b\n", "big.bin": "very much\n", "c.txt": "c0\n"},
		taking(t, func() string { return filepath.Join(u.settings.DataDir, "trash") }))
	fatal(t, os.Chmod(filepath.Join(u.root, "d", "a.sh"), 0o700))
	zero := u.tree()
	run := u.say(regie.NewID(), "go")
	if err := os.Remove(filepath.Join(u.root, "d")); err != nil { // nothing is in it any more
		t.Fatal(err)
	}
	one := u.tree()
	if _, there := one["big.bin"]; there || one["b.txt/now/a/directory.txt"] != "x\n" {
		t.Fatalf("the round left %v", one)
	}
	plan := u.plan(dispatch.UndoRequest{Root: u.root})
	if len(plan.Conflicts(false)) > 0 || len(plan.Files) != 5 || len(plan.Effects) > 0 || strings.Join(plan.Makes, " ") != "d" {
		t.Fatalf("the plan is %+v", plan)
	}
	done := u.undo(dispatch.UndoRequest{Root: u.root, Plan: plan.Plan})
	u.holds("undone", zero)
	if info, err := os.Stat(filepath.Join(u.root, "d", "a.sh")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("d/a.sh has the permissions %v, %v", info.Mode(), err)
	}
	again := u.undo(dispatch.UndoRequest{Target: done.ID})
	u.holds("redone", one)
	u.put("b.txt/mine.txt", "mine\n")
	u.refused(regie.CodeUndoConflict, "b.txt (b.txt is a directory)", dispatch.UndoRequest{Target: again.ID})
	fatal(t, os.Remove(filepath.Join(u.root, "b.txt", "mine.txt")))
	if err := os.RemoveAll(filepath.Join(u.settings.DataDir, "trash")); err != nil { // its content is a blob by now
		t.Fatal(err)
	}
	u.undo(dispatch.UndoRequest{Target: again.ID})
	u.holds("undone again", zero)
	view, err := u.conn.Get(t.Context(), run.RoundID)
	if err != nil || len(view.Undos) != 3 {
		t.Errorf("%d undos, %v", len(view.Undos), err)
	}
}

// TestUndoBesideLargeFile takes back what else a round did where it deleted a file that is too
// large to be put back, says where that lies, and does not come back to it.
func TestUndoBesideLargeFile(t *testing.T) {
	t.Parallel()
	m := newModel(t, says("", over("a", "a.txt", "a1\n")), says("ok"),
		says("", over("b", "a.txt", "a2\n"), call{"d", "files__delete_file", `{"path":"large.bin"}`}), says("done"))
	u := newUndoing(t, m, map[string]string{"a.txt": "a0\n", "large.bin": "x"})
	large := filepath.Join(u.root, "large.bin")
	fatal(t, os.Truncate(large, 64<<20+1))
	session := regie.NewID()
	u.say(session, "one")
	second := u.say(session, "two")
	plan := u.plan(dispatch.UndoRequest{Root: u.root})
	if len(plan.Conflicts(false)) > 0 || len(plan.Files) != 1 || len(plan.Effects) != 1 || plan.Effects[0].Tool != "files.delete_file" || plan.RoundID != second.RoundID {
		t.Fatalf("the plan is %+v", plan)
	}
	lies := plan.Effects[0].Trash
	u.undo(dispatch.UndoRequest{Root: u.root, Plan: plan.Plan})
	if got := u.tree()["a.txt"]; got != "a1\n" {
		t.Errorf("a.txt holds %q", got)
	}
	u.refused(regie.CodeConflict, lies, dispatch.UndoRequest{Target: second.RoundID})
	fatal(t, os.Rename(lies, large))
	u.refused(regie.CodeConflict, "undone already", dispatch.UndoRequest{Target: second.RoundID})
	u.undo(dispatch.UndoRequest{Root: u.root}) // the run before
	if got := u.tree()["a.txt"]; got != "a0\n" {
		t.Errorf("a.txt holds %q", got)
	}
}

// TestUndoWithoutTrash refuses where what was deleted is no longer in the trash.
func TestUndoWithoutTrash(t *testing.T) {
	t.Parallel()
	var u *undoing
	u = newUndoing(t, newModel(t, says("", take("e", "big.bin")), says("ok")), map[string]string{"big.bin": "very much\n"},
		taking(t, func() string { return filepath.Join(u.settings.DataDir, "trash") }))
	u.say(regie.NewID(), "go")
	fatal(t, os.RemoveAll(filepath.Join(u.settings.DataDir, "trash")))
	u.refused(regie.CodeUndoConflict, "no longer in the trash", dispatch.UndoRequest{Root: u.root, Force: true})
}
