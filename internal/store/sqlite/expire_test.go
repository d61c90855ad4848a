package sqlite_test

import (
	"testing"
	"time"

	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestExpireMany has many deadlines pass, half of them at the same moment: all end, each in its own
// transaction.
func TestExpireMany(t *testing.T) {
	const many = 230
	wrote := 0
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir(), Gate: func(committed, w bool) error {
		if committed && w {
			wrote++
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := storetest.NewWorld(t, s)
	past := time.Now().Add(-time.Hour)
	for i := range many {
		w.Parked(past.Add(time.Duration(max(0, i-many/2)) * time.Millisecond))
	}
	ahead := w.Parked(time.Now().Add(time.Hour))
	wrote = 0
	ready, next, err := s.ExpireWaits(t.Context(), time.Now())
	if err != nil || len(ready) != many || next.Before(time.Now()) || wrote != many {
		t.Errorf("%d rounds are ready after %d transactions, next %s, %v", len(ready), wrote, next, err)
	}
	if round, err := s.Round(t.Context(), ahead.RoundID); err != nil || round.State != "WAITING" {
		t.Errorf("one whose time has not come is %s, %v", round.State, err)
	}
}
