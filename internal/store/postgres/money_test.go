package postgres_test

import (
	"testing"

	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
)

func TestAgedAttempt(t *testing.T) {
	address := storetest.Postgres(t)
	storetest.NewWorld(t, open(t, postgres.Config{URL: address, Dir: t.TempDir()})).AgedAttempt(func() {
		storetest.PostgresExec(t, address, `SET session_replication_role = replica;
			UPDATE attempts SET ended_at = ended_at - 172800000000`)
	})
}
