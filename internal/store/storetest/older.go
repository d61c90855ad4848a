package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// Older takes a SQLite database back to what the migrations up to version made of it, with all its
// data that such a one has a place for: the schema is compared with that of a new database. It
// takes back tables, columns, indexes and triggers that later migrations added, and triggers and
// constraints that they changed.
func Older(t *testing.T, path string, migrations fs.FS, version int64) {
	t.Helper()
	ctx := context.Background()
	reference := openRaw(t, filepath.Join(t.TempDir(), "reference.db"))
	provider, err := goose.NewProvider(database.DialectSQLite3, reference, migrations,
		goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(ctx, version); err != nil {
		t.Fatal(err)
	}
	want, db := schema(t, reference), openRaw(t, path)
	run := func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(ctx, query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	for _, kind := range []string{"trigger", "index", "table"} {
		for name, object := range schema(t, db) {
			if was, stays := want[name]; object.Kind == kind && object.SQL != "" &&
				(!stays || kind == "trigger" && was != object) {
				run(fmt.Sprintf("DROP %s %q", kind, name))
			}
		}
	}
	for name, object := range want {
		for _, column := range columns(t, db, name) {
			if object.Kind == "table" && !slices.Contains(columns(t, reference, name), column) {
				run(fmt.Sprintf("ALTER TABLE %q DROP COLUMN %q", name, column))
			}
		}
	}
	for name, object := range want {
		switch now, there := schema(t, db)[name]; {
		case !there:
			run(object.SQL)
		case object.Kind == "table" && now != object: // a constraint was changed
			conn, err := db.Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, query := range []string{
				"PRAGMA writable_schema = ON",
				fmt.Sprintf("UPDATE sqlite_schema SET sql = %s WHERE name = '%s'",
					"'"+strings.ReplaceAll(object.SQL, "'", "''")+"'", name),
				"PRAGMA writable_schema = RESET",
			} {
				if _, err := conn.ExecContext(ctx, query); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	run("DELETE FROM goose_db_version WHERE version_id > ?", version)
	if diff := cmp.Diff(want, schema(t, db)); diff != "" {
		t.Fatalf("this is not schema %d (-want +got):\n%s", version, diff)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// Migrated is the Dump of what the migrations make of an empty database, one after the other.
func Migrated(t *testing.T, migrations fs.FS) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "migrated.db")
	db := openRaw(t, path)
	provider, err := goose.NewProvider(database.DialectSQLite3, db, migrations, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.Up(context.Background()); err != nil {
		t.Fatal(err)
	}
	return Dump(t, path)
}

// Dump writes down the schema of a SQLite database in the order in which it was made, and which
// migrations it has had.
func Dump(t *testing.T, path string) string {
	t.Helper()
	rows, err := openRaw(t, path).QueryContext(context.Background(), `SELECT sql || ';' FROM (
		SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY rowid) UNION ALL
		SELECT '-- version ' || version_id || ' ' || is_applied FROM (SELECT * FROM goose_db_version ORDER BY id)`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out strings.Builder
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s\n\n", text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func columns(t *testing.T, db *sql.DB, table string) (out []string) {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), "SELECT name FROM pragma_table_info(?)", table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		out = append(out, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

type object struct{ Kind, SQL string }

func schema(t *testing.T, db *sql.DB) map[string]object {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), "SELECT type, name, coalesce(sql, '') FROM sqlite_schema")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := map[string]object{}
	for rows.Next() {
		var name string
		var o object
		if err := rows.Scan(&o.Kind, &name, &o.SQL); err != nil {
			t.Fatal(err)
		}
		out[name] = o
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func openRaw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(2000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
