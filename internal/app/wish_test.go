package app_test

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/store/sqlite"
)

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
		b := newBed(t, m)
		conn := b.impatient()
		t.Cleanup(func() { _ = conn.Close() })
		run, err := conn.Submit(t.Context(), b.request(everything))
		if err != nil {
			t.Fatal(err)
		}
		view := b.await(conn, run)
		expect(t, view, regie.EndProviderError)
		note, moment := view.Round.EndNote.String(), time.Now().Add(until)
		if m.count() != 1 || !strings.Contains(note, "slow down. Its server asks to wait until ") {
			t.Errorf("%s: asked %d times, told %q", after, m.count(), note)
		}
		// it is rounded, and some time has passed
		told := func(off time.Duration) bool { return strings.Contains(note, moment.Add(off).Format("15:04")) }
		if !told(0) && !told(-time.Minute) && !told(time.Minute) {
			t.Errorf("%s: %s is not in %q", after, moment, note)
		}
	}
	m := newModel(t, once(wishes("60"), says("hi"))) // a minute is waited for in the step
	b := newBed(t, m)
	conn := b.impatient()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(everything))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, b.await(conn, run), regie.EndAnswered)
}

// TestLongWishFallsBack: another provider goes on at once.
func TestLongWishFallsBack(t *testing.T) {
	t.Parallel()
	one, two := newModel(t, wishes("3600")), newModel(t, says("hi"))
	b := fallbackBed(t, one.server.URL, two.server.URL, "")
	conn := b.impatient()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(everything))
	if err != nil {
		t.Fatal(err)
	}
	if expect(t, b.await(conn, run), regie.EndAnswered); one.count() != 1 || two.count() != 1 {
		t.Errorf("asked %d and %d times", one.count(), two.count())
	}
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
			b := fallbackBed(t, one.server.URL, two.server.URL, "")
			b.alters()
			conn, err := app.Connect(t.Context(), app.Options{Config: b.settings, Models: b.watched(), TuneEngine: func(c *engine.Config) {
				c.Backoff = func(int, time.Duration) time.Duration { return 0 }
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			began := time.Now()
			run, err := conn.Submit(t.Context(), b.request(approval.Policy{WaitNetwork: true}))
			if err != nil {
				t.Fatal(err)
			}
			b.state(conn, run.SessionID, regie.SessionWaitingNetwork)
			view, err := conn.Get(t.Context(), run.RoundID)
			if err != nil {
				t.Fatal(err)
			}
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
func (b *bed) deadline(round regie.ID) time.Time {
	b.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.settings.DataDir, sqlite.FileName)+"?mode=ro")
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close()
	var at int64
	if err := db.QueryRowContext(b.t.Context(), "SELECT deadline FROM waits WHERE round_id = ? AND kind = 'NETWORK'", round).Scan(&at); err != nil {
		b.t.Fatal(err)
	}
	return time.UnixMicro(at)
}
