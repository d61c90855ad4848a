package httpapi_test

import (
	"bufio"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
)

// newHints returns the interface to an engine that hears, again and again, that something has
// happened in a session, and not what, and that it has missed something.
func newHints(t *testing.T) http.Handler {
	t.Helper()
	hub := dispatch.NewHub()
	dispatcher := dispatch.New(nil, nil, hub, nil, "hints", slog.New(slog.DiscardHandler))
	id, err := regie.ParseID(absent)
	if err != nil {
		t.Fatal(err)
	}
	var telling sync.WaitGroup
	stop := make(chan struct{})
	telling.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				hub.Commit(id, nil)
				hub.Missed()
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		telling.Wait()
		dispatcher.Close(dispatch.ErrGone)
	})
	return serving(control.New(control.Config{Dispatcher: dispatcher, ReadOnly: true}))
}

// TestHintsMakeNothingUp: where nobody knows what happened, a watcher is told no number and no time
// of it, and no session where it may be any.
func TestHintsMakeNothingUp(t *testing.T) {
	server := httptest.NewServer(newHints(t))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	toldBoth(t, func() (string, bool) {
		for lines.Scan() {
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				return data, true
			}
		}
		return "", false
	})
	socket, _, err := websocket.Dial(ctx, server.URL+"/api/v1/ws", nil) //nolint:bodyclose // the library has it
	if err == nil {
		err = socket.Write(ctx, websocket.MessageText, []byte(`{"type":"subscribe","session_id":"*"}`))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.CloseNow() }()
	if _, _, err := socket.Read(ctx); err != nil { // that it is subscribed
		t.Fatal(err)
	}
	toldBoth(t, func() (string, bool) {
		_, said, err := socket.Read(ctx)
		data, is := strings.CutPrefix(string(said), `{"type":"session","session_id":"*","data":`)
		return strings.TrimSuffix(data, "}"), is && err == nil
	})
}

// toldBoth reads what a watcher is told until it was told of a session and of all of them.
func toldBoth(t *testing.T, read func() (string, bool)) {
	t.Helper()
	want := map[string]bool{`{"session_id":"` + absent + `","type":"session"}`: true, `{"type":"session"}`: true}
	for seen := map[string]bool{}; len(seen) < len(want); {
		data, ok := read()
		if !ok || !want[data] {
			t.Fatalf("a watcher is told %q", data)
		}
		seen[data] = true
	}
}

// TestNoPlaceInAllSessions: what happens in all sessions is told from now on, so a place to go on
// from is refused and not passed over: who gives one would believe that nothing is missing. No
// browser sends one by itself, since the events have no ids.
func TestNoPlaceInAllSessions(t *testing.T) {
	server := httptest.NewServer(newHints(t))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	socket, _, err := websocket.Dial(ctx, server.URL+"/api/v1/ws", nil) //nolint:bodyclose // the library has it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.CloseNow() }()
	for _, step := range []struct{ says, want string }{
		{`{"type":"subscribe","session_id":"*","after":12}`, `"code":"BAD_REQUEST"`},
		{`{"type":"subscribe","session_id":"*","after":-1}`, `"code":"BAD_REQUEST"`},
		{`{"type":"subscribe","session_id":"*","after":0}`, `{"type":"subscribed","session_id":"*"}`},
	} {
		if err := socket.Write(ctx, websocket.MessageText, []byte(step.says)); err != nil {
			t.Fatal(err)
		}
		if _, said, err := socket.Read(ctx); err != nil || !strings.Contains(string(said), step.want) {
			t.Errorf("to %s it says %s (%v)", step.says, said, err)
		}
	}
	for id, want := range map[string]int{"12": http.StatusBadRequest, "x": http.StatusBadRequest, "": http.StatusOK} {
		r, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/api/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Last-Event-ID", id)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != want {
			t.Errorf("behind %q: %s", id, response.Status)
		}
		_ = response.Body.Close()
	}
}
