package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// Older takes a SQLite database back to what the migrations up to version made of it, with all its data that such a one has a place
// for: the schema is compared with that of a new database. It can only take back what later migrations added as a whole.
func Older(t *testing.T, path string, migrations fs.FS, version int64) {
	t.Helper()
	ctx := context.Background()
	reference := openRaw(t, filepath.Join(t.TempDir(), "reference.db"))
	provider, err := goose.NewProvider(database.DialectSQLite3, reference, migrations, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(ctx, version); err != nil {
		t.Fatal(err)
	}
	want, db := schema(t, reference), openRaw(t, path)
	for _, kind := range []string{"trigger", "index", "table"} {
		for name, object := range schema(t, db) {
			if _, stays := want[name]; !stays && object.Kind == kind && object.SQL != "" {
				if _, err := db.ExecContext(ctx, fmt.Sprintf("DROP %s %q", kind, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if _, err := db.ExecContext(ctx, "DELETE FROM goose_db_version WHERE version_id > ?", version); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, schema(t, db)); diff != "" {
		t.Fatalf("this is not schema %d (-want +got):\n%s", version, diff)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
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
