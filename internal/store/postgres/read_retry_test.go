package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// readings are reads of each kind: of one row, of several, in a snapshot, and of what a claim
// finds.
func readings(s *sqlite.Store, fence store.Fence, workspace regie.ID) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"one row": func(ctx context.Context) error { _, err := s.Round(ctx, fence.RoundID); return err },
		"rows":    func(ctx context.Context) error { _, err := s.Rules(ctx, workspace, fence.SessionID); return err },
		"events":  func(ctx context.Context) error { _, err := s.Events(ctx, fence.SessionID, 0, 10); return err },
		"a view":  func(ctx context.Context) error { _, err := s.RoundView(ctx, fence.RoundID); return err },
		"thread":  func(ctx context.Context) error { _, err := s.Thread(ctx, fence.SessionID, 0); return err },
	}
}

// TestReadsAgain ends all connections and refuses some new ones, as when the server starts anew: a
// read waits for it.
func TestReadsAgain(t *testing.T) {
	p, url := storetest.NewProxy(t, storetest.Postgres(t))
	s := open(t, postgres.Config{URL: url, Dir: t.TempDir()})
	w := storetest.NewWorld(t, s)
	fence := w.Start()
	_, workspace, err := s.Session(t.Context(), fence.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range readings(s, fence, workspace.ID) {
		for _, when := range []string{"first", "prepared"} {
			p.Refuse(5)
			if err := read(t.Context()); err != nil {
				t.Errorf("%s, %s: %v", name, when, err)
			}
		}
	}
	p.Down()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // more than one refused dial takes
	defer cancel()
	if _, err := s.Round(ctx, fence.RoundID); regie.CodeOf(err) != regie.CodeDatabaseDown {
		t.Errorf("away for good: %v", err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := s.Round(gone, fence.RoundID); err == nil {
		t.Error("who has gone was answered")
	}
}

// TestFrozen has all connections stay open and lead nowhere: a read without a deadline of its
// caller gives up on one, and is answered by another.
func TestFrozen(t *testing.T) {
	p, url := storetest.NewProxy(t, storetest.Postgres(t))
	s := open(t, postgres.Config{URL: url, Dir: t.TempDir()})
	fence := storetest.NewWorld(t, s).Start()
	if _, err := s.Round(t.Context(), fence.RoundID); err != nil {
		t.Fatal(err)
	}
	p.Freeze()
	began := time.Now()
	if _, err := s.Round(context.WithoutCancel(t.Context()), fence.RoundID); err != nil {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}
