package postgres

import (
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestStalled has a process stand still within a transition for longer than the server lets it: the
// server ends its transaction, so that others get what it held, and once it goes on the transition
// is run again.
func TestStalled(t *testing.T) {
	u, err := url.Parse(storetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Config{URL: u.String(), Dir: t.TempDir()}) // its migrations may take their time
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	query := u.Query()
	query.Set("idle_in_transaction_session_timeout", "100ms")
	u.RawQuery = query.Encode()
	pools, err := parse(u.String())
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), pools)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	looks, err := Look(u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer looks.Close()
	stalled, again := false, false
	_, err = (&backend{pool: pool}).Transact(t.Context(), func(st sqlite.Statements) error {
		if stalled {
			again = true
			return nil
		}
		rows, err := st.Rows("SELECT pg_backend_pid()", nil)
		if err != nil {
			return err // on a busy machine this may have taken too long already
		}
		for there := true; there; { // as a stopped process does nothing
			if err := looks.QueryRowContext(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = ?)", rows[0][0]).Scan(&there); err != nil {
				return err
			}
		}
		stalled = true
		_, err = st.Rows("SELECT 1", nil)
		return err
	})
	if err != nil || !again {
		t.Errorf("run again: %t, %v", again, err)
	}
}
