package sqlite_test

import (
	"os"
	"testing"

	"github.com/regie-run/regie/internal/store/storetest"
)

func TestRollUpsDiffer(t *testing.T) {
	t.Parallel()
	migration, err := os.ReadFile("migrations/00036_stats.sql")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	storetest.NewWorld(t, open(t, dir)).RollUpsDiffer(string(migration), func(statement string) {
		if _, err := raw(t, dir).ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	})
}
