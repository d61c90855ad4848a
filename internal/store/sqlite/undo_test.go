package sqlite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/storetest"
)

// undone fills a store with an undo that is done and one that is not.
func undone(t *testing.T, w *storetest.World) (done regie.Undo) {
	t.Helper()
	u := w.UndoOf(w.Acted(w.Submission("go")))
	held, err := w.Store.BeginUndo(t.Context(), u, "test")
	must(t, err)
	done, err = w.Store.FinishUndo(t.Context(), storetest.Finished(held))
	must(t, err)
	_, err = w.Store.BeginUndo(t.Context(), w.UndoOf(w.Acted(w.Submission("go on"))), "test")
	must(t, err)
	return done
}

// TestVerifyFindsTamperedUndos alters what an undo says behind the store's back: verify names it.
func TestVerifyFindsTamperedUndos(t *testing.T) {
	for column, query := range map[string]string{
		"author":     "UPDATE undos SET author = 'eve'",
		"forced":     "UPDATE undos SET forced = 1",
		"chat":       "UPDATE undos SET chat = 0",
		"round_id":   "UPDATE undos SET round_id = (SELECT id FROM rounds WHERE id <> undos.round_id)",
		"undoes":     "UPDATE undos SET undoes = (SELECT id FROM undos u WHERE u.id <> undos.id)",
		"seq":        "UPDATE undos SET seq = seq + 1",
		"makes":      "UPDATE undos SET makes = '[]'",
		"removes":    "UPDATE undos SET removes = '[\"x\"]'",
		"effects":    "UPDATE undos SET effects = '[]'",
		"created_at": "UPDATE undos SET created_at = created_at + 1",
		"done_at":    "UPDATE undos SET done_at = done_at + 1",
		"message_id": "UPDATE undos SET message_id = (SELECT id FROM messages LIMIT 1)",
		"files":      "UPDATE undo_files SET path = 'z' WHERE ordinal = 0",
		"files ":     "UPDATE undo_files SET outcome = 'UNDONE', code = NULL, why = NULL WHERE ordinal = 1",
		"files  ":    "UPDATE undo_files SET to_hash = from_hash WHERE ordinal = 0",
		"files   ":   "UPDATE undo_files SET from_perm = 511 WHERE ordinal = 0",
		"missing":    "DELETE FROM undo_files; DELETE FROM undos",
		"superseded": "UPDATE messages SET superseded = 1 - superseded",
	} {
		t.Run(column, func(t *testing.T) {
			dir := t.TempDir()
			w := storetest.NewWorld(t, open(t, dir))
			done := undone(t, w)
			db := rawWith(t, dir, "foreign_keys(0)")
			_, err := w.Store.Verify(t.Context(), done.SessionID)
			must(t, err)
			query = strings.ReplaceAll(strings.ReplaceAll(query, "UPDATE undos SET", "UPDATE OR IGNORE undos SET"), "UPDATE OR IGNORE undos SET undoes", "UPDATE undos SET undoes")
			_, err = db.ExecContext(t.Context(), query)
			must(t, err)
			_, err = w.Store.Verify(t.Context(), done.SessionID)
			if regie.CodeOf(err) != regie.CodeChainBroken || !strings.Contains(err.Error(), strings.TrimSpace(column)) {
				t.Errorf("got %v, want %q", err, column)
			}
		})
	}
}

// TestUndoOfChildren finds what the sub-agents of a round did as part of it (decision 16).
func TestUndoOfChildren(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	w := storetest.NewWorld(t, s)
	parent := w.Acted(w.Submission("go"))
	source, err := s.UndoSource(t.Context(), parent.RoundID)
	must(t, err)
	child, grandchild := w.Acted(w.Submission("help")), w.Acted(w.Submission("help the help"))
	adopt := func(child regie.ID, call regie.ID) {
		_, err := raw(t, dir).ExecContext(t.Context(), `UPDATE sessions SET type = 'SUBAGENT', parent_call = ? WHERE id = ?`, call, child)
		must(t, err)
	}
	adopt(child.SessionID, source.Calls[0].ID)
	inner, err := s.UndoSource(t.Context(), child.RoundID)
	must(t, err)
	adopt(grandchild.SessionID, inner.Calls[0].ID)
	source, err = s.UndoSource(t.Context(), parent.RoundID)
	must(t, err)
	var rounds []regie.ID
	for i := range source.Calls {
		rounds = append(rounds, source.Calls[i].RoundID)
	}
	if diff := cmp.Diff([]regie.ID{parent.RoundID, child.RoundID, grandchild.RoundID}, rounds); diff != "" {
		t.Errorf("calls of (-want +got):\n%s", diff)
	}
	if time.Since(source.Calls[0].StartedAt) > time.Hour {
		t.Error("the calls have no start")
	}
}
