package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sandbox"
)

// runs is a call of shell_exec.
func runs(id, command string, timeout int) call {
	arguments, _ := json.Marshal(map[string]any{"command": command, "timeout": timeout}) // of text it does not fail
	return call{id, "shell__shell_exec", string(arguments)}
}

// needsSandbox skips where commands cannot be confined; in CI they can. It returns the tier.
func needsSandbox(t *testing.T) sandbox.Tier {
	t.Helper()
	found := sandbox.New(sandbox.Config{Environ: os.Environ()}).Find(t.Context())
	if found.Tier != sandbox.None {
		return found.Tier
	}
	if os.Getenv("REGIE_CI") != "" && runtime.GOOS == "linux" {
		t.Fatalf("CI confines commands, and nothing does here: %+v", found)
	}
	t.Skip("commands cannot be confined here")
	return sandbox.None
}

// TestShellRules allows a command always: that one runs from then on, with any timeout and without
// a question; whatever only looks like it is asked about.
func TestShellRules(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	b := newHarness(t, newModel(t,
		replyWith("", runs("a", "echo one", 5)), replyWith("", runs("b", "echo  'one'", 6)), replyWith("", runs("c", "echo one; echo two", 6)), replyWith("", runs("d", "echo one two", 6)), replyWith("ok")))
	conn, run, asked := b.startAsked(approval.Policy{})
	scopes := asked.Reviews[0].Preview.Scopes
	if len(scopes) != 2 || scopes[1].Kind != regie.ScopeArgv {
		t.Fatalf("an answer may cover %+v", scopes)
	}
	heard := make(chan string, 100)
	go func() { // ends with the connection
		_ = conn.Events(t.Context(), run.SessionID, 0, func(item dispatch.Item) error {
			if item.Delta != nil && item.Delta.Output != "" {
				heard <- item.Delta.Output
			}
			return nil
		})
	}()
	b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAlways, Scope: &scopes[1]})
	for _, command := range []string{"echo one; echo two", "echo one two"} {
		next := b.next(conn, run.SessionID, asked.ID)
		if next.ID.IsZero() || !strings.Contains(string(next.Reviews[0].Arguments), command) {
			t.Fatalf("asked about %+v", next.Reviews)
		}
		b.decide(conn, next, regie.Decision{CallID: next.Reviews[0].CallID, Answer: regie.AnswerAllow})
		asked = next
	}
	view := b.await(conn, run)
	expect(t, view, regie.EndAnswered, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED")
	var results []string
	for _, exchange := range view.Exchanges {
		for _, c := range exchange.Calls {
			results = append(results, c.Result)
		}
	}
	for i, want := range []string{"one\n", "one\n", "one\ntwo\n", "one two\n"} {
		if results[i] != "exit code: 0\noutput:\n"+want {
			t.Errorf("the result %d is %q", i+1, results[i])
		}
	}
	select {
	case output := <-heard:
		if output != "one\n" {
			t.Errorf("heard %q", output)
		}
	case <-time.After(10 * time.Second):
		t.Error("nobody heard the output")
	}
}

// TestShellUnattended: what nobody watches runs confined, or not at all.
func TestShellUnattended(t *testing.T) {
	t.Parallel()
	t.Run("without a sandbox", func(t *testing.T) {
		b := newHarness(t, newModel(t, replyWith("", runs("a", "echo one > new", 5)), replyWith("", call{"c", "session__complete", `{"summary":"done"}`})))
		b.settings.File.Shell.Sandbox = "none"
		view := b.ask(b.unattended(regie.DialectNative))
		if got := view.Exchanges[0].Calls[0]; got.State != regie.CallFailed || got.Error.Code != regie.CodeNoSandbox {
			t.Errorf("got %s %+v", got.State, got.Error)
		}
		if _, err := os.Stat(filepath.Join(b.root, "new")); err == nil {
			t.Error("it ran")
		}
	})
	t.Run("in a sandbox", func(t *testing.T) {
		needsSandbox(t)
		b := newHarness(t, newModel(t, replyWith("", runs("a", "echo one > new", 5)), replyWith("", call{"c", "session__complete", `{"summary":"done"}`})))
		view := b.ask(b.unattended(regie.DialectNative))
		if got := view.Exchanges[0].Calls[0]; got.State != regie.CallSucceeded {
			t.Errorf("got %s %+v", got.State, got.Error)
		}
	})
}

// TestShellUnconfined asks about every command that nothing confines, whatever is allowed, and says
// so.
func TestShellUnconfined(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", runs("a", "echo one", 5)), replyWith("ok")))
	b.settings.File.Shell.Sandbox = "none"
	conn, run, asked := b.startAsked(everything)
	review := asked.Reviews[0]
	if review.Verdict != regie.VerdictMustAsk || !strings.Contains(review.Preview.Sentence.String(), "WITHOUT a sandbox") || len(review.Preview.Scopes) != 0 {
		t.Errorf("asked %+v", review)
	}
	b.decide(conn, asked, regie.Decision{CallID: review.CallID, Answer: regie.AnswerAllow})
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
}

// TestShellKilled kills the engine with SIGKILL in the middle of a command: the command dies with
// it, its outcome is UNKNOWN, and nobody runs it again.
func TestShellKilled(t *testing.T) {
	t.Parallel()
	if told := (asking{}); isChild(t, &told) {
		askForEver(t, told)
	}
	needsSandbox(t)
	b := newHarness(t, newModel(t, replyWith("", runs("a", "echo x >> ran; while :; do echo y >> alive; sleep 0.02; done", 60)), replyWith("ok")))
	in := b.request(everything)
	child := b.child(asking{b.settings, in})
	fatal(t, child.Start())
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(b.root, name))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	for deadline := time.Now().Add(30 * time.Second); size("alive") == 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the command does not start")
		}
	}
	fatal(t, child.Process.Signal(syscall.SIGKILL))
	_ = child.Wait()
	conn := b.connect()
	view := b.await(conn, dispatch.Run{SessionID: in.SessionID, RoundID: b.lastRound(conn, in.SessionID)})
	expect(t, view, regie.EndAnswered, "UNKNOWN")
	if size("ran") != 2 {
		t.Errorf("the command ran %d times", size("ran")/2)
	}
	for before, deadline := size("alive"), time.Now().Add(5*time.Second); ; {
		<-time.After(200 * time.Millisecond) // ten of its steps
		now := size("alive")
		if now == before {
			break
		}
		if before = now; time.Now().After(deadline) {
			t.Fatal("the command is alive")
		}
	}
}

// lastRound is the only round of a session.
func (b *harness) lastRound(conn *app.Conn, session regie.ID) (round regie.ID) {
	b.t.Helper()
	b.until(conn, session, func(e *regie.Event) bool {
		var body struct {
			RoundID regie.ID `json:"round_id"`
		}
		if e.Type == regie.EventRound && json.Unmarshal(e.Body, &body) == nil {
			round = body.RoundID
		}
		return !round.IsZero()
	})
	return round
}
