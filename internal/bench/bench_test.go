package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	for _, c := range []struct {
		values []float64
		p      float64
		want   float64
	}{{nil, 50, 0}, {[]float64{3}, 99, 3}, {[]float64{3, 1, 2}, 50, 2}, {[]float64{4, 3, 2, 1}, 99, 4}, {[]float64{5, 1}, 0, 1}} {
		if got := percentile(c.values, c.p); got != c.want {
			t.Errorf("percentile %v of %v is %v, want %v", c.p, c.values, got, c.want)
		}
	}
}

// TestForwarders puts requests through both contestants of P13: each answers what the provider
// does.
func TestForwarders(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, proxyReply)
	}))
	defer provider.Close()
	for _, who := range []string{"proxy", "forwarder"} {
		handler, done, err := forwarder(who, provider.URL, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(handler)
		if latencies, err := load(server.URL, 100); err != nil || len(latencies) != 90 {
			t.Errorf("%s: %d latencies, %v", who, len(latencies), err)
		}
		server.Close()
		if err := done(); err != nil {
			t.Error(err)
		}
	}
}

// TestContestants runs both contestants against the scripted server: each does all of its runs, and
// the server sees each gap.
func TestContestants(t *testing.T) {
	s := newServer()
	server := httptest.NewServer(s.handler())
	defer server.Close()
	for _, name := range []string{"floor-none", "floor-full", "floor-group", "regie"} {
		t.Run(name, func(t *testing.T) {
			calls := newMeter(3)
			run := trial{Contestant: name, URL: server.URL + "/v1", Steps: 3, Concurrent: 4, Runs: 8}
			c, err := run.open(t.TempDir(), calls.noop)
			if err != nil {
				t.Fatal(err)
			}
			latencies, seconds, err := run.all(c)
			if err != nil || len(latencies) != 8 || seconds <= 0 {
				t.Errorf("%d runs in %v s: %v", len(latencies), seconds, err)
			}
			if f, ok := c.(*floor); ok && f.db != nil {
				var rows int
				// a user's message, three replies with two results each, an answer
				if err := f.db.QueryRowContext(t.Context(), "SELECT count(*) FROM messages").Scan(&rows); err != nil || rows != 8*(1+3*3+1) {
					t.Errorf("the floor stored %d rows (%v)", rows, err)
				}
			}
			if err := c.close(); err != nil {
				t.Error(err)
			}
			if got := calls.calls.Load(); got != 8*3*2 {
				t.Errorf("%d calls, want %d", got, 8*3*2)
			}
			gaps, err := fetchGaps(server.URL + "/v1")
			if err != nil || len(gaps) != 8*3 {
				t.Errorf("%d gaps, want %d (%v)", len(gaps), 8*3, err)
			}
		})
	}
}

// TestStreams has each listener hear the first token of each run, a moment after it was sent.
func TestStreams(t *testing.T) {
	server := httptest.NewServer(newServer().handler())
	defer server.Close()
	for name, listeners := range map[string]int{"floor-none": 1, "regie": 3} {
		t.Run(name, func(t *testing.T) {
			run := trial{Contestant: name, URL: server.URL + "/v1", Tokens: 50, Listeners: listeners, Runs: runsOfSession}
			c, err := run.open(t.TempDir(), func() {})
			if err != nil {
				t.Fatal(err)
			}
			got, err := run.streams(c)
			if err != nil || len(got.First) != listeners*runsOfSession || got.CPU <= 0 || slices.ContainsFunc(got.First, func(ns int64) bool { return ns <= 0 || ns > int64(10*time.Second) }) {
				t.Errorf("%+v (%v)", got, err)
			}
			if err := c.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReadScript(t *testing.T) {
	steps, run, err := readScript([]byte(`{"model":"bench-7","messages":[{"role":"user","content":"` + job("a1") + `"}]}`))
	if steps != 7 || run != "a1" || err != nil {
		t.Errorf("%d %q %v", steps, run, err)
	}
	for _, body := range []string{`{}`, `{"model":"bench-x"}`, `{"model":"bench-1"}`} {
		if _, _, err := readScript([]byte(body)); err == nil || !strings.Contains(err.Error(), "no ") {
			t.Errorf("%s: %v", body, err)
		}
	}
}
