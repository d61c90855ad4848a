package app_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
)

// impatientFor attaches to an engine whose model at an address may be silent for idle, and whose
// chats are told of that after a second.
func (b *bed) impatientFor(address string, idle, backoff time.Duration) *app.Conn {
	b.t.Helper()
	conn, err := app.Connect(b.t.Context(), app.Options{
		Config: b.settings,
		Models: func(name string) (provider.Provider, error) {
			return openai.New(openai.Config{Name: name, BaseURL: address, APIKey: "k", Idle: idle})
		},
		TuneEngine: func(c *engine.Config) {
			c.Backoff = func(int, time.Duration) time.Duration { return backoff }
			c.NetworkRetry, c.SilentAfter = time.Hour, time.Second
		},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// hears follows a session until a delta is what is wanted.
func (b *bed) hears(conn *app.Conn, session regie.ID, want func(d *dispatch.Delta) bool) {
	b.t.Helper()
	found := errors.New("found")
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	if err := conn.Events(ctx, session, 0, func(item dispatch.Item) error {
		if item.Delta != nil && want(item.Delta) {
			return found
		}
		return nil
	}); !errors.Is(err, found) {
		b.t.Fatal(err)
	}
}

// TestSilentModel: a chat asks a model that sends nothing once more, a run that nobody watches asks
// three times (decision 74).
func TestSilentModel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy approval.Policy
		asked  int
	}{"chat": {everything, 2}, "unattended": {approval.Policy{}, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			b := newBed(t, m)
			conn := b.impatientFor(m.server.URL, 50*time.Millisecond, 0)
			request := b.request(c.policy)
			if name == "unattended" {
				request = b.unattended("")
			}
			run, err := conn.Submit(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if name == "unattended" {
				b.state(conn, run.SessionID, regie.SessionWaitingNetwork)
			} else {
				expect(t, b.await(conn, run), regie.EndProviderError)
			}
			view, err := conn.Get(t.Context(), run.RoundID)
			if err != nil || m.count() != c.asked || len(view.Exchanges[0].Attempts) != c.asked || view.Exchanges[0].Attempts[0].Code != regie.CodeTimeout {
				t.Errorf("asked %d times, %+v, %v", m.count(), view.Exchanges[0].Attempts, err)
			}
		})
	}
}

// TestSilenceIsTold: a chat is told on its stream that its model sends nothing, and that it is at
// work again.
func TestSilenceIsTold(t *testing.T) {
	t.Parallel()
	speak := make(chan struct{})
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-speak:
			says("here")(w, r)
		case <-r.Context().Done():
		}
	})
	b := newBed(t, m)
	conn := b.impatientFor(m.server.URL, time.Minute, 0)
	run, err := conn.Submit(t.Context(), b.request(everything))
	if err != nil {
		t.Fatal(err)
	}
	silent := false
	b.hears(conn, run.SessionID, func(d *dispatch.Delta) bool {
		if d.Silent == 1 && d.RoundID == run.RoundID && !silent {
			silent = true
			close(speak)
		}
		return silent && d.Silent == 0
	})
	expect(t, b.await(conn, run), regie.EndAnswered)
}

// TestEscAtEveryMoment interrupts a chat whose model's server takes the connection and says
// nothing, and one that waits before it asks again: both end at once, although nothing else would
// have ended them within an hour.
func TestEscAtEveryMoment(t *testing.T) {
	t.Parallel()
	t.Run("silence", func(t *testing.T) {
		t.Parallel()
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		b := newBed(t, newModel(t))
		conn := b.impatientFor("http://"+silent.Addr().String(), time.Hour, 0)
		run, err := conn.Submit(t.Context(), b.request(everything))
		if err != nil {
			t.Fatal(err)
		}
		b.hears(conn, run.SessionID, func(d *dispatch.Delta) bool { return d.Silent > 0 })
		if err := conn.Interrupt(t.Context(), run.RoundID); err != nil {
			t.Fatal(err)
		}
		expect(t, b.await(conn, run), regie.EndInterrupted)
	})
	t.Run("backoff", func(t *testing.T) {
		t.Parallel()
		m := newModel(t, refusesWith(http.StatusServiceUnavailable, "busy"))
		b := newBed(t, m)
		conn := b.impatientFor(m.server.URL, time.Hour, time.Hour)
		run, err := conn.Submit(t.Context(), b.request(everything))
		if err != nil {
			t.Fatal(err)
		}
		b.until(conn, run.SessionID, func(e *regie.Event) bool { return e.Type == regie.EventStreamReset })
		if err := conn.Interrupt(t.Context(), run.RoundID); err != nil {
			t.Fatal(err)
		}
		expect(t, b.await(conn, run), regie.EndInterrupted)
		if m.count() != 1 {
			t.Errorf("asked %d times", m.count())
		}
	})
}
