package sqlite_test

import (
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store {
		t.Helper()
		return open(t, t.TempDir())
	})
}

func open(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
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

// TestStandingUsesTheIndex: whether a question is open does not cost a look at each round of the
// session.
func TestStandingUsesTheIndex(t *testing.T) {
	plan, err := open(t, t.TempDir()).PlanOfStanding(t.Context())
	if err != nil || !strings.Contains(plan, "rounds_one_open") {
		t.Errorf("%v: %s", err, plan)
	}
}
