package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestTellNobody: a process that hears the others and found none asks the database nothing more,
// until one says hello; one that cannot hear them goes on asking.
func TestTellNobody(t *testing.T) {
	address := storetest.Postgres(t)
	s, err := Open(t.Context(), Config{URL: address, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pools, err := parse(address)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), pools)
	if err != nil {
		t.Fatal(err)
	}
	f := newFeed(pool, pools.ConnConfig, "nobody", Others{})
	defer f.close()
	f.others.Holder = "self"
	asks := func(deaf bool) {
		t.Helper()
		f.mu.Lock()
		f.untold[regie.NewID()] = struct{}{}
		f.deaf = deaf
		f.mu.Unlock()
		if err := f.tell(); err != nil {
			t.Fatal(err)
		}
	}
	asks(true)
	if f.nobody.IsZero() {
		t.Fatal("it does not know that there is nobody")
	}
	f.nobody = f.nobody.Add(time.Hour) // the machine may be busy
	pool.Close()
	asks(false)
	if len(f.untold) != 0 {
		t.Errorf("%d sessions are kept for nobody", len(f.untold))
	}
	f.hear("other " + hello)
	f.untold[regie.NewID()] = struct{}{}
	if err := f.tell(); err == nil || !f.all {
		t.Errorf("after a hello nobody was told anything: %v", err)
	}
}
