package postgres

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// backendOf migrates a database and returns a backend on it, by its URL or by one that leads there
// through a proxy.
func backendOf(t *testing.T, address string, through ...string) *backend {
	t.Helper()
	s, err := Open(t.Context(), Config{URL: address, Dir: t.TempDir()})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	pools, err := parse(append([]string{address}, through...)[len(through)])
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), pools)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &backend{pool: pool}
}

// TestManyBrokenCommits has as many commits lose their answer at once as the pool has connections:
// each of them finds out what became of it.
func TestManyBrokenCommits(t *testing.T) {
	address := storetest.Postgres(t)
	p, through := storetest.NewProxy(t, address)
	b := backendOf(t, address, through+"&pool_max_conns=2")
	p.Next(2, storetest.CutAnswer)
	var group, ready sync.WaitGroup
	ready.Add(2)
	for i := range 2 {
		group.Go(func() {
			there := sync.OnceFunc(func() { ready.Done(); ready.Wait() })
			wrote, err := b.Transact(t.Context(), func(st sqlite.Statements) error {
				_, err := st.Rows("SELECT 1", nil)
				there() // both have their connection
				st.Queue(nil, "INSERT INTO meta (key, value) VALUES (?, '')", []any{fmt.Sprint("broken ", i)})
				return err
			})
			if err != nil || !wrote {
				t.Errorf("wrote %t, %v", wrote, err)
			}
		})
	}
	group.Wait()
}

// TestAway has a server say for a while that it takes no connection, no write, or nothing at all,
// as it does while it starts anew or another one takes over: a transition is tried for longer than
// what is in the way of another one.
func TestAway(t *testing.T) {
	t.Parallel()
	b := backendOf(t, storetest.Postgres(t))
	for _, state := range []string{"53300", "25006", "57P01", "57P03", "57P05", "08006", "08P01"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			said := 0
			wrote, err := b.Transact(t.Context(), func(st sqlite.Statements) error {
				st.Queue(nil, "INSERT INTO meta (key, value) VALUES (?, '')", []any{state})
				if said <= tries {
					said++
					_, err := st.Rows("DO $$ BEGIN RAISE 'not now' USING ERRCODE = '"+state+"'; END $$", nil)
					return err
				}
				return nil
			})
			if err != nil || !wrote {
				t.Errorf("after %d times: wrote %t, %v", said, wrote, err)
			}
		})
	}
}

// TestLockTimeout has another one hold what a transition needs until the server gives up waiting
// for it, once.
func TestLockTimeout(t *testing.T) {
	b := backendOf(t, storetest.Postgres(t))
	said := false
	wrote, err := b.Transact(t.Context(), func(st sqlite.Statements) error {
		st.Queue(nil, "INSERT INTO meta (key, value) VALUES ('late', '')", nil)
		if said {
			return nil
		}
		said = true
		_, err := st.Rows("DO $$ BEGIN RAISE 'held' USING ERRCODE = '55P03'; END $$", nil)
		return err
	})
	if err != nil || !wrote {
		t.Errorf("wrote %t, %v", wrote, err)
	}
}
