package sqlite_test

import (
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

func openReadOnly(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestReadOnlyBesideAnEngine reads while the store is open for writing: each read sees what was
// acknowledged before it.
func TestReadOnlyBesideAnEngine(t *testing.T) {
	dir := t.TempDir()
	w := storetest.NewWorld(t, open(t, dir))
	fence := w.Start()
	s := openReadOnly(t, dir)
	want := int64(3)
	for exchange := 1; exchange <= 5; exchange++ {
		reply := w.Reply(fence, exchange, regie.KindQuery)
		if err := w.AppendReply(fence, reply); err != nil {
			t.Fatal(err)
		}
		if err := w.CommitCalls(fence, w.Settled(exchange, reply.Calls)); err != nil {
			t.Fatal(err)
		}
		want += 3
		report, err := s.Verify(t.Context(), fence.SessionID)
		if err != nil || report.Events != want {
			t.Fatalf("verify found %d rows, want %d; %v", report.Events, want, err)
		}
	}
	view, err := s.RoundView(t.Context(), fence.RoundID)
	if err != nil || len(view.Exchanges) != 6 {
		t.Errorf("%d exchanges, %v", len(view.Exchanges), err)
	}
	if err := s.QuickCheck(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestReadOnlyWritesNothing tries each transition, and each way to be without what a writer would
// make.
func TestReadOnlyWritesNothing(t *testing.T) {
	dir := t.TempDir()
	w := storetest.NewWorld(t, open(t, dir))
	fence := w.Start()
	s := openReadOnly(t, dir)
	before := dumpOf(t, dir)
	for name, fn := range map[string]func() error{
		"EnsureUser": func() error { _, err := s.EnsureUser(t.Context(), "eve"); return err },
		"EnsureWorkspace": func() error {
			_, err := s.EnsureWorkspace(t.Context(), w.User, regie.Workspace{Root: "/x"})
			return err
		},
		"CreateSession": func() error { _, err := s.CreateSession(t.Context(), *w.Submission("x").New); return err },
		"Submit":        func() error { _, err := s.Submit(t.Context(), w.Submission("x")); return err },
		"Claim":         func() error { _, err := s.Claim(t.Context(), fence.RoundID, "x"); return err },
		"Release":       func() error { return s.Release(t.Context(), fence) },
		"AppendReply":   func() error { _, err := s.AppendReply(t.Context(), fence, w.Reply(fence, 1)); return err },
		"CommitCalls":   func() error { _, err := s.CommitCalls(t.Context(), fence, store.Settle{}); return err },
		"FailAttempt":   func() error { _, err := s.FailAttempt(t.Context(), fence, store.Failure{}); return err },
		"RequestStop":   func() error { _, err := s.RequestStop(t.Context(), fence.RoundID, regie.StopStop); return err },
		"Resume":        func() error { return s.Resume(t.Context(), fence.RoundID) },
		"PutBlob":       func() error { _, err := s.PutBlob(t.Context(), []byte("x")); return err },
		"Decide":        func() error { _, err := s.Decide(t.Context(), store.Decide{}); return err },
		"Answer":        func() error { _, err := s.Answer(t.Context(), store.AnswerQuestion{}); return err },
		"CloseSession":  func() error { return s.CloseSession(t.Context(), fence.SessionID, "") },
		"MarkRead":      func() error { return s.MarkRead(t.Context(), regie.ReadMark{SessionID: fence.SessionID}) },
	} {
		if err := fn(); regie.CodeOf(err) != regie.CodeReadOnly {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := dumpOf(t, dir); after != before {
		t.Error("something was written")
	}
}

func dumpOf(t *testing.T, dir string) string {
	t.Helper()
	tx, err := raw(t, dir).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	out := dump(t, tx)
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	return out
}

// closed makes a data directory with one round and closes it.
func closed(t *testing.T, dir string) store.Fence {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	fence := storetest.NewWorld(t, s).Start()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return fence
}

// TestOpenReadOnlyRefuses opens what cannot be read; each says why and changes nothing.
func TestOpenReadOnlyRefuses(t *testing.T) {
	sql := func(query string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			db := raw(t, dir)
			if _, err := db.ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		code  regie.Code
		says  string
	}{
		"no database": {func(t *testing.T, dir string) {
			t.Helper()
			remove(t, filepath.Join(dir, sqlite.FileName))
			remove(t, filepath.Join(dir, "audit.key"))
		}, regie.CodeNotFound, "no database"},
		"removed":          {func(t *testing.T, dir string) { t.Helper(); remove(t, filepath.Join(dir, sqlite.FileName)) }, regie.CodeCorrupt, "removed"},
		"no schema":        {sql("DELETE FROM goose_db_version WHERE version_id > 0"), regie.CodeConflict, "has schema 0"},
		"schema of before": {sql("UPDATE goose_db_version SET version_id = 28"), regie.CodeSchemaTooOld, "regie sessions export"},
		"newer schema":     {sql("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"), regie.CodeNewerSchema, "has schema 99"},
		"empty file":       {func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, sqlite.FileName), "") }, regie.CodeConflict, "has schema 0"},
		"not a database": {func(t *testing.T, dir string) {
			t.Helper()
			write(t, filepath.Join(dir, sqlite.FileName), strings.Repeat("garbage ", 1000))
		}, regie.CodeCorrupt, "healthy"},
		"no place for the WAL": {func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Mkdir(filepath.Join(dir, sqlite.FileName+"-wal"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, regie.CodeReadOnly, "cannot be written"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			closed(t, dir)
			c.spoil(t, dir)
			before := files(t, dir)
			s, err := sqlite.OpenReadOnly(t.Context(), dir)
			if regie.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v (%v), want %v that says %q", regie.CodeOf(err), err, c.code, c.says)
			}
			if s != nil {
				t.Error("a store came with the error")
			}
			if diff := cmp.Diff(before, files(t, dir)); diff != "" {
				t.Errorf("something was changed (-before +after):\n%s", diff)
			}
		})
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := sqlite.OpenReadOnly(t.Context(), missing); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Errorf("the directory was made: %v", err)
	}
}
