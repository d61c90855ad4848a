package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// openNext opens a data directory as the program with the next migration would.
func openNext(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	next, err := storetest.NextMigrations("migrations")
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir, Migrations: next})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// old makes a database of the present schema with a round in the middle of a batch, and returns
// what its log and its round looked like.
func old(t *testing.T) (dir string, before store.VerifyReport, view store.RoundView) {
	t.Helper()
	dir = t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	w := storetest.NewWorld(t, s)
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery, regie.KindAction)
	if err := w.AppendReply(fence, reply); err != nil {
		t.Fatal(err)
	}
	if err := w.CommitCalls(fence, store.Settle{Exchange: 1, Start: &reply.Calls[1]}); err != nil {
		t.Fatal(err)
	}
	if view, err = s.RoundView(t.Context(), fence.RoundID); err != nil {
		t.Fatal(err)
	}
	if before, err = s.Verify(t.Context(), fence.SessionID); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, before, view
}

func listBackups(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, sqlite.FileName+".before-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestMigration brings a database to the next schema: what was there is there, its log verifies, it
// can be written, and beside it lies a whole copy of what was.
func TestMigration(t *testing.T) {
	dir, before, view := old(t)
	for _, end := range []string{".unfinished", ".unfinished-journal"} {
		cut := filepath.Join(dir, sqlite.FileName+".before-99999.20200101T000000.000000000"+end)
		if err := os.WriteFile(cut, []byte("cut short by a death"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := openNext(t, dir)
	after, err := s.Verify(t.Context(), view.Session.ID)
	if err != nil {
		t.Fatal(err)
	}
	now, err := s.RoundView(t.Context(), view.Round.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{before, view}, []any{after, now}); diff != "" {
		t.Errorf("the migration changed (-before +after):\n%s", diff)
	}
	claimed, err := s.Claim(t.Context(), view.Round.ID, "somebody")
	if err != nil || len(claimed.Calls) != 2 || claimed.Calls[1].State != regie.CallStarted {
		t.Errorf("the round cannot go on: %+v, %v", claimed.Calls, err)
	}
	kept := listBackups(t, dir)
	if len(kept) != 1 || strings.HasSuffix(kept[0], ".unfinished") {
		t.Fatalf("backups: %v", kept)
	}
	if info, err := os.Stat(kept[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup is %v, %v", info.Mode(), err)
	}
	// The copy is a database of the old schema that opens and migrates as its original.
	other := t.TempDir()
	for from, to := range map[string]string{kept[0]: sqlite.FileName, filepath.Join(dir, "audit.key"): "audit.key"} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(other, to), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	restored := openNext(t, other)
	if report, err := restored.Verify(t.Context(), view.Session.ID); err != nil || report != before {
		t.Errorf("the backup verifies as %+v, %v", report, err)
	}
	if err := restored.QuickCheck(t.Context()); err != nil {
		t.Error(err)
	}
	if again := listBackups(t, other); len(again) != 1 {
		t.Errorf("the backup was not of the old schema: %v", again)
	}
}

// TestMigratesOnce opens a migrated database again: nothing is copied any more.
func TestMigratesOnce(t *testing.T) {
	dir, _, _ := old(t)
	for range 2 {
		if err := openNext(t, dir).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if kept := listBackups(t, dir); len(kept) != 1 {
		t.Errorf("backups: %v", kept)
	}
}

// TestNewerSchema opens a database that a newer program has migrated: it is refused, and nothing of
// it changes.
func TestNewerSchema(t *testing.T) {
	dir, _, _ := old(t)
	path := filepath.Join(dir, sqlite.FileName)
	db := raw(t, dir)
	if _, err := db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir}); regie.CodeOf(err) != regie.CodeNewerSchema {
		t.Errorf("opened: %v", err)
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) || len(listBackups(t, dir)) != 0 {
		t.Errorf("the newer database was touched: %v, backups %v", err, listBackups(t, dir))
	}
}
