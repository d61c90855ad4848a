package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
)

// TestCutModelCall cuts model calls in the middle: what is booked says what has cut them, and not
// that a connection broke. Where the process lives, it is booked at what was sent and received,
// marked as estimated, and its reservation is free again (decision 72).
func TestCutModelCall(t *testing.T) {
	if in := (asking{}); isChild(t, &in) {
		askForEver(t, in)
	}
	for name, c := range map[string]struct {
		cut  func(conn *app.Conn, run dispatch.Run) error // none is a kill
		code regie.Code
		why  string
		end  regie.RoundEnd
	}{
		"paused":      {func(conn *app.Conn, run dispatch.Run) error { return conn.Pause(t.Context(), run.RoundID) }, regie.CodeStopRequested, "the run was paused while the model was being asked", regie.EndAnswered},
		"interrupted": {func(conn *app.Conn, run dispatch.Run) error { return conn.Interrupt(t.Context(), run.RoundID) }, regie.CodeStopRequested, "stopped by the person", regie.EndInterrupted},
		"stopped": {func(conn *app.Conn, run dispatch.Run) error {
			_, err := conn.Stop(t.Context(), run.SessionID)
			return err
		}, regie.CodeStopRequested, "stopped by the person", regie.EndStopped},
		"shut down": {func(conn *app.Conn, _ dispatch.Run) error { return conn.Close() }, regie.CodeEngineGone, "Regie was stopped while it was asking the model", regie.EndAnswered},
		"killed":    {nil, regie.CodeEngineGone, "the process that was asking the model ended without a word: it was killed, or it crashed", regie.EndAnswered},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{}, 10)
			b := newHarness(t, newModel(t, once(func(w http.ResponseWriter, r *http.Request) {
				asked <- struct{}{}
				speaksThenHangs(w, r)
			}, claims(used, replyWith("Done.")))))
			if c.cut == nil {
				b.killedWhile(asked)
			} else {
				b.priced(config.Budget{USDPerSession: 900_000})
				conn, run := b.start(everything)
				b.spoken400(conn, run)
				fatal(t, c.cut(conn, run))
			}
			conn := b.connect()
			line := b.rounds(conn, 1)[0]
			if name == "paused" {
				b.state(conn, line.Session.ID, regie.SessionPaused)
				fatal(t, conn.Resume(t.Context(), line.Round.ID))
			}
			view := b.await(conn, dispatch.Run{SessionID: line.Session.ID, RoundID: line.Round.ID})
			expect(t, view, c.end)
			attempts := view.Exchanges[0].Attempts
			if len(attempts) != 1 || attempts[0].Code != c.code || attempts[0].Error != c.why {
				t.Fatalf("booked is %+v, want %s: %s", attempts, c.code, c.why)
			}
			if c.end == regie.EndAnswered && !slices.ContainsFunc(b.eventsOf(conn, view), func(e regie.Event) bool {
				return e.Type == regie.EventStreamReset && strings.Contains(string(e.Body), string(c.code))
			}) {
				t.Error("the log does not say what has cut it")
			}
			if c.cut == nil {
				return
			}
			// The text has 440 bytes, which are about 110 tokens of ten millionths each.
			if m, u := attempts[0].Money, attempts[0].Usage; !m.Estimated || !m.Known || m.Cost < 1100+100 || m.Cost > 10_000 || m.Reserved < 80_000 || u.Output != 110 || !u.Estimated {
				t.Errorf("booked %+v for %+v", m, u)
			}
			if s := view.Spent; !s.Known || s.Due != 0 || s.Estimated != attempts[0].Money.Cost {
				t.Errorf("it cost %+v", s)
			}
		})
	}
}

// killedWhile has a process of its own ask the model, and kills it with SIGKILL once it does.
func (b *harness) killedWhile(asked <-chan struct{}) {
	b.t.Helper()
	var said bytes.Buffer
	child := b.child(asking{b.settings, b.request(everything)})
	child.Stdout, child.Stderr = &said, &said
	fatal(b.t, child.Start())
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	select {
	case <-asked:
		fatal(b.t, child.Process.Kill())
		if err := <-ended; err == nil {
			b.t.Error("the child was not killed")
		}
	case err := <-ended:
		b.t.Fatalf("the child has ended before it asked: %v\n%s", err, said.String())
	}
}

// speaksThenHangs streams 440 bytes of a reply, and goes on until it is cut.
func speaksThenHangs(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	chunk(w, map[string]any{"content": strings.Repeat("half of it ", 40)})
	<-r.Context().Done()
}

// spoken400 waits until all that speaksThenHangs says has come.
func (b *harness) spoken400(conn *app.Conn, run dispatch.Run) {
	b.t.Helper()
	whole := errors.New("it has come")
	heard := 0
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	err := conn.Events(ctx, run.SessionID, 0, func(item dispatch.Item) error {
		if item.Delta != nil {
			heard += len(item.Delta.Content)
		}
		if heard >= 440 {
			return whole
		}
		return nil
	})
	if !errors.Is(err, whole) {
		b.t.Fatal(err)
	}
}

// impatientFor attaches to an engine whose model at an address may be silent for idle, and whose
// chats are told of that after a second.
func (b *harness) impatientFor(address string, idle, backoff time.Duration) *app.Conn {
	b.t.Helper()
	return b.attach(app.Options{
		Models: func(name string) (provider.Provider, error) {
			return openai.New(openai.Config{Name: name, BaseURL: address, APIKey: "k", Idle: idle})
		},
		TuneEngine: func(c *engine.Config) {
			c.Backoff = func(int, time.Duration) time.Duration { return backoff }
			c.NetworkRetry, c.SilentAfter = time.Hour, time.Second
		},
	})
}

// hears follows a session until a delta is what is wanted.
func (b *harness) hears(conn *app.Conn, session regie.ID, want func(d *dispatch.Delta) bool) {
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
			b := newHarness(t, m)
			conn := b.impatientFor(m.server.URL, 50*time.Millisecond, 0)
			request := b.request(c.policy)
			if name == "unattended" {
				request = b.unattended("")
			}
			run := b.send(conn, request)
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
			replyWith("here")(w, r)
		case <-r.Context().Done():
		}
	})
	b := newHarness(t, m)
	conn := b.impatientFor(m.server.URL, time.Minute, 0)
	run := b.send(conn, b.request(everything))
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
		fatal(t, err)
		defer silent.Close()
		b := newHarness(t, newModel(t))
		conn := b.impatientFor("http://"+silent.Addr().String(), time.Hour, 0)
		run := b.send(conn, b.request(everything))
		b.hears(conn, run.SessionID, func(d *dispatch.Delta) bool { return d.Silent > 0 })
		fatal(t, conn.Interrupt(t.Context(), run.RoundID))
		expect(t, b.await(conn, run), regie.EndInterrupted)
	})
	t.Run("backoff", func(t *testing.T) {
		t.Parallel()
		m := newModel(t, refusesWith(http.StatusServiceUnavailable, "busy"))
		b := newHarness(t, m)
		conn := b.impatientFor(m.server.URL, time.Hour, time.Hour)
		run := b.send(conn, b.request(everything))
		b.until(conn, run.SessionID, func(e *regie.Event) bool { return e.Type == regie.EventStreamReset })
		fatal(t, conn.Interrupt(t.Context(), run.RoundID))
		expect(t, b.await(conn, run), regie.EndInterrupted)
		if m.count() != 1 {
			t.Errorf("asked %d times", m.count())
		}
	})
}

// state waits until a session takes a state.
func (b *harness) state(control service, session regie.ID, want regie.SessionState) {
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
	m := newModel(t, replyWith("here at last"))
	b := newHarness(t, m)
	b.settings.BaseURL = "http://" + address + "/v1"
	b.settings.File.Automation.NetworkRetry = time.Hour // no try is under way at the restart
	conn := b.connect()
	plain := b.send(conn, b.request(everything))
	told := b.await(conn, plain)
	expect(t, told, regie.EndProviderError)
	if tries := len(told.Exchanges[0].Attempts); tries != 1 {
		t.Errorf("told after %d tries", tries)
	}

	run := b.send(conn, b.request(approval.Policy{WaitNetwork: true}))
	b.state(conn, run.SessionID, regie.SessionWaitingNetwork)
	fatal(t, conn.Close())
	conn = b.connect()
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
