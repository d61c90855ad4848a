package postgres_test

import (
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
)

// ownDatabase makes a database for one test, in which it may have extensions, and returns the URL
// of it.
func ownDatabase(t *testing.T) string {
	t.Helper()
	schema := storetest.Postgres(t) // skips without a server
	shared := os.Getenv(storetest.PostgresVariable)
	u, err := url.Parse(schema)
	if err != nil {
		t.Fatal(err)
	}
	name := u.Query().Get("search_path")
	storetest.PostgresExec(t, shared, "CREATE DATABASE "+name)
	t.Cleanup(func() { storetest.PostgresExec(t, shared, "DROP DATABASE "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}

// TestCheckIntegrity_Damaged: a row that cannot be read is found.
func TestCheckIntegrity_Damaged(t *testing.T) {
	base := ownDatabase(t)
	s := open(t, postgres.Config{URL: base, Dir: t.TempDir()})
	w := storetest.NewWorld(t, s)
	w.Start()
	check := func(when, want string) {
		t.Helper()
		err := s.CheckIntegrity(t.Context())
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", when, err)
		case want != "" && (regie.CodeOf(err) != regie.CodeCorrupt || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", when, err, want)
		}
	}
	exec := func(statements string) { storetest.PostgresExec(t, base, statements) }
	check("intact, read", "")
	exec(`CREATE SCHEMA checks; CREATE EXTENSION pg_surgery SCHEMA checks`)
	exec(`CREATE TABLE long (value text); ALTER TABLE long ALTER value SET STORAGE EXTERNAL; INSERT INTO long VALUES (repeat('x', 10000));
		DO $$ BEGIN EXECUTE format('SELECT checks.heap_force_kill(%L::regclass, ARRAY[''(0,1)'']::tid[])',
			(SELECT reltoastrelid::regclass::text FROM pg_class WHERE oid = 'long'::regclass)); END $$`)
	check("a part of a value, read", "long")
}
