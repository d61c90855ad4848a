package postgres_test

import (
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestNotBelowAnEngine: an older schema is not migrated while an engine's lease is alive, and by
// nobody who only looks; once it is over it is.
func TestNotBelowAnEngine(t *testing.T) {
	address, dir := storetest.Postgres(t), t.TempDir()
	storetest.PostgresExec(t, address, "CREATE SCHEMA "+schemaOf(t, address))
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	older, err := goose.NewProvider(database.DialectPostgres, db, os.DirFS("migrations"), goose.WithDisableGlobalRegistry(true))
	if err == nil {
		_, err = older.UpTo(t.Context(), 4)
	}
	if err != nil {
		t.Fatal(err)
	}
	storetest.PostgresExec(t, address, "INSERT INTO holders (name, until) VALUES ('node:/data pid 7', clock_timestamp() + interval '1 hour'), ('dead', clock_timestamp() - interval '1 hour')")
	for _, reading := range []bool{false, true} {
		want := "node:/data pid 7"
		if reading {
			want = "stop the engines"
		}
		_, err := postgres.Open(t.Context(), postgres.Config{URL: address, Dir: dir, ReadOnly: reading})
		if regie.CodeOf(err) != regie.CodeConflict || !strings.Contains(err.Error(), want) {
			t.Errorf("reading %v: %v", reading, err)
		}
	}
	if version, err := older.GetDBVersion(t.Context()); err != nil || version != 4 {
		t.Errorf("the schema is at %d, %v", version, err)
	}
	storetest.PostgresExec(t, address, "UPDATE holders SET until = clock_timestamp() WHERE until > clock_timestamp()")
	open(t, postgres.Config{URL: address, Dir: dir})
}

// TestNewerBelow: an engine below which the schema was brought forward is told so with its next
// lease, which it does not get.
func TestNewerBelow(t *testing.T) {
	address := storetest.Postgres(t)
	s := open(t, postgres.Config{URL: address, Dir: t.TempDir()})
	if err := s.Lease(t.Context(), "old", time.Hour); err != nil {
		t.Fatal(err)
	}
	storetest.PostgresExec(t, address, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true); DELETE FROM holders")
	if err := s.Lease(t.Context(), "old", time.Hour); !errors.Is(err, store.ErrNewerSchema) || regie.CodeOf(err) != regie.CodeNewerSchema {
		t.Errorf("below a newer schema: %v", err)
	}
	storetest.PostgresExec(t, address, "DO $$ BEGIN IF EXISTS (SELECT 1 FROM holders) THEN RAISE 'it has a lease all the same'; END IF; END $$")
}
