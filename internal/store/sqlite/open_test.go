package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestOpenRefuses opens data directories that cannot be used; each says why and changes nothing.
func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		code  regie.Code
		says  string
	}{
		"newer schema": {func(t *testing.T, dir string) {
			t.Helper()
			if _, err := raw(t, dir).ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"); err != nil {
				t.Fatal(err)
			}
		}, regie.CodeNewerSchema, "newer version"},
		"schema of before": {func(t *testing.T, dir string) {
			t.Helper()
			if _, err := raw(t, dir).ExecContext(t.Context(), "UPDATE goose_db_version SET version_id = 28"); err != nil {
				t.Fatal(err)
			}
		}, regie.CodeSchemaTooOld, "regie sessions export"},
		"not a database": {func(t *testing.T, dir string) {
			t.Helper()
			write(t, filepath.Join(dir, sqlite.FileName), strings.Repeat("garbage ", 1000))
		}, regie.CodeCorrupt, "not a healthy database"},
		"key cut off": {func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, "audit.key"), "short") }, regie.CodeCorrupt, "must hold 32 bytes"},
		"key lost":    {func(t *testing.T, dir string) { t.Helper(); remove(t, filepath.Join(dir, "audit.key")) }, regie.CodeCorrupt, "is missing"},
		"another key": {func(t *testing.T, dir string) {
			t.Helper()
			write(t, filepath.Join(dir, "audit.key"), strings.Repeat("k", 32))
		}, regie.CodeCorrupt, "is not the key"},
		"directory in place of the file": {func(t *testing.T, dir string) {
			t.Helper()
			remove(t, filepath.Join(dir, sqlite.FileName))
			if err := os.Mkdir(filepath.Join(dir, sqlite.FileName), 0o700); err != nil {
				t.Fatal(err)
			}
		}, regie.CodeInternal, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			storetest.NewWorld(t, s).Start()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, dir)
			before := files(t, dir)
			s, err = sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
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
}

// TestAuditKeyIsMade opens directories in which no log was begun: there a key is made, and there
// alone.
func TestAuditKeyIsMade(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // the second time the database is there, without a log
		s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		remove(t, filepath.Join(dir, "audit.key"))
	}
	w := storetest.NewWorld(t, open(t, dir))
	fence := w.Start()
	if _, err := w.Store.Verify(t.Context(), fence.SessionID); err != nil {
		t.Error(err)
	}
	// Lost while the store is open: verify says so, and makes none.
	remove(t, filepath.Join(dir, "audit.key"))
	if _, err := w.Store.Verify(t.Context(), fence.SessionID); regie.CodeOf(err) != regie.CodeCorrupt || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("verify without a key: %v", err)
	}
	if _, there := files(t, dir)["audit.key"]; there {
		t.Error("a key was made")
	}
}

// TestFilesArePrivate looks at the modes of what a store makes.
func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	w := storetest.NewWorld(t, open(t, dir))
	w.Start()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 3 {
		t.Fatal(entries, err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", entry.Name(), info.Mode())
		}
	}
}

// TestLocked holds the database as another program would: the transition fails whole, and works
// once the other lets go.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir, BusyTimeout: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := storetest.NewWorld(t, s)
	other, err := raw(t, dir).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	in := w.Submission("go")
	if _, err := s.Submit(t.Context(), in); regie.CodeOf(err) != regie.CodeDatabaseLocked {
		t.Errorf("got %v", err)
	}
	if _, err := other.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Submit(t.Context(), in); err != nil {
		t.Error(err)
	}
}

// TestDiskFull bounds the file: the transition fails whole, says so, and the store goes on.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir, MaxPages: 160})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := storetest.NewWorld(t, s)
	fence := w.Start()
	big := w.Submission(strings.Repeat("x", 1<<20))
	if _, err := s.Submit(t.Context(), big); regie.CodeOf(err) != regie.CodeDiskFull {
		t.Errorf("got %v (%v)", regie.CodeOf(err), err)
	}
	if _, err := s.AppendReply(t.Context(), fence, w.Reply(fence, 1, regie.KindQuery)); err != nil {
		t.Errorf("the store did not go on: %v", err)
	}
	if _, _, err := s.Session(t.Context(), big.SessionID); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("half a submission is there: %v", err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// files returns what lies in a directory, without SQLite's -wal and -shm.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasSuffix(name, "-wal") || strings.HasSuffix(name, "-shm") {
			continue
		}
		out[name] = "a directory"
		if !entry.IsDir() {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			out[name] = regie.HashOf(data).String()
		}
	}
	return out
}
