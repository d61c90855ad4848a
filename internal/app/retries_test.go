package app_test

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// impatient attaches to an engine that waits for nothing between two tries.
func (b *harness) impatient() *app.Conn {
	b.t.Helper()
	return b.attach(app.Options{TuneEngine: func(c *engine.Config) {
		c.Backoff = func(int, time.Duration) time.Duration { return 0 }
		c.NetworkRetry = time.Hour
	}})
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
		replyWith("here")(w, r)
	})
	b := newHarness(t, m)
	conn := b.impatient()
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
		run := b.send(conn, request)
		session = run.SessionID
		view := b.await(conn, run)
		expect(t, view, regie.EndProviderError)
		if attempts := view.Exchanges[0].Attempts; m.count() != c.asked || len(attempts) != c.attempts || !strings.Contains(view.Round.EndNote.String(), c.said) {
			t.Errorf("chat %d: asked %d times, %d attempts, %q", i+1, m.count(), len(attempts), view.Round.EndNote)
		}
	}
	waits := b.send(conn, b.request(approval.Policy{WaitNetwork: true}))
	b.state(conn, waits.SessionID, regie.SessionWaitingNetwork)
	if m.count() != 7 {
		t.Errorf("asked %d times", m.count())
	}
	up.Store(true)
	if err := conn.Resume(t.Context(), waits.RoundID); err != nil { // as its deadline would
		t.Fatal(err)
	}
	expect(t, b.await(conn, waits), regie.EndAnswered)
	run := b.send(conn, b.request(everything))
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
		"empty replies":     replyWith(""),
		"malformed replies": replyWith("", call{"c", "files__list_files", `{"pattern"`}),
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
			b := newHarness(t, newModel(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(sent(r), "bad request") {
					bad(w, r)
					return
				}
				replyWith("here")(w, r)
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

// TestAdvice: after the last try people are told what they can do, and at each that the server has
// not failed in another way than it has.
func TestAdvice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step   http.HandlerFunc
		says   string
		status int
	}{
		"a fault":    {refusesWith(500, "on fire"), "on fire (try again in a while", 500},
		"overloaded": {refusesWith(503, "busy"), "busy (try again in a while, or use another model)", 503},
		"too fast":   {refusesWith(429, "slow down."), "slow down. (try again in a while", 429},
		"overloaded in the stream": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: {\"error\":{\"message\":\"much to do\",\"type\":\"overloaded_error\"}}\n\n"))
		}, "much to do (try again in a while", 503},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t, newModel(t, c.step))
			conn := b.impatient()
			run := b.send(conn, b.request(everything))
			view := b.await(conn, run)
			if expect(t, view, regie.EndProviderError); !strings.Contains(view.Round.EndNote.String(), c.says) {
				t.Errorf("told %q", view.Round.EndNote)
			}
			resets := 0
			for _, e := range b.eventsOf(conn, view) {
				var body struct{ Status int }
				if e.Type == regie.EventStreamReset && json.Unmarshal(e.Body, &body) == nil && body.Status == c.status {
					resets++
				}
			}
			if resets != 2 {
				t.Errorf("%d of 2 tries were told with their status", resets)
			}
		})
	}
}

// wishes is a server that is too busy, and says for how long.
func wishes(after string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", after)
		refusesWith(http.StatusTooManyRequests, "slow down")(w, r)
	}
}

// TestLongWish: a server that wants more than a minute is not asked again in the step; who is there
// is told until when (spec 3.6).
func TestLongWish(t *testing.T) {
	t.Parallel()
	for after, until := range map[string]time.Duration{"61": 61 * time.Second, "3600": time.Hour, "90000": 24 * time.Hour, "1e300": 24 * time.Hour} {
		m := newModel(t, wishes(after))
		b := newHarness(t, m)
		conn := b.impatient()
		run := b.send(conn, b.request(everything))
		view := b.await(conn, run)
		expect(t, view, regie.EndProviderError)
		note, moment := view.Round.EndNote.String(), time.Now().Add(until)
		if m.count() != 1 || !strings.Contains(note, "slow down (its server asks to wait until ") {
			t.Errorf("%s: asked %d times, told %q", after, m.count(), note)
		}
		// it is rounded, and some time has passed
		told := func(off time.Duration) bool { return strings.Contains(note, moment.Add(off).Format("15:04")) }
		if !told(0) && !told(-time.Minute) && !told(time.Minute) {
			t.Errorf("%s: %s is not in %q", after, moment, note)
		}
	}
	m := newModel(t, once(wishes("60"), replyWith("hi"))) // a minute is waited for in the step
	b := newHarness(t, m)
	conn := b.impatient()
	run := b.send(conn, b.request(everything))
	expect(t, b.await(conn, run), regie.EndAnswered)
}

// TestLongWishIsWaitedFor: an unattended run lets go for as long as the first of its servers
// wishes, and goes on with that one.
func TestLongWishIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		one, two http.HandlerFunc
		wait     time.Duration
		next     string
		notice   bool
	}{
		"one wish":                {wishes("7200"), refusesWith(401, "no key"), 2 * time.Hour, "one", true},
		"the shorter wish":        {wishes("7200"), wishes("120"), 2 * time.Minute, "two", false},
		"one that wishes nothing": {wishes("7200"), refusesWith(503, "busy"), 30 * time.Second, "two", false},
		"less than the interval":  {wishes("5"), refusesWith(401, "no key"), 30 * time.Second, "one", false},
	} {
		t.Run(name, func(t *testing.T) {
			one, two := newModel(t, c.one), newModel(t, c.two)
			b := fallbackHarness(t, one.server.URL, two.server.URL, "")
			b.alters()
			conn := b.attach(app.Options{TuneEngine: func(c *engine.Config) {
				c.Backoff = func(int, time.Duration) time.Duration { return 0 }
			}})
			began := time.Now()
			run := b.send(conn, b.request(approval.Policy{WaitNetwork: true}))
			b.state(conn, run.SessionID, regie.SessionWaitingNetwork)
			view := b.round(conn, run.RoundID)
			if until := b.deadline(run.RoundID); until.Before(began.Add(c.wait)) || until.After(time.Now().Add(c.wait)) {
				t.Errorf("it waits until %s", until.Sub(began))
			}
			if next := view.Exchanges[0].Provider; next != c.next {
				t.Errorf("it goes on with %s", next)
			}
			noticed := false
			for _, e := range b.eventsOf(conn, view) {
				noticed = noticed || e.Type == regie.EventNotice && strings.Contains(string(e.Body), "asks to wait until")
			}
			if noticed != c.notice {
				t.Errorf("people were told: %v", noticed)
			}
		})
	}
}

// deadline is when a round that waits is tried again.
func (b *harness) deadline(round regie.ID) time.Time {
	b.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.settings.DataDir, sqlite.FileName)+"?mode=ro")
	fatal(b.t, err)
	defer db.Close()
	var at int64
	fatal(b.t, db.QueryRowContext(b.t.Context(), "SELECT deadline FROM waits WHERE round_id = ? AND kind = 'NETWORK'", round).Scan(&at))
	return time.UnixMicro(at)
}
