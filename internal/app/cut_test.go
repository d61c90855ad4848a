package app_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
)

// asking is what the child process of TestCutModelCall is told.
type asking struct {
	Settings config.Config
	Request  dispatch.RunRequest
}

// TestCutModelCall cuts model calls in the middle: what is booked says what has cut them, and not
// that a connection broke.
func TestCutModelCall(t *testing.T) {
	if said := os.Getenv("REGIE_TEST_CUT"); said != "" {
		askForEver(t, said)
	}
	for name, c := range map[string]struct {
		cut  func(conn *app.Conn, round regie.ID) error
		code regie.Code
		why  string
		end  regie.RoundEnd
	}{
		"paused":      {func(conn *app.Conn, round regie.ID) error { return conn.Pause(t.Context(), round) }, regie.CodeStopRequested, "the run was paused while the model was being asked", regie.EndAnswered},
		"interrupted": {func(conn *app.Conn, round regie.ID) error { return conn.Interrupt(t.Context(), round) }, regie.CodeStopRequested, "stopped by the person", regie.EndInterrupted},
		"stopped":     {func(conn *app.Conn, _ regie.ID) error { return conn.Close() }, regie.CodeEngineGone, "Regie was stopped while it was asking the model", regie.EndAnswered},
		"killed":      {nil, regie.CodeEngineGone, "the process that was asking the model ended without a word: it was killed, or it crashed", regie.EndAnswered},
	} {
		t.Run(name, func(t *testing.T) {
			first := hold(says("Done."))
			b := newBed(t, newModel(t, first.serve(0)))
			var conn *app.Conn
			if c.cut == nil {
				b.killedWhile(first.asked)
			} else {
				conn = b.connect()
				defer conn.Close()
				run, err := conn.Submit(t.Context(), b.request(everything))
				if err != nil {
					t.Fatal(err)
				}
				<-first.asked
				if err := c.cut(conn, run.RoundID); err != nil {
					t.Fatal(err)
				}
			}
			if name == "paused" {
				b.state(conn, b.rounds(conn, 1)[0].Session.ID, regie.SessionPaused)
			} else {
				conn = b.connect()
				defer conn.Close()
			}
			if c.end == regie.EndAnswered {
				close(first.free) // the next time it is asked
			}
			line := b.rounds(conn, 1)[0]
			if name == "paused" {
				if err := conn.Resume(t.Context(), line.Round.ID); err != nil {
					t.Fatal(err)
				}
			}
			view := b.await(conn, dispatch.Run{SessionID: line.Session.ID, RoundID: line.Round.ID})
			expect(t, view, c.end)
			attempts := view.Exchanges[0].Attempts
			if len(attempts) != 1 || attempts[0].Code != c.code || attempts[0].Error != c.why {
				t.Errorf("booked is %+v, want %s: %s", attempts, c.code, c.why)
			}
			reset := false
			if c.end == regie.EndAnswered {
				b.until(conn, line.Session.ID, func(e *regie.Event) bool {
					var body struct {
						Code regie.Code `json:"code"`
					}
					if e.Type == regie.EventStreamReset && json.Unmarshal(e.Body, &body) == nil {
						reset = body.Code == c.code
					}
					return e.Type == regie.EventRound && roundEnded(e)
				})
				if !reset {
					t.Error("the log does not say what has cut it")
				}
			}
		})
	}
}

func roundEnded(e *regie.Event) bool {
	var body struct {
		State regie.RoundState `json:"state"`
	}
	return json.Unmarshal(e.Body, &body) == nil && body.State == regie.RoundEnded
}

// killedWhile has a process of its own ask the model, and kills it with SIGKILL once it does.
func (b *bed) killedWhile(asked <-chan struct{}) {
	b.t.Helper()
	said, err := json.Marshal(asking{b.settings, b.request(everything)})
	if err != nil {
		b.t.Fatal(err)
	}
	child := exec.CommandContext(b.t.Context(), os.Args[0], "-test.run=^TestCutModelCall$", "-test.count=1")
	child.Env = append(os.Environ(), "REGIE_TEST_CUT="+string(said))
	if err := child.Start(); err != nil {
		b.t.Fatal(err)
	}
	<-asked
	if err := child.Process.Kill(); err != nil {
		b.t.Fatal(err)
	}
	_ = child.Wait() // it was killed
}

func askForEver(t *testing.T, said string) {
	t.Helper()
	var in asking
	if err := json.Unmarshal([]byte(said), &in); err != nil {
		t.Fatal(err)
	}
	conn, err := app.Connect(context.Background(), app.Options{Config: in.Settings})
	if err == nil {
		_, err = conn.Submit(context.Background(), in.Request)
	}
	if err != nil {
		t.Fatal(err)
	}
	select {}
}
