package postgres_test

import (
	"testing"

	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) *sqlite.Store {
		t.Helper()
		return open(t, postgres.Config{URL: storetest.Postgres(t), Dir: t.TempDir()})
	})
}

func open(t *testing.T, cfg postgres.Config) *sqlite.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
