package app_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

func states(view store.RoundView) []string {
	var out []string
	for _, e := range view.Exchanges {
		for _, c := range e.Calls {
			state := string(c.State)
			if c.NotRun != "" {
				state += " " + string(c.NotRun)
			}
			out = append(out, state)
		}
	}
	return out
}

func expect(t *testing.T, view store.RoundView, end regie.RoundEnd, calls ...string) {
	t.Helper()
	if view.Round.End != end {
		t.Errorf("the round ended %s (%s), want %s", view.Round.End, view.Round.EndNote, end)
	}
	if diff := cmp.Diff(calls, states(view)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestMixedBatch runs queries and actions of one reply in their order, with each intent before its
// effect.
func TestMixedBatch(t *testing.T) {
	t.Parallel()
	m := newModel(t,
		says("I look.", call{"a", "files__list_files", `{}`}, call{"b", "files__write_file", `{"path":"x.txt","content":"one\n"}`},
			call{"c", "files__read_file", `{"path":"x.txt"}`}, call{"d", "files__write_file", `{"path":"x.txt","content":"two\n","mode":"append"}`}),
		says("All done."))
	b := newBed(t, m)
	view := b.run(everything)
	expect(t, view, regie.EndAnswered, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED")
	data, err := os.ReadFile(filepath.Join(b.root, "x.txt"))
	if err != nil || string(data) != "one\ntwo\n" {
		t.Errorf("%q, %v", data, err)
	}
	// The query in the middle saw the first write and not the second.
	if got := view.Exchanges[0].Calls[2].Result; !strings.Contains(got, "one") || strings.Contains(got, "two") {
		t.Errorf("the read in the middle saw %q", got)
	}
	if got := view.Exchanges[1].Reply.AI.Text(); got != "All done." {
		t.Errorf("the answer is %q", got)
	}
	// nobody says what it costs
	if u := view.Exchanges[0].Reply.Usage; u.Input < 500 || u.Input > 5000 || !u.Estimated || !view.Exchanges[0].Usage.Estimated || view.Exchanges[0].Money.Known {
		t.Errorf("usage %+v, money %+v", view.Exchanges[0].Reply.Usage, view.Exchanges[0].Money)
	}
}

// TestBadCalls proposes what cannot run; each gets its one result with a reason, and the model may
// go on.
func TestBadCalls(t *testing.T) {
	t.Parallel()
	calls := []call{
		{"a", "files__reed_file", `{}`},
		{"b", "files__read_file", `{"file":"x"}`},
		{"c", "files__read_file", `{"path":"../../etc/passwd"}`},
		{"d", "files__read_file", `{"path":"same"}`},
		{"e", "files__read_file", `{ "path" : "same" }`},
		{"a", "files__list_files", `{}`}, // the id stands twice
		{"", "files__list_files", `{"recursive":true}`},
		{"h", "files__read_file", `{"path":"1"}`},
		{"i", "files__read_file", `{"path":"2"}`},
		{"j", "files__read_file", `{"path":"3"}`},
		{"k", "files__read_file", `{"path":"over the limit"}`},
	}
	m := newModel(t, says("", calls...), says("I could not."))
	view := newBed(t, m).run(everything)
	expect(t, view, regie.EndAnswered, "NOT_RUN OUT_OF_SCOPE", "NOT_RUN INVALID", "FAILED", "FAILED", "NOT_RUN DUPLICATE_IN_BATCH", "SUCCEEDED",
		"SUCCEEDED", "FAILED", "FAILED", "FAILED", "NOT_RUN OVER_LIMIT")
	last := m.last()
	for _, want := range []string{"files__read_file", "PATH_OUTSIDE", "FILE_NOT_FOUND", "DUPLICATE_IN_BATCH", "OVER_LIMIT"} {
		if !strings.Contains(last, want) {
			t.Errorf("the model is not told %s", want)
		}
	}
	ids := map[string]bool{}
	for _, c := range view.Exchanges[0].Calls {
		if c.ProviderCallID == "" || ids[c.ProviderCallID] {
			t.Errorf("the provider's id %q is empty or repeats", c.ProviderCallID)
		}
		ids[c.ProviderCallID] = true
	}
}

// TestActionsAsk proposes an action that nothing allows.
func TestActionsAsk(t *testing.T) {
	t.Parallel()
	write := call{"w", "files__write_file", `{"path":"x","content":"x"}`}
	t.Run("deny and go on", func(t *testing.T) {
		m := newModel(t, says("", write), says("I was not allowed."))
		b := newBed(t, m)
		expect(t, b.run(approval.Policy{OnApproval: approval.DenyAndGoOn}), regie.EndAnswered, "NOT_RUN DENIED")
		if !strings.Contains(m.last(), "APPROVAL_NEEDED") {
			t.Error("the model is not told why")
		}
		if _, err := os.Stat(filepath.Join(b.root, "x")); err == nil {
			t.Error("it was written")
		}
	})
	t.Run("fail", func(t *testing.T) {
		m := newModel(t, says("", call{"l", "files__list_files", `{}`}, write))
		expect(t, newBed(t, m).run(approval.Policy{OnApproval: approval.FailRun}), regie.EndDenied, "NOT_RUN DENIED", "NOT_RUN DENIED")
	})
}

// TestLimits keeps a model that never ends inside its limits (invariant 10).
func TestLimits(t *testing.T) {
	t.Parallel()
	var steps []http.HandlerFunc
	for i := range 30 {
		steps = append(steps, says("", call{fmt.Sprint("q", i), "files__list_files", fmt.Sprintf(`{"pattern":"%d"}`, i)}))
	}
	view := newBed(t, newModel(t, steps...)).run(everything)
	if view.Round.End != regie.EndLimit || view.Round.Counters.Queries != 10 || len(view.Exchanges) != 11 || states(view)[10] != "NOT_RUN OVER_LIMIT" {
		t.Errorf("%s after %d exchanges: %+v %v", view.Round.End, len(view.Exchanges), view.Round.Counters, states(view))
	}
}

func refuses(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, status) }
}

// TestCutStream: a cut stream is asked again, and nothing of it runs.
func TestCutStream(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t, once(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, map[string]any{"content": "half an ans"})
		chunk(w, map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "x", "type": "function", "function": map[string]any{"name": "files__write_file", "arguments": `{"path":"half"`}}}})
	}, says("whole"))))
	view := b.run(everything)
	expect(t, view, regie.EndAnswered)
	if attempts := view.Exchanges[0].Attempts; len(attempts) != 1 || attempts[0].Code != regie.CodeTruncatedStream || attempts[0].Partial != "half an ans" {
		t.Errorf("attempts %+v", attempts)
	}
	if left, _ := os.ReadDir(b.root); len(left) != 0 {
		t.Errorf("half a call ran: %v", left)
	}
}

// TestInterrupt stops a run in the middle of an action (decision 6); TestCutModelCall does so in a
// model call.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	slow := action(t, "slow.act", regie.ClassOnce, func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
		close(started)
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}, nil)
	m := newModel(t, says("", call{"a", "slow__act", `{}`}, call{"b", "files__write_file", `{"path":"x","content":"x"}`}), says("Now what?"))
	b := newBed(t, m, slow)
	conn := b.connect()
	request := b.request(everything)
	run := b.send(conn, request)
	<-started
	for range 2 { // idempotent
		fatal(t, conn.Interrupt(t.Context(), run.RoundID))
	}
	expect(t, b.await(conn, run), regie.EndInterrupted, "UNKNOWN", "NOT_RUN INTERRUPTED")
	// The session is usable: its thread is legal, which the model server checks.
	request.ClientID = "again"
	expect(t, b.await(conn, b.send(conn, request)), regie.EndAnswered)
	if !strings.Contains(m.last(), "OUTCOME_UNKNOWN") {
		t.Error("the model is not told of the unknown outcome")
	}
}

// TestPauseAndResume pauses a run in an action: the action's result is kept, nothing new starts,
// and the same round goes on.
func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	started, free := make(chan struct{}), make(chan struct{})
	slow := action(t, "slow.act", regie.ClassOnce, func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
		close(started)
		select {
		case <-free:
			return tool.Result{Content: "done"}, nil
		case <-ctx.Done(): // a pause cuts nothing
			return tool.Result{}, context.Cause(ctx)
		}
	}, nil)
	m := newModel(t, says("", call{"a", "slow__act", `{}`}, call{"b", "files__write_file", `{"path":"x","content":"x"}`}), says("ok"))
	b := newBed(t, m, slow)
	conn, run := b.start(everything)
	<-started
	fatal(t, conn.Pause(t.Context(), run.RoundID))
	close(free)
	if err := conn.Close(); err != nil { // waits for what runs
		t.Fatal(err)
	}
	conn = b.connect()
	view := b.round(conn, run.RoundID)
	if diff := cmp.Diff([]string{"SUCCEEDED", "PROPOSED"}, states(view)); diff != "" || view.Session.State != regie.SessionPaused {
		t.Errorf("a paused run: %s %s", view.Session.State, diff)
	}
	resumeTogether(t, conn, run)
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "SUCCEEDED")
}
