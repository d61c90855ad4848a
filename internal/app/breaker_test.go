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

// TestBreaker has a provider fail five times in a row: then a chat whose call failed is told so at
// once, and another finds out with one call. A run that waits for the network is tried at its
// moment all the same, and what comes of that is everybody's.
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
	var session regie.ID
	for i, c := range []struct {
		asked, attempts int
		said            string
		again           bool // in the same chat
	}{{3, 3, "on fire", false}, {5, 3, "on fire", false}, {6, 2, "on fire", false}, {6, 1, "failed 5 times in a row", true}} {
		request := b.request(everything)
		if c.again {
			request.SessionID = session
		}
		run, err := conn.Submit(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		session = run.SessionID
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
	if m.count() != 7 {
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
	if m.count() != 9 {
		t.Errorf("asked %d times", m.count())
	}
}

// TestOneClientKeepsNobodyOut has one client send requests that bring nothing, again and again,
// each in a session of its own: another client is answered at once, also where it comes for the
// first time.
func TestOneClientKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]http.HandlerFunc{
		"empty replies":     says(""),
		"malformed replies": says("", call{"c", "files__list_files", `{"pattern"`}),
		"errors of the server": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":{"message":"this prompt kills me"}}`, http.StatusInternalServerError)
		},
		"too many requests": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":{"message":"too large for your limit"}}`, http.StatusTooManyRequests)
		},
		"broken connections": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, newModel(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(sent(r), "bad request") {
					bad(w, r)
					return
				}
				says("here")(w, r)
			}))
			d := b.doorOf(b.impatient())
			asks := func(text string) answered {
				return d.do(http.MethodPost, "/v1/chat/completions", `{"model":"main","messages":[{"role":"user","content":"`+text+`"}]}`,
					header{"Content-Type": "application/json"})
			}
			for range 2 {
				for range 6 {
					if got := asks("bad request"); got.status == http.StatusOK {
						t.Fatalf("%s", got.body)
					}
				}
				if got := asks("hello"); got.status != http.StatusOK || len(got.Choices) != 1 || got.Choices[0].Message.Content != "here" {
					t.Errorf("another client gets %d: %s", got.status, got.body)
				}
			}
		})
	}
}
