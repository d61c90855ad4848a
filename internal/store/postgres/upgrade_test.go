package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestNotBelowAnEngine: an older schema is not migrated while an engine's lease is alive, and by
// nobody who only looks; once it is over it is.
func TestNotBelowAnEngine(t *testing.T) {
	address, dir := storetest.Postgres(t), t.TempDir()
	if err := open(t, postgres.Config{URL: address, Dir: dir}).Close(); err != nil {
		t.Fatal(err)
	}
	migrations, err := storetest.NextMigrations("migrations")
	if err != nil {
		t.Fatal(err)
	}
	next := postgres.Config{URL: address, Dir: dir, Migrations: migrations}
	storetest.PostgresExec(t, address, "INSERT INTO holders (name, until) VALUES ('node:/data pid 7', clock_timestamp() + interval '1 hour'), ('dead', clock_timestamp() - interval '1 hour')")
	for _, reading := range []bool{false, true} {
		want := "node:/data pid 7"
		if reading {
			want = "stop the engines"
		}
		next.ReadOnly = reading
		_, err := postgres.Open(t.Context(), next)
		if regie.CodeOf(err) != regie.CodeConflict || !strings.Contains(err.Error(), want) {
			t.Errorf("reading %v: %v", reading, err)
		}
	}
	open(t, postgres.Config{URL: address, Dir: dir, ReadOnly: true}) // whose schema it still is
	storetest.PostgresExec(t, address, "UPDATE holders SET until = clock_timestamp() WHERE until > clock_timestamp()")
	next.ReadOnly = false
	open(t, next)
	if _, err := postgres.Open(t.Context(), postgres.Config{URL: address, Dir: dir}); regie.CodeOf(err) != regie.CodeNewerSchema {
		t.Errorf("it was not migrated: %v", err)
	}
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
