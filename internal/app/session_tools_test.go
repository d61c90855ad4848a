package app_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/tool"
)

var questions = approval.Policy{Allow: []string{"*.*"}, Questions: true}

func answer(q regie.Question, request string, reply regie.QuestionReply) dispatch.AnswerRequest {
	return dispatch.AnswerRequest{QuestionID: q.ID, Request: request, Reply: reply, By: "ada"}
}

// TestQuestions asks the person in the middle of a batch, over a restart (spec 4.5, decision 40).
func TestQuestions(t *testing.T) {
	t.Parallel()
	ask := call{"q", "session__ask_user", `{"question":"Which colour?","options":["red","blue"]}`}
	t.Run("answered after a restart", func(t *testing.T) {
		m := newModel(t, says("", call{"l", "files__list_files", `{}`}, ask, write("a", "a.txt", "one\n")), says("Blue it is."))
		b := newBed(t, m)
		conn := b.connect()
		run, err := conn.Submit(t.Context(), b.request(questions))
		if err != nil {
			t.Fatal(err)
		}
		asked := b.parked(conn, run.SessionID).Questions[0]
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		conn = b.connect()
		defer conn.Close()
		if _, err := os.Stat(filepath.Join(b.root, "a.txt")); err == nil {
			t.Error("an action ran before the answer that stands before it")
		}
		for name, reply := range map[string]regie.QuestionReply{"unknown option": {Choices: []string{"green"}}, "nothing": {}, "free text": {Text: "any"}} {
			if _, err := conn.Answer(t.Context(), answer(asked, name, reply)); regie.CodeOf(err) != regie.CodeBadRequest {
				t.Errorf("%s: %v", name, err)
			}
		}
		for range 2 {
			if _, err := conn.Answer(t.Context(), answer(asked, "x", regie.QuestionReply{Choices: []string{"blue"}})); err != nil {
				t.Fatal(err)
			}
		}
		view := b.await(conn, run)
		expect(t, view, regie.EndAnswered, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED")
		// the request, and the guidance at the end
		if got := view.Exchanges[0].Calls[1].Result; !strings.Contains(got, "blue") || strings.Count(m.last(), "Chosen: blue") != 1 || strings.Count(m.last(), `"role":"user"`) != 2 {
			t.Errorf("the model reads %q, in %s", got, m.last())
		}
	})
	t.Run("a message that is no answer cancels it", func(t *testing.T) {
		m := newModel(t, says("", ask), says("Then not."))
		b := newBed(t, m)
		conn := b.connect()
		defer conn.Close()
		run, err := conn.Submit(t.Context(), b.request(questions))
		if err != nil {
			t.Fatal(err)
		}
		b.parked(conn, run.SessionID)
		in := b.request(questions)
		in.SessionID, in.Text = run.SessionID, "forget the colours"
		if said, err := conn.Submit(t.Context(), in); err != nil || !said.Pending {
			t.Fatal(said, err)
		}
		expect(t, b.await(conn, run), regie.EndAnswered, "NOT_RUN SUPERSEDED")
		if !strings.Contains(m.last(), "forget the colours") || !strings.Contains(m.last(), "COMMUNICATION_CANCELLED") && !strings.Contains(m.last(), "SUPERSEDED") {
			t.Errorf("the model reads %s", m.last())
		}
	})
	t.Run("a message is the answer where a free text is one", func(t *testing.T) {
		m := newModel(t, says("", call{"q", "session__ask_user", `{"question":"Which colour?","options":["red","blue"],"allow_free_text":true}`}), says("Green it is."))
		b := newBed(t, m)
		conn := b.connect()
		defer conn.Close()
		run, err := conn.Submit(t.Context(), b.request(questions))
		if err != nil {
			t.Fatal(err)
		}
		b.parked(conn, run.SessionID)
		in := b.request(questions)
		in.SessionID, in.Text = run.SessionID, "green, please"
		if said, err := conn.Submit(t.Context(), in); err != nil || !said.Answered || said.RoundID != run.RoundID {
			t.Fatal(said, err)
		}
		view := b.await(conn, run)
		expect(t, view, regie.EndAnswered, "SUCCEEDED")
		if got := view.Exchanges[0].Calls[0].Result; !strings.Contains(got, "green, please") {
			t.Errorf("the model reads %q", got)
		}
	})
	t.Run("not offered where nobody is there", func(t *testing.T) {
		m := newModel(t, says("", ask), says("I took red."))
		expect(t, newBed(t, m).run(everything), regie.EndAnswered, "NOT_RUN OUT_OF_SCOPE")
		if strings.Contains(string(m.requests[0]), "ask_user") {
			t.Error("it was declared to the model")
		}
	})
}

// TestComplete ends a run by the model's own word, once all else of the reply succeeded (decision
// 13).
func TestComplete(t *testing.T) {
	t.Parallel()
	done := call{"z", "session__complete", `{"summary":"all done"}`}
	t.Run("with the rest", func(t *testing.T) {
		m := newModel(t, says("", done, write("a", "a.txt", "one\n"), call{"p", "session__update_plan", `{"steps":[{"text":"write","status":"done"}]}`}))
		b := newBed(t, m)
		conn := b.connect()
		defer conn.Close()
		run, err := conn.Submit(t.Context(), b.request(everything))
		if err != nil {
			t.Fatal(err)
		}
		plans := 0
		b.until(conn, run.SessionID, func(e *regie.Event) bool {
			if e.Type == regie.EventPlan && strings.Contains(string(e.Body), "write") {
				plans++
			}
			return e.Type == regie.EventRound && strings.Contains(string(e.Body), "ENDED")
		})
		// a chat's end is its answer (decision 51)
		expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED")
		if strings.Contains(string(m.requests[0]), "session__complete") {
			t.Error("a chat was offered to complete (spec 2.2)")
		}
		if plans != 1 {
			t.Errorf("%d plans were told", plans)
		}
	})
	t.Run("twice", func(t *testing.T) {
		b := newBed(t, newModel(t, says("", done, write("a", "a.txt", "one\n"), call{"y", "session__complete", `{"summary":"really done"}`})))
		in := b.request(everything)
		in.Type = regie.SessionAutomation
		expect(t, b.ask(in), regie.EndCompleted, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED")
	})
	t.Run("refused", func(t *testing.T) {
		m := newModel(t, says("", call{"r", "files__read_file", `{"path":"nowhere"}`}, done), says("I could not."))
		view := newBed(t, m).run(everything)
		expect(t, view, regie.EndAnswered, "FAILED", "FAILED")
		if !strings.Contains(m.last(), "COMPLETE_REFUSED") || view.Round.Counters.Retries != 1 {
			t.Errorf("retries %d, the model reads %s", view.Round.Counters.Retries, m.last())
		}
	})
}

// TestReadResult reads on in a result that was shortened (spec 3.2), and only in one of its own
// session.
func TestReadResult(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a line of a long result\n", 10_000)
	tell := action(t, "x.act", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
		return tool.Result{Content: long}, nil
	}, nil)
	var mu sync.Mutex
	var id string
	m := newModel(t, says("", call{"a", "x__act", `{}`}),
		func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			says("", call{"r", "session__read_result", `{"call_id":"` + id + `","offset":100000}`}, call{"s", "session__read_result", `{"call_id":"` + regie.NewID().String() + `"}`})(w, r)
		}, says("read"))
	b := newBed(t, m, tell)
	conn := b.connect()
	defer conn.Close()
	mu.Lock() // until the call's id is known
	run, err := conn.Submit(t.Context(), b.request(everything))
	if err != nil {
		t.Fatal(err)
	}
	b.until(conn, run.SessionID, func(e *regie.Event) bool { return e.Type == regie.EventToolResult })
	view, err := conn.Get(t.Context(), run.RoundID)
	if err != nil {
		t.Fatal(err)
	}
	id = view.Exchanges[0].Calls[0].ID.String()
	mu.Unlock()
	if got := view.Exchanges[0].Calls[0].Result; len(got) > 40_000 || !strings.Contains(got, "read_result") || !strings.Contains(got, id) {
		t.Errorf("the shortened result has %d bytes and ends %q", len(got), got[max(0, len(got)-300):])
	}
	view = b.await(conn, run)
	expect(t, view, regie.EndAnswered, "SUCCEEDED", "SUCCEEDED", "FAILED")
	if got := view.Exchanges[1].Calls[0].Result; !strings.Contains(got, "a line of a long result") {
		t.Errorf("read on: %q", got[:min(len(got), 300)])
	}
	if got := view.Exchanges[1].Calls[1].Error; got == nil || got.Code != regie.CodeNotFound {
		t.Errorf("another session's result: %+v", got)
	}
}
