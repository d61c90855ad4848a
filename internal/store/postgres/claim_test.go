package postgres_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
)

// lockLog holds a log beside the store, until the function is called.
func lockLog(t *testing.T, address string, chain int64) (release func()) {
	t.Helper()
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	if err == nil {
		_, err = tx.ExecContext(t.Context(), "SELECT n FROM chains WHERE n = $1 FOR UPDATE", chain)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
}

// TestLockedLog has somebody hold the log of a session. Who claims a round of it gives up long
// before the server does, and before its lease is over, who has a deadline keeps it, and both leave
// nothing behind.
func TestLockedLog(t *testing.T) {
	address := storetest.Postgres(t)
	s := open(t, postgres.Config{URL: address, Dir: t.TempDir()})
	w := storetest.NewWorld(t, s)
	fence := w.Start()
	release := lockLog(t, address, fence.Chain)
	began := time.Now()
	if _, err := s.Claim(t.Context(), fence.RoundID, "next"); regie.CodeOf(err) != regie.CodeDatabaseLocked {
		t.Errorf("a claim: %v", err)
	}
	if took := time.Since(began); took > 6*time.Second { // lock_timeout is 10 s
		t.Errorf("a claim took %s", took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began = time.Now()
	if _, err := s.RequestStop(ctx, fence.RoundID, regie.StopPause); regie.CodeOf(err) != regie.CodeDatabaseDown {
		t.Errorf("with a deadline: %v", err)
	}
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("a transition with a deadline took %s", took)
	}
	release()
	claimed, err := s.Claim(t.Context(), fence.RoundID, "next")
	if err != nil || claimed.Fence.Epoch != fence.Epoch+1 || claimed.Round.Stop != "" {
		t.Errorf("afterwards: %+v, stop %q, %v", claimed.Fence, claimed.Round.Stop, err)
	}
}

// TestFrozenHolder has a node freeze in the middle of a batch, with the log of its session locked:
// another one takes the round over all the same.
func TestFrozenHolder(t *testing.T) {
	address, dir := storetest.Postgres(t), t.TempDir()
	p, through := storetest.NewProxy(t, address)
	w := storetest.NewWorld(t, open(t, postgres.Config{URL: through, Dir: dir}))
	other := open(t, postgres.Config{URL: address, Dir: dir})
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	w.Ctx = ctx
	p.Next(1, storetest.FreezeIn)
	if err := w.AppendReply(fence, reply); regie.CodeOf(err) != regie.CodeDatabaseDown {
		t.Fatalf("the frozen node: %v", err)
	}
	for until := time.Now().Add(30 * time.Second); ; {
		claimed, err := other.Claim(t.Context(), fence.RoundID, "other")
		if err == nil && claimed.Fence.Epoch == fence.Epoch+1 && claimed.Reply == nil {
			break
		}
		if regie.CodeOf(err) != regie.CodeDatabaseLocked || time.Now().After(until) {
			t.Fatalf("%+v, %v", claimed, err)
		}
	}
}

// TestLockedDeadline has somebody hold the log of one of the sessions whose deadlines have passed:
// the waits of the others end, and this one's once the log is free.
func TestLockedDeadline(t *testing.T) {
	address := storetest.Postgres(t)
	s := open(t, postgres.Config{URL: address, Dir: t.TempDir()})
	w := storetest.NewWorld(t, s)
	fences := []store.Fence{w.Parked(time.Now()), w.Parked(time.Now()), w.Parked(time.Now())}
	release := lockLog(t, address, fences[1].Chain)
	ready, next, err := s.ExpireWaits(t.Context(), time.Now())
	if err != nil || len(ready) != 2 || next.IsZero() || next.After(time.Now()) {
		t.Errorf("ready %+v, next %s, %v", ready, next, err)
	}
	if ready, _, err := s.ExpireWaits(t.Context(), time.Now()); len(ready) != 0 || regie.CodeOf(err) != regie.CodeDatabaseLocked {
		t.Errorf("the locked one alone: %+v, %v", ready, err)
	}
	release()
	ready, next, err = s.ExpireWaits(t.Context(), time.Now())
	if err != nil || len(ready) != 1 || ready[0].RoundID != fences[1].RoundID || !next.IsZero() {
		t.Errorf("once it is free: %+v, next %s, %v", ready, next, err)
	}
}

// TestKeyOfAnotherNode: what one node has begun with an Idempotency-Key is its own as long as its
// lease, and left once that has ended.
func TestKeyOfAnotherNode(t *testing.T) {
	s := open(t, postgres.Config{URL: storetest.Postgres(t), Dir: t.TempDir()})
	key, request := regie.HashOf([]byte("key")), regie.HashOf([]byte("request"))
	left := func(want bool) {
		t.Helper()
		if got, err := s.BeginKeyed(t.Context(), key, request); err != nil || got.Left != want {
			t.Errorf("%+v, %v; want that it is left: %t", got, err, want)
		}
	}
	err := s.Lease(t.Context(), "one", time.Hour)
	s.SetHolder("one")
	left(false)
	s.SetHolder("two")
	left(false)
	if err == nil {
		err = s.EndLease(t.Context(), "one")
	}
	if err != nil {
		t.Fatal(err)
	}
	left(true)
	s.SetHolder("one")
	left(false)
}
