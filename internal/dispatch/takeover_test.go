package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
	"github.com/regie-run/regie/internal/tool"
)

// left is a store that several engines seem to share: what its world submits was left by another
// one. One of the rounds is locked: whoever claims it waits.
type left struct {
	*sqlite.Store
	leases *atomic.Int64
	locked *atomic.Pointer[regie.ID]
	let    chan struct{}
	old    *atomic.Bool // the program is too old for the schema
}

func (l left) Lease(ctx context.Context, holder string, ttl time.Duration) error {
	l.leases.Add(1)
	if l.old.Load() {
		return store.ErrNewerSchema
	}
	return l.Store.Lease(ctx, holder, ttl)
}

func (l left) Claim(ctx context.Context, round regie.ID, holder string) (store.Claimed, error) {
	if locked := l.locked.Load(); locked != nil && *locked == round {
		<-l.let
	}
	return l.Store.Claim(ctx, round, holder)
}

// adopting is an engine that others leave rounds to.
type adopting struct {
	*house
	left
	log *bytes.Buffer
}

func newAdopting(t *testing.T, serves func(regie.Round) error) *adopting {
	t.Helper()
	hub := dispatch.NewHub()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir(), Notify: hub.Commit})
	if err != nil {
		t.Fatal(err)
	}
	registry, err := tool.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	a := &adopting{
		house: &house{world: storetest.NewWorld(t, s), store: s, hub: hub}, log: &bytes.Buffer{},
		left: left{s, new(atomic.Int64), new(atomic.Pointer[regie.ID]), make(chan struct{}), new(atomic.Bool)},
	}
	models := func(string, regie.Hash) (provider.Provider, error) {
		return scripted{func() *provider.Reply { return answer("done") }}, nil
	}
	a.dispatcher = dispatch.New(a.left, engine.New(engine.Config{Store: a.left, Providers: models, Tools: always(registry)}), hub, serves, "here",
		slog.New(slog.NewTextHandler(a.log, nil)))
	a.dispatcher.Share(a.left, dispatch.NewClock(), "here")
	if _, err := a.dispatcher.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.dispatcher.Close(dispatch.ErrGone)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func (a *adopting) state(t *testing.T, round regie.ID) regie.RoundState {
	t.Helper()
	now, err := a.store.Round(t.Context(), round)
	if err != nil {
		t.Fatal(err)
	}
	return now.State
}

// TestLockedSession has a session that cannot be claimed for a while: the engine keeps its lease,
// and takes up all else that was left.
func TestLockedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdopting(t, func(regie.Round) error { return nil })
		locked, free := a.world.Start().RoundID, a.world.Start().RoundID
		a.locked.Store(&locked)
		time.Sleep(time.Minute) // of the bubble
		synctest.Wait()
		if n := a.leases.Load(); n < 25 || a.dispatcher.Left() <= 0 {
			t.Errorf("%d leases in a minute, %s are left", n, a.dispatcher.Left())
		}
		if state := a.state(t, free); state != regie.RoundEnded {
			t.Errorf("the other round is %s", state)
		}
		close(a.let)
		synctest.Wait()
		if state := a.state(t, locked); state != regie.RoundEnded {
			t.Errorf("once it is free the locked one is %s", state)
		}
	})
}

// TestNotForHere leaves many rounds that this engine cannot go on with: it looks at them again and
// again, less and less often, and says so in a few lines. Once it can it takes them up.
func TestNotForHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		var can atomic.Bool
		a := newAdopting(t, func(regie.Round) error {
			looks.Add(1)
			if can.Load() {
				return nil
			}
			return regie.Errorf(regie.CodeConflict, "other settings")
		})
		rounds := make([]regie.ID, 20)
		for i := range rounds {
			rounds[i] = a.world.Start().RoundID
		}
		time.Sleep(time.Hour) // of the bubble
		synctest.Wait()
		if n := looks.Load() / int64(len(rounds)); n < 5 || n > 20 {
			t.Errorf("each was looked at %d times in an hour", n)
		}
		if lines := strings.Count(a.log.String(), "\n"); lines > 80 {
			t.Errorf("%d lines in the log:\n%.2000s", lines, a.log)
		}
		can.Store(true)
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		for _, round := range rounds {
			if state := a.state(t, round); state != regie.RoundEnded {
				t.Errorf("a round is %s", state)
			}
		}
	})
}

// TestOutdated has a newer program migrate the database below an engine: it ends, and says so to
// whoever asks.
func TestOutdated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdopting(t, func(regie.Round) error { return nil })
		a.old.Store(true)
		time.Sleep(10 * time.Second) // of the bubble
		synctest.Wait()
		if _, err := a.dispatcher.Submit(t.Context(), a.world.Submission("go")); !errors.Is(err, store.ErrNewerSchema) {
			t.Errorf("a run is taken: %v", err)
		}
		if n := strings.Count(a.log.String(), "level=ERROR"); n != 1 {
			t.Errorf("it says so %d times:\n%s", n, a.log)
		}
	})
}
