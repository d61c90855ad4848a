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

// taking is a tool of somebody else that deletes files: it says itself what it did
// (tool.Sides.Changes).
func taking(t *testing.T) tool.Tool {
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
			if _, err := inv.Keep(ctx, data); err != nil {
				return nil, err
			}
			return json.Marshal(c)
		},
		Run: func(_ context.Context, inv *tool.Invocation, args nameArgs) (tool.Result, error) {
			return tool.Result{Content: "gone"}, os.Remove(filepath.Join(inv.Workspace.Root, args.Name))
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

// TestUndoDeleted restores files that any tool deleted, with their permissions and directories.
// Where somebody puts a directory in a file's place nothing is undone.
func TestUndoDeleted(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("", take("a", "d/a.sh"), take("b", "b.txt"), over("f", "c.txt", "c1\n"), take("g", "c.txt")), replyWith("ok"))
	u := newUndoing(t, m, map[string]string{"d/a.sh": "echo\n", "b.txt": "b\n", "c.txt": "c0\n"}, taking(t))
	fatal(t, os.Chmod(filepath.Join(u.root, "d", "a.sh"), 0o700))
	zero := u.tree()
	run := u.say(regie.NewID(), "go")
	if err := os.Remove(filepath.Join(u.root, "d")); err != nil { // nothing is in it any more
		t.Fatal(err)
	}
	one := u.tree()
	plan := u.plan(dispatch.UndoRequest{Root: u.root})
	if len(plan.Conflicts(false)) > 0 || len(plan.Files) != 3 || len(plan.Effects) > 0 || strings.Join(plan.Makes, " ") != "d" {
		t.Fatalf("the plan is %+v", plan)
	}
	u.put("b.txt/mine.txt", "mine\n")
	u.refused(regie.CodeUndoConflict, "b.txt (b.txt is a directory)", dispatch.UndoRequest{Root: u.root, Force: true})
	fatal(t, os.RemoveAll(filepath.Join(u.root, "b.txt")))
	done := u.undo(dispatch.UndoRequest{Root: u.root, Plan: plan.Plan})
	u.holds("undone", zero)
	if info, err := os.Stat(filepath.Join(u.root, "d", "a.sh")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("d/a.sh has the permissions %v, %v", info.Mode(), err)
	}
	again := u.undo(dispatch.UndoRequest{Target: done.ID})
	u.holds("redone", one)
	u.undo(dispatch.UndoRequest{Target: again.ID})
	u.holds("undone again", zero)
	view, err := u.conn.Get(t.Context(), run.RoundID)
	if err != nil || len(view.Undos) != 3 {
		t.Errorf("%d undos, %v", len(view.Undos), err)
	}
}
