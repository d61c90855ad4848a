package app_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/tool"
)

// TestCircles meets models that repeat themselves (decisions 9 and 30): what was answered is not
// done again, and who cannot stop is stopped.
func TestCircles(t *testing.T) {
	t.Parallel()
	counted := func(t *testing.T, runs *atomic.Int64) tool.Tool {
		t.Helper()
		return action(t, "x.act", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
			runs.Add(1)
			return tool.Result{Content: "done"}, nil
		}, nil)
	}
	t.Run("the same call delivered twice", func(t *testing.T) {
		var runs atomic.Int64
		act := []http.HandlerFunc{says("", call{"same", "x__act", `{}`}), says("", call{"same", "x__act", `{}`}), says("ok")}
		view := newBed(t, newModel(t, act...), counted(t, &runs)).run(everything)
		expect(t, view, regie.EndAnswered, "SUCCEEDED", "NOT_RUN ANTI_LOOP")
		if runs.Load() != 1 || !strings.Contains(view.Exchanges[1].Calls[0].Result, "done") {
			t.Errorf("%d runs, told %q", runs.Load(), view.Exchanges[1].Calls[0].Result)
		}
	})
	t.Run("the same call delivered again, behind a failed write under its id", func(t *testing.T) {
		var runs atomic.Int64
		failing := action(t, "x.fail", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
			return tool.Result{}, tool.NotDone{Err: regie.Errorf(regie.CodeNoPermission, "not today")}
		}, nil)
		act := []http.HandlerFunc{says("", call{"same", "x__act", `{}`}), says("", call{"same", "x__fail", `{}`}), says("", call{"same", "x__act", `{}`}), says("ok")}
		view := newBed(t, newModel(t, act...), counted(t, &runs), failing).run(everything)
		expect(t, view, regie.EndAnswered, "SUCCEEDED", "FAILED", "NOT_RUN ANTI_LOOP")
		if told := view.Exchanges[2].Calls[0].Result; runs.Load() != 1 || !strings.Contains(told, "ANTI_LOOP_ID") || !strings.Contains(told, "done") {
			t.Errorf("%d runs, told %q", runs.Load(), told)
		}
	})
	t.Run("an id that repeats with other arguments, then with the same", func(t *testing.T) {
		var runs atomic.Int64
		other := action(t, "x.other", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
			return tool.Result{Content: "other"}, nil
		}, nil)
		act := []http.HandlerFunc{
			says("", call{"same", "x__other", `{}`}), says("", call{"same", "x__act", `{}`}), says("", call{"b", "x__other", `{}`}),
			says("", call{"same", "x__act", `{}`}), says("ok"),
		}
		view := newBed(t, newModel(t, act...), counted(t, &runs), other).run(everything)
		expect(t, view, regie.EndAnswered, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "NOT_RUN ANTI_LOOP")
		if runs.Load() != 1 {
			t.Errorf("%d runs", runs.Load())
		}
	})
	t.Run("the same action again", func(t *testing.T) {
		var runs atomic.Int64
		m := newModel(t, says("", call{"a", "x__act", `{}`}), says("", call{"b", "x__act", `{}`}), says("ok"))
		expect(t, newBed(t, m, counted(t, &runs)).run(everything), regie.EndAnswered, "SUCCEEDED", "NOT_RUN ANTI_LOOP")
		if runs.Load() != 1 || !strings.Contains(m.last(), "ANTI_LOOP_SIGNATURE") {
			t.Errorf("%d runs", runs.Load())
		}
	})
	t.Run("an approval lets it run again", func(t *testing.T) {
		var runs atomic.Int64
		m := newModel(t, says("", call{"a", "x__act", `{}`}), says("", call{"b", "x__act", `{}`}), says("ok"))
		b := newBed(t, m, counted(t, &runs))
		conn := b.connect()
		defer conn.Close()
		run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
		if err != nil {
			t.Fatal(err)
		}
		var last regie.ID
		for range 2 {
			asked := b.next(conn, run.SessionID, last)
			last = asked.ID
			if _, err := conn.Decide(t.Context(), decide(asked, asked.ID.String(), regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})); err != nil {
				t.Fatal(err)
			}
		}
		expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "SUCCEEDED")
	})
	t.Run("a failure that will come again", func(t *testing.T) {
		fail := func(id string) call { return call{id, "files__read_file", `{"path":"../../etc/passwd"}`} }
		m := newModel(t, says("", fail("a")), says("", fail("b")), says("", fail("c")))
		view := newBed(t, m).run(everything)
		expect(t, view, regie.EndEarlyStop, "FAILED", "NOT_RUN REPEATED_FAILURE", "NOT_RUN REPEATED_FAILURE")
		if !strings.Contains(view.Round.EndNote.String(), "third time") {
			t.Errorf("the note is %q", view.Round.EndNote)
		}
	})
	t.Run("arguments that will never fit", func(t *testing.T) {
		bad := func(id string) call { return call{id, "files__read_file", `{"file":"x"}`} }
		m := newModel(t, says("", bad("a")), says("", bad("b")), says("", bad("c")))
		expect(t, newBed(t, m).run(everything), regie.EndEarlyStop, "NOT_RUN INVALID", "NOT_RUN REPEATED_FAILURE", "NOT_RUN REPEATED_FAILURE")
	})
	t.Run("an unknown outcome proposed again", func(t *testing.T) {
		broken := action(t, "x.act", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
			return tool.Result{}, context.DeadlineExceeded
		}, nil)
		m := newModel(t, says("", call{"a", "x__act", `{}`}), says("", call{"b", "x__act", `{}`}))
		b := newBed(t, m, broken)
		conn := b.connect()
		defer conn.Close()
		run, err := conn.Submit(t.Context(), b.request(everything)) // not even that allows it a second time
		if err != nil {
			t.Fatal(err)
		}
		asked := b.parked(conn, run.SessionID).Approvals[0]
		if review := asked.Reviews[0]; review.Verdict != regie.VerdictMustAsk || review.Grounds[0].Source != regie.SourceUnknown {
			t.Errorf("asked because %+v", review.Grounds)
		}
	})
	t.Run("the model asks for a check", func(t *testing.T) {
		var runs atomic.Int64
		m := newModel(t, says("", call{"a", "x__act", `{"_validate":true}`}), says("ok"))
		b := newBed(t, m, counted(t, &runs))
		conn := b.connect()
		defer conn.Close()
		run, err := conn.Submit(t.Context(), b.request(everything))
		if err != nil {
			t.Fatal(err)
		}
		asked := b.parked(conn, run.SessionID).Approvals[0]
		if review := asked.Reviews[0]; review.Grounds[0].Source != regie.SourceModel || string(review.Arguments) != "{}" {
			t.Errorf("asked about %s because %+v", review.Arguments, review.Grounds)
		}
		if _, err := conn.Decide(t.Context(), decide(asked, "x", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})); err != nil {
			t.Fatal(err)
		}
		expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
	})
}
