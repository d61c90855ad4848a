package dispatch_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
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

// line is a provider behind a network that comes and goes.
type line struct {
	up    *atomic.Bool
	asked *asked
}

// asked is when a model was asked.
type asked struct {
	mu    sync.Mutex
	tries []time.Time
}

func (a *asked) note() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tries = append(a.tries, time.Now())
}

func (a *asked) all() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.tries)
}

func (l line) Name() string                                      { return "line" }
func (l line) Capabilities(string) provider.Capabilities         { return provider.Capabilities{Free: true} }
func (l line) Open(provider.Head) (provider.Conversation, error) { return l, nil }
func (l line) EndWith(provider.Tail)                             {}
func (l line) Append(...provider.Turn)                           {}
func (l line) Request() (regie.Hash, int)                        { return regie.HashOf(nil), 0 }
func (l line) Send(context.Context, func(provider.Delta)) (*provider.Reply, error) {
	l.asked.note()
	if !l.up.Load() {
		return nil, &provider.Error{Code: regie.CodeProviderOffline, Retryable: true, Offline: true, Message: "no route"}
	}
	return answer("here"), nil
}

// away is a run that waits for the network, in a bubble of its own time.
type away struct {
	*house
	line  line
	in    store.Submission
	begun time.Time
}

func newAway(t *testing.T, giveUp time.Duration) *away {
	t.Helper()
	hub := dispatch.NewHub()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir(), Notify: hub.Commit})
	if err != nil {
		t.Fatal(err)
	}
	a := &away{house: &house{world: storetest.NewWorld(t, s), store: s, hub: hub}, line: line{new(atomic.Bool), new(asked)}}
	a.start(t, giveUp)
	t.Cleanup(func() {
		a.dispatcher.Close(dispatch.ErrGone)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	a.in = a.world.Submission("go")
	a.in.Round.Policy = json.RawMessage(`{"wait_network":true}`)
	a.begun = time.Now()
	if _, err := a.dispatcher.Submit(t.Context(), a.in); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return a
}

func (a *away) start(t *testing.T, giveUp time.Duration) {
	t.Helper()
	registry, err := tool.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	a.dispatcher = dispatch.New(a.store, engine.New(engine.Config{
		Store: a.store, Providers: func(string, regie.Hash) (provider.Provider, error) { return a.line, nil }, Tools: always(registry), NetworkGiveUp: giveUp,
	}), a.hub, func(regie.Round) error { return nil }, "test", slog.New(slog.DiscardHandler))
	if _, err := a.dispatcher.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// pass lets time pass.
func (a *away) pass(d time.Duration) {
	time.Sleep(d) // of the bubble
	synctest.Wait()
}

// told counts what the log tells: audit messages of the network, and the notices.
func (a *away) told(t *testing.T) (audits int, notices []regie.Notice) {
	t.Helper()
	events, err := a.store.Events(t.Context(), a.in.SessionID, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		switch e.Type {
		case regie.EventMessage:
			if strings.Contains(string(e.Body), string(regie.SystemNetworkError)) {
				audits++
			}
		case regie.EventNotice:
			var n regie.Notice
			if err := json.Unmarshal(e.Body, &n); err != nil {
				t.Fatal(err)
			}
			notices = append(notices, n)
		}
	}
	return audits, notices
}

func (a *away) state(t *testing.T) regie.SessionState {
	t.Helper()
	session, _, err := a.store.Session(t.Context(), a.in.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	return session.State
}

// TestLongOutage has the network away for a night (decisions 25 and 42): ten tries every 30 s, then
// fewer, never more than 5 min apart; one audit message, one notice after an hour, over a
// restart; and the run goes on when the network is back.
func TestLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAway(t, 0)
		if audits, notices := a.told(t); audits != 1 || len(notices) != 0 || a.state(t) != regie.SessionWaitingNetwork {
			t.Fatalf("at first: %d audit messages, %v, %s", audits, notices, a.state(t))
		}
		a.pass(59 * time.Minute)
		if audits, notices := a.told(t); audits != 1 || len(notices) != 0 {
			t.Errorf("after 59 min: %d audit messages, %v", audits, notices)
		}
		a.pass(6 * time.Minute)
		_, notices := a.told(t)
		if len(notices) != 1 || notices[0].Kind != regie.NoticeNetworkDown || !notices[0].Since.Equal(a.begun) || notices[0].Text != "no route" || notices[0].RoundID != a.in.Round.ID {
			t.Errorf("after an hour: %+v", notices)
		}
		for i, at := range a.line.asked.all()[1:] {
			gap := at.Sub(a.line.asked.all()[i])
			if i < 10 && gap != 30*time.Second || gap > 5*time.Minute {
				t.Errorf("try %d comes %s after the one before", i+2, gap)
			}
		}
		a.dispatcher.Close(dispatch.ErrGone)
		a.start(t, 0)
		a.pass(9 * time.Hour)
		if audits, notices := a.told(t); audits != 1 || len(notices) != 1 || a.state(t) != regie.SessionWaitingNetwork {
			t.Errorf("after a night: %d audit messages, %v, %s", audits, notices, a.state(t))
		}
		a.line.up.Store(true)
		a.pass(5 * time.Minute)
		view, err := a.store.RoundView(t.Context(), a.in.Round.ID)
		if err != nil || view.Round.End != regie.EndAnswered || view.Round.Counters.Resumes != 0 {
			t.Errorf("%s, %d resumes, %v", view.Round.End, view.Round.Counters.Resumes, err)
		}
		if _, err := a.store.Verify(t.Context(), a.in.SessionID); err != nil {
			t.Error(err)
		}
	})
}

// TestNetworkGiveUp pauses a session whose network is away for as long as the operator wants to
// wait, with a notice. A resume begins anew: one more audit message, and as long to wait again.
func TestNetworkGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAway(t, 20*time.Minute)
		a.pass(20*time.Minute - 1)
		if _, notices := a.told(t); len(notices) != 0 || a.state(t) != regie.SessionWaitingNetwork {
			t.Fatalf("before: %v, %s", notices, a.state(t))
		}
		a.pass(1)
		audits, notices := a.told(t)
		if audits != 1 || len(notices) != 1 || notices[0].Kind != regie.NoticeNetworkGiveUp || a.state(t) != regie.SessionPaused {
			t.Fatalf("after: %d audit messages, %+v, %s", audits, notices, a.state(t))
		}
		tries := len(a.line.asked.all())
		a.pass(3 * time.Hour)
		if len(a.line.asked.all()) != tries {
			t.Errorf("a paused session was tried %d times", len(a.line.asked.all())-tries)
		}
		if err := a.dispatcher.Resume(t.Context(), a.in.Round.ID); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if audits, notices := a.told(t); audits != 2 || len(notices) != 1 || a.state(t) != regie.SessionWaitingNetwork || len(a.line.asked.all()) != tries+1 {
			t.Errorf("resumed: %d audit messages, %v, %s, %d tries", audits, notices, a.state(t), len(a.line.asked.all())-tries)
		}
		a.pass(20 * time.Minute)
		if _, notices := a.told(t); len(notices) != 2 || a.state(t) != regie.SessionPaused {
			t.Errorf("20 min after the resume: %v, %s", notices, a.state(t))
		}
		a.line.up.Store(true)
		if err := a.dispatcher.Resume(t.Context(), a.in.Round.ID); err != nil {
			t.Fatal(err)
		}
		a.ended(t, a.in.SessionID, a.in.Round.ID)
	})
}

// TestPausedWhileAway pauses a session that waits for the network: nothing is tried until it is
// resumed, and then at once.
func TestPausedWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAway(t, 0)
		a.pass(time.Minute)
		if err := a.dispatcher.Stop(t.Context(), a.in.Round.ID, regie.StopPause); err != nil {
			t.Fatal(err)
		}
		tries := len(a.line.asked.all())
		a.pass(2 * time.Hour)
		if _, notices := a.told(t); len(a.line.asked.all()) != tries || len(notices) != 0 || a.state(t) != regie.SessionPaused {
			t.Errorf("%d tries of a paused session, %v, %s", len(a.line.asked.all())-tries, notices, a.state(t))
		}
		a.line.up.Store(true)
		if err := a.dispatcher.Resume(t.Context(), a.in.Round.ID); err != nil {
			t.Fatal(err)
		}
		a.ended(t, a.in.SessionID, a.in.Round.ID)
	})
}

// TestResumeTriesNow resumes a run that waits for the network and is not paused: it is tried at
// once.
func TestResumeTriesNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAway(t, 0)
		a.pass(3 * time.Hour) // by now tries are 5 min apart
		a.line.up.Store(true)
		before := time.Now()
		if err := a.dispatcher.Resume(t.Context(), a.in.Round.ID); err != nil {
			t.Fatal(err)
		}
		a.ended(t, a.in.SessionID, a.in.Round.ID)
		if waited := time.Since(before); waited > time.Second {
			t.Errorf("it was tried after %s", waited)
		}
	})
}
