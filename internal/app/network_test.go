package app_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// state waits until a session takes a state.
func (b *bed) state(control chat.Control, session regie.ID, want regie.SessionState) {
	b.t.Helper()
	b.until(control, session, func(e *regie.Event) bool {
		var body struct {
			State regie.SessionState `json:"state"`
		}
		return e.Type == regie.EventSessionState && json.Unmarshal(e.Body, &body) == nil && body.State == want
	})
}

// TestNetworkWait has a run wait for a model server that is not there yet: without a holder, over a
// restart, until it answers (decision 42). A run that was not told to wait is told at once.
func TestNetworkWait(t *testing.T) {
	t.Parallel()
	address, listen := reserve(t)
	m := newModel(t, says("here at last"))
	b := newBed(t, m)
	b.settings.BaseURL = "http://" + address + "/v1"
	b.settings.File.Automation.NetworkRetry = time.Hour // no try is under way at the restart
	conn := b.connect()
	plain, err := conn.Submit(t.Context(), b.request(everything))
	if err != nil {
		t.Fatal(err)
	}
	told := b.await(conn, plain)
	expect(t, told, regie.EndProviderError)
	if tries := len(told.Exchanges[0].Attempts); tries != 1 {
		t.Errorf("told after %d tries", tries)
	}

	run, err := conn.Submit(t.Context(), b.request(approval.Policy{WaitNetwork: true}))
	if err != nil {
		t.Fatal(err)
	}
	b.state(conn, run.SessionID, regie.SessionWaitingNetwork)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	conn = b.connect()
	defer conn.Close()
	server := httptest.NewUnstartedServer(m)
	server.Listener.Close()
	server.Listener = listen()
	server.Start()
	defer server.Close()
	if err := conn.Resume(t.Context(), run.RoundID); err != nil { // who resumes it wants it tried now
		t.Fatal(err)
	}
	view := b.await(conn, run)
	expect(t, view, regie.EndAnswered)
	for _, attempt := range view.Exchanges[0].Attempts {
		if attempt.Code != regie.CodeProviderOffline {
			t.Errorf("an attempt that never was is booked: %+v", attempt)
		}
	}
	if view.Round.Counters.Resumes != 0 {
		t.Errorf("%d resumes", view.Round.Counters.Resumes)
	}
}

// TestNetworkWaitIsInterrupted ends a run that waits for the network.
func TestNetworkWaitIsInterrupted(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t))
	b.settings.BaseURL = "http://127.0.0.1:1/v1"
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{WaitNetwork: true}))
	if err != nil {
		t.Fatal(err)
	}
	b.state(conn, run.SessionID, regie.SessionWaitingNetwork)
	if err := conn.Interrupt(t.Context(), run.RoundID); err != nil {
		t.Fatal(err)
	}
	view := b.await(conn, run)
	expect(t, view, regie.EndInterrupted)
	if attempts := view.Exchanges[0].Attempts; len(attempts) != 1 || attempts[0].Code != regie.CodeProviderOffline {
		t.Errorf("an attempt that never was is booked: %+v", attempts)
	}
}

// TestNextRoundIsNew starts a round by messages that waited: nothing of it is booked as lost.
func TestNextRoundIsNew(t *testing.T) {
	t.Parallel()
	asked, free := make(chan struct{}, 1), make(chan struct{})
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-free
		says("first")(w, r)
	}, says("second"))
	b := newBed(t, m)
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(everything))
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	in := b.request(everything)
	in.SessionID, in.Text, in.WhenBusy = run.SessionID, "next", store.Queue
	if _, err := conn.Submit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	close(free)
	expect(t, b.await(conn, run), regie.EndAnswered)
	view := b.await(conn, dispatch.Run{SessionID: run.SessionID, RoundID: b.rounds(conn, 2)[0].Round.ID})
	if len(view.Exchanges[0].Attempts) != 0 || !strings.Contains(m.last(), "next") {
		t.Errorf("attempts %+v", view.Exchanges[0].Attempts)
	}
}
