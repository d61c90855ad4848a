package app_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/engine"
)

// impatient attaches to an engine that waits for nothing between two tries.
func (b *bed) impatient() *app.Conn {
	b.t.Helper()
	conn, err := app.Connect(b.t.Context(), app.Options{
		Config: b.settings, Tools: b.tools, Models: b.watched(),
		TuneEngine: func(c *engine.Config) {
			c.Backoff = func(int, time.Duration) time.Duration { return 0 }
			c.NetworkRetry = time.Hour
		},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return conn
}

// TestBreaker has a provider fail five times in a row: then it is not asked, and people are told so at once. A run that waits for the network
// is tried at its moment all the same, and what comes of that is everybody's.
func TestBreaker(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			http.Error(w, `{"error":{"message":"on fire"}}`, http.StatusInternalServerError)
			return
		}
		says("here")(w, r)
	})
	b := newBed(t, m)
	conn := b.impatient()
	defer conn.Close()
	for i, c := range []struct {
		asked, attempts int
		said            string
	}{{3, 3, "on fire"}, {5, 3, "on fire"}, {5, 1, "failed 5 times in a row"}} {
		run, err := conn.Submit(t.Context(), b.request(everything))
		if err != nil {
			t.Fatal(err)
		}
		view := b.await(conn, run)
		expect(t, view, regie.EndProviderError)
		if attempts := view.Exchanges[0].Attempts; m.count() != c.asked || len(attempts) != c.attempts || !strings.Contains(view.Round.EndNote.String(), c.said) {
			t.Errorf("chat %d: asked %d times, %d attempts, %q", i+1, m.count(), len(attempts), view.Round.EndNote)
		}
	}
	waits, err := conn.Submit(t.Context(), b.request(approval.Policy{WaitNetwork: true}))
	if err != nil {
		t.Fatal(err)
	}
	b.state(conn, waits.SessionID, regie.SessionWaitingNetwork)
	if m.count() != 5 {
		t.Errorf("asked %d times", m.count())
	}
	up.Store(true)
	if err := conn.Resume(t.Context(), waits.RoundID); err != nil { // as its deadline would
		t.Fatal(err)
	}
	expect(t, b.await(conn, waits), regie.EndAnswered)
	run, err := conn.Submit(t.Context(), b.request(everything))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, b.await(conn, run), regie.EndAnswered)
	if m.count() != 7 {
		t.Errorf("asked %d times", m.count())
	}
}
