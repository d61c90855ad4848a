package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

const pageSize = 4096

// damagedPlaces are pages of the database of fullDatabase, by what lies there, from 1.
func damagedPlaces(t *testing.T, path string) map[string]int64 {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	header, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{"the first page": 1, "the freelist": int64(binary.BigEndian.Uint32(header[32:]))}
	for name, query := range map[string]string{
		"the second page":      "SELECT 2",
		"a table's root":       "SELECT rootpage FROM sqlite_schema WHERE name = 'events'",
		"an index":             "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_messages_2'",
		"a leaf in the middle": "SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf' ORDER BY pageno DESC LIMIT 1",
		"the middle of a blob": "SELECT max(pageno) FROM dbstat WHERE name = 'blobs' AND pagetype = 'overflow'",
		"the last page":        "SELECT page_count FROM pragma_page_count",
	} {
		var page int64
		if err := db.QueryRowContext(t.Context(), query).Scan(&page); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = page
	}
	return out
}

// fullDatabase makes a database with pages of every kind and returns its directory.
func fullDatabase(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	w := storetest.NewWorld(t, s)
	fence := w.Start()
	for exchange := 1; exchange <= 40; exchange++ {
		reply := w.Reply(fence, exchange, regie.KindQuery, regie.KindQuery, regie.KindQuery)
		if err := w.AppendReply(fence, reply); err != nil {
			t.Fatal(err)
		}
		if err := w.CommitCalls(fence, w.Settled(exchange, reply.Calls)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, sqlite.FileName))
	if err != nil {
		t.Fatal(err)
	}
	blob := []byte(strings.Repeat("level ", 10_000))
	for _, statement := range []struct {
		query string
		args  []any
	}{
		{"CREATE TABLE junk AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 200) SELECT zeroblob(3000) FROM n", nil},
		{"INSERT INTO blobs (hash, size, data, created_at) VALUES (?, ?, ?, 1)", []any{regie.HashOf(blob), len(blob), blob}},
		{"DROP TABLE junk", nil},
		{"PRAGMA wal_checkpoint(TRUNCATE)", nil},
	} {
		if _, err := db.ExecContext(t.Context(), statement.query, statement.args...); err != nil {
			t.Fatalf("%s: %v", statement.query, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func checkIntegrity(ctx context.Context, dir string) error {
	s, err := sqlite.OpenReadOnly(ctx, dir)
	if err != nil {
		return err
	}
	return joinClose(s.CheckIntegrity(ctx), s)
}

func joinClose(err error, s *sqlite.Store) error {
	if closing := s.Close(); err == nil {
		err = closing
	}
	return err
}

// TestCheckIntegrity_DamagedPages: damage is found wherever it is, and an intact database has none.
func TestCheckIntegrity_DamagedPages(t *testing.T) {
	whole := fullDatabase(t)
	if err := checkIntegrity(t.Context(), whole); err != nil {
		t.Fatalf("an intact database: %v", err)
	}
	content, err := os.ReadFile(filepath.Join(whole, sqlite.FileName))
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range damagedPlaces(t, filepath.Join(whole, sqlite.FileName)) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			backup := filepath.Join(dir, sqlite.FileName+".before-7.20260101T000000")
			damaged := append([]byte(nil), content...)
			random := rand.NewChaCha8([32]byte{1})
			_, _ = random.Read(damaged[(page-1)*pageSize+8:][:3000]) // it always reads
			for path, data := range map[string][]byte{filepath.Join(dir, sqlite.FileName): damaged, backup: content} {
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := checkIntegrity(t.Context(), dir)
			if regie.CodeOf(err) != regie.CodeCorrupt {
				t.Fatalf("page %d: %v", page, err)
			}
			if page > 2 && !strings.Contains(err.Error(), backup) {
				t.Errorf("page %d: no backup is named: %v", page, err)
			}
			t.Log(err)
		})
	}
}
