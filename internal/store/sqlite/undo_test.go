package sqlite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/storetest"
)

// undoRefusals are what the specification forbids of undos, in plain SQL (decision 16): see
// refusals.
var undoRefusals = map[string]refusal{
	"undo that comes done":              {"INSERT INTO undos SELECT randomblob(16), session, workspace_id, round_id, NULL, 'DONE', 0, 0, '[]', '[]', '[]', 'x', 1, message_id, 1, 1 FROM undos WHERE state = 'DONE'", "comes once, intended"},
	"undo replaced":                     {"INSERT OR REPLACE INTO undos SELECT id, session, workspace_id, round_id, NULL, 'INTENDED', 0, 0, '[]', '[]', '[]', 'x', 1, NULL, 1, NULL FROM undos WHERE state = 'DONE'", "comes once"},
	"second undo of a workspace":        {"INSERT INTO undos SELECT randomblob(16), session, workspace_id, round_id, NULL, 'INTENDED', 0, 0, '[]', '[]', '[]', 'x', 1, NULL, 1, NULL FROM undos WHERE state = 'DONE'", "one at a time"},
	"open undo replaced by another":     {"INSERT OR REPLACE INTO undos SELECT randomblob(16), session, workspace_id, round_id, NULL, 'INTENDED', 0, 0, '[]', '[]', '[]', 'x', 1, NULL, 1, NULL FROM undos WHERE state = 'INTENDED'", "one at a time"},
	"undo of an open round":             {"INSERT INTO undos SELECT randomblob(16), r.session, randomblob(16), r.id, NULL, 'INTENDED', 0, 0, '[]', '[]', '[]', 'x', 1, NULL, 1, NULL FROM rounds r WHERE r.state <> 'ENDED' LIMIT 1", "undo is refused|of a round that has ended"},
	"undo in another workspace":         {"INSERT INTO undos SELECT randomblob(16), session, randomblob(16), round_id, NULL, 'INTENDED', 0, 0, '[]', '[]', '[]', 'x', 1, NULL, 1, NULL FROM undos WHERE state = 'DONE'", "comes once"},
	"undo of what is not done":          {"INSERT INTO undos SELECT randomblob(16), session, workspace_id, round_id, id, 'INTENDED', 0, 0, '[]', '[]', '[]', 'x', 1, NULL, 1, NULL FROM undos WHERE state = 'INTENDED'", "of a done undo"},
	"round while an undo is under way":  {"INSERT INTO rounds (id, session, number, reason, state, phase, exchange, limits, epoch, trace_id, agent, provider, model, started_at) SELECT randomblob(16), r.session, 99, r.reason, 'RUNNING', 'MODEL', 1, r.limits, 9, '', '', '', '', 1 FROM rounds r JOIN undos u ON u.round_id = r.id WHERE u.state = 'INTENDED'", "while an undo is under way"},
	"undo done before its files":        {"UPDATE undos SET state = 'DONE', done_at = 1, message_id = (SELECT id FROM messages LIMIT 1) WHERE state = 'INTENDED'", "what became of each of its files"},
	"undo without its message":          {"UPDATE undos SET state = 'DONE', done_at = 1 WHERE state = 'INTENDED'", "CHECK|what became"},
	"undo done again":                   {"UPDATE undos SET done_at = 2 WHERE state = 'DONE'", "done once"},
	"undo taken back":                   {"UPDATE undos SET state = 'INTENDED', done_at = NULL, message_id = NULL WHERE state = 'DONE'", "done once"},
	"undo by somebody else":             {"UPDATE undos SET author = 'eve'", "changes in nothing else"},
	"undo that was not forced":          {"UPDATE undos SET forced = 1 - forced WHERE state = 'INTENDED'", "changes in nothing else"},
	"undo of another round":             {"UPDATE undos SET round_id = randomblob(16)", "changes in nothing else"},
	"undo with other effects":           {"UPDATE undos SET effects = '[]' WHERE state = 'DONE'", "changes in nothing else"},
	"file of a done undo":               {"INSERT INTO undo_files (undo_id, ordinal, path, from_size, from_perm, to_size, to_perm) SELECT id, 9, 'z', 0, 0, 0, 0 FROM undos WHERE state = 'DONE'", "intended"},
	"file twice":                        {"INSERT INTO undo_files (undo_id, ordinal, path, from_size, from_perm, to_size, to_perm) SELECT undo_id, 9, path, 0, 0, 0, 0 FROM undo_files WHERE outcome IS NULL", "comes once"},
	"file replaced":                     {"INSERT OR REPLACE INTO undo_files (undo_id, ordinal, path, from_size, from_perm, to_size, to_perm) SELECT undo_id, ordinal, 'z', 0, 0, 0, 0 FROM undo_files WHERE outcome IS NULL", "comes once"},
	"file whose content is not kept":    {"INSERT INTO undo_files (undo_id, ordinal, path, from_hash, from_size, from_perm, to_size, to_perm) SELECT id, 9, 'z', zeroblob(32), 0, 0, 0, 0 FROM undos WHERE state = 'INTENDED'", "contents are kept"},
	"file whose content before is gone": {"INSERT INTO undo_files (undo_id, ordinal, path, from_size, from_perm, to_hash, to_size, to_perm) SELECT id, 9, 'z', 0, 0, zeroblob(32), 0, 0 FROM undos WHERE state = 'INTENDED'", "contents are kept"},
	"file without a name":               {"INSERT INTO undo_files (undo_id, ordinal, path, from_size, from_perm, to_size, to_perm) SELECT id, 9, '', 0, 0, 0, 0 FROM undos WHERE state = 'INTENDED'", "comes once"},
	"outcome changed":                   {"UPDATE undo_files SET outcome = 'UNDONE', code = NULL, why = NULL WHERE outcome = 'NOT_UNDONE'", "said once"},
	"another file":                      {"UPDATE undo_files SET path = 'z'", "nothing else of it changes"},
	"another content":                   {"UPDATE undo_files SET to_hash = from_hash WHERE to_hash IS NOT NULL", "nothing else of it changes"},
	"content erased before its session": {"UPDATE undo_files SET path = '', why = NULL, from_hash = NULL, to_hash = NULL", "nothing else of it changes"},
	"reason of what went back":          {"UPDATE undo_files SET outcome = 'UNDONE', why = '{}' WHERE outcome IS NULL", "CHECK"},
	"message superseded by nobody":      {"UPDATE messages SET superseded = 1 WHERE session IN (SELECT session FROM undos WHERE state = 'DONE') AND superseded = 0", "only by an undo of the chat"},
	"superseded message that counts":    {"UPDATE messages SET superseded = 0 WHERE superseded = 1", "only by an undo of the chat"},
}

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
			for _, trigger := range []string{"undos_done_once", "undo_files_settle_once", "undos_never_go", "undo_files_never_go", "messages_superseded"} {
				_, err := db.ExecContext(t.Context(), "DROP TRIGGER "+trigger)
				must(t, err)
			}
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
		_, err := raw(t, dir).ExecContext(t.Context(), `DROP TRIGGER IF EXISTS sessions_identity; UPDATE sessions SET type = 'SUBAGENT', parent_call = ? WHERE id = ?`, call, child)
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
