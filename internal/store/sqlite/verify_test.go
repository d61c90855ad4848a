package sqlite_test

import (
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestVerifyFindsTampering alters rows behind the store's back; verify names the first one
// (decision 15).
func TestVerifyFindsTampering(t *testing.T) {
	for name, c := range map[string]struct{ sql, says string }{
		"body":         {"DROP TRIGGER bodies_never_change; UPDATE event_bodies SET body = replace(body, 'go', 'no') WHERE n = 2", "the body of row 2"},
		"row":          {"DROP TRIGGER events_never_change; UPDATE events SET at = at + 1 WHERE seq = 3", "row 3 was altered"},
		"row gone":     {"DROP TRIGGER events_never_go; DELETE FROM events WHERE seq = 2", "row 2 is missing"},
		"tail gone":    {"DROP TRIGGER events_never_go; DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)", "its head says"},
		"row beyond":   {"INSERT INTO events SELECT max(n) + 1, chain, max(seq) + 1, type, at, body, mac FROM events", "row 7 is beyond the head"},
		"row far away": {"DROP TRIGGER events_come_once; INSERT INTO events SELECT max(n) + 1, chain, 99, type, at, body, mac FROM events", "row 99 is beyond the head"},
		"head forged":  {"INSERT INTO events SELECT max(n) + 1, chain, max(seq) + 1, type, at, body, zeroblob(32) FROM events; UPDATE chains SET head = head + 1, mac = zeroblob(32)", "row 7 was altered"},
		"result":       {"UPDATE calls SET result = 'better'", ": result"},
		"arguments":    {"UPDATE calls SET arguments = '{}'", ": arguments"},
		"call removed": {"PRAGMA foreign_keys = 0; DELETE FROM calls", "is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := storetest.NewWorld(t, open(t, dir))
			fence := w.Start()
			reply := w.Reply(fence, 1, regie.KindQuery)
			if err := w.AppendReply(fence, reply); err != nil {
				t.Fatal(err)
			}
			if err := w.CommitCalls(fence, w.Settled(1, reply.Calls)); err != nil {
				t.Fatal(err)
			}
			if _, err := raw(t, dir).ExecContext(t.Context(), c.sql); err != nil {
				t.Fatal(err)
			}
			_, err := w.Store.Verify(t.Context(), fence.SessionID)
			if regie.CodeOf(err) != regie.CodeChainBroken || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	t.Run("a body that is gone without a word", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir)
		fence := storetest.NewWorld(t, s).Start()
		if _, err := raw(t, dir).ExecContext(t.Context(), "DROP TRIGGER bodies_go_with_a_word; DELETE FROM event_bodies WHERE n = 2"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Verify(t.Context(), fence.SessionID); regie.CodeOf(err) != regie.CodeChainBroken || !strings.Contains(err.Error(), "no row says that it was erased") {
			t.Errorf("got %v", err)
		}
		if err := s.TellErased(t.Context(), fence.SessionID); err != nil {
			t.Fatal(err)
		}
		if report, err := s.Verify(t.Context(), fence.SessionID); err != nil || report.Erased != 1 {
			t.Errorf("told: %+v, %v", report, err)
		}
	})
}
