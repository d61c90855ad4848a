package postgres_test

import (
	"database/sql"
	"os"
	"testing"

	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
)

func TestRollUpsDiffer(t *testing.T) {
	t.Parallel()
	migration, err := os.ReadFile("migrations/00036_stats.sql")
	if err != nil {
		t.Fatal(err)
	}
	address := storetest.Postgres(t)
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	storetest.NewWorld(t, open(t, postgres.Config{URL: address, Dir: t.TempDir()})).RollUpsDiffer(string(migration), func(statement string) {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	})
}
