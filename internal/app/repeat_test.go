package app_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// TestEditedAnswerAgain repeats an answer whose edit could not be made any more: the file that it
// makes is there. A client that has lost the first reply must hear that it was heard.
func TestEditedAnswerAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t, says("", write("a", "a.txt", "one\n")), says("ok")))
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	asked := b.parked(conn, run.SessionID).Approvals[0]
	edited := decide(asked, "x", regie.Decision{
		CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"path":"b.txt","content":"two\n"}`),
	})
	if _, err := conn.Decide(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
	if _, err := conn.Decide(t.Context(), edited); err != nil {
		t.Errorf("the answer again: %v", err)
	}
	edited.Request = "y"
	if _, err := conn.Decide(t.Context(), edited); regie.CodeOf(err) != regie.CodeConflict {
		t.Errorf("another answer: %v", err)
	}
	if got, _ := os.ReadFile(filepath.Join(b.root, "b.txt")); string(got) != "two\n" {
		t.Errorf("the file holds %q", got)
	}
}

// TestEditedAnswer_SaidAgainMeanwhile says an edited answer again while it is still being checked,
// as a client does that was cut off. The one that is checked last finds the call run and its edit
// impossible: it must hear that it was heard, and another answer CONFLICT.
func TestEditedAnswer_SaidAgainMeanwhile(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		request string // of the answer that comes first
		want    regie.Code
	}{"the same answer": {"x", ""}, "another answer": {"y", regie.CodeConflict}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var meanwhile func()
			var once sync.Once
			var armed, done atomic.Bool
			out, err := tool.New(regie.ToolDefinition{Name: "x.move", Description: "moves", Kind: regie.KindAction, Class: regie.ClassOnce, Risk: regie.RiskInternal}, tool.Handler[nameArgs]{
				Run: func(context.Context, *tool.Invocation, nameArgs) (tool.Result, error) {
					done.Store(true)
					return tool.Result{Content: "moved"}, nil
				},
				Preview: func(context.Context, *tool.Invocation, nameArgs) (regie.Preview, error) {
					if armed.Load() {
						once.Do(meanwhile)
					}
					if done.Load() {
						return regie.Preview{}, regie.Errorf(regie.CodeTextNotFound, "it is gone")
					}
					return regie.Preview{Sentence: regie.Say("move it")}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			b := newBed(t, newModel(t, says("", call{"a", "x__move", `{"name":"a"}`}), says("ok")), out)
			conn := b.connect()
			defer conn.Close()
			run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
			if err != nil {
				t.Fatal(err)
			}
			asked := b.parked(conn, run.SessionID).Approvals[0]
			answer := func(request string) dispatch.DecideRequest {
				return decide(asked, request, regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"name":"b"}`)})
			}
			meanwhile = func() {
				armed.Store(false)
				if _, err := conn.Decide(t.Context(), answer(row.request)); err != nil {
					t.Error(err)
				}
				b.await(conn, run)
			}
			armed.Store(true)
			if _, err := conn.Decide(t.Context(), answer("x")); regie.CodeOf(err) != row.want {
				t.Errorf("the answer that was checked last: %v, want %q", err, row.want)
			}
			expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
		})
	}
}

// asker is a tool with which the model asks the person.
type asker struct{ tool.Tool }

func newAsker(t *testing.T) tool.Tool {
	t.Helper()
	type args struct {
		Question string `json:"question"`
	}
	ask, err := tool.New(regie.ToolDefinition{Name: "ask.user", Description: "asks", Kind: regie.KindQuery, Role: regie.RoleQuestion, Risk: regie.RiskInternal},
		tool.Handler[args]{Run: func(context.Context, *tool.Invocation, args) (tool.Result, error) {
			return tool.Result{}, regie.Errorf(regie.CodeInternal, "a question is not run")
		}})
	if err != nil {
		t.Fatal(err)
	}
	return asker{ask}
}

// Module implements tool.Asker.
func (asker) Module(arguments json.RawMessage) (regie.Module, error) {
	var in struct {
		Question string `json:"question"`
	}
	err := json.Unmarshal(arguments, &in)
	return regie.Module{Kind: regie.ModuleChoice, Text: in.Question, Options: []string{"this", "that"}, AllowFreeText: true}, err
}

// TestMessageAgainDuringQuestion repeats messages while a question is open, as a client does that
// has lost the reply: neither the message that started the round nor one that has answered a
// question is taken as the answer to the next one.
func TestMessageAgainDuringQuestion(t *testing.T) {
	t.Parallel()
	m := newModel(t, says("", call{"a", "ask__user", `{"question":"first?"}`}), says("", call{"b", "ask__user", `{"question":"second?"}`}), says("ok"))
	b := newBed(t, m, newAsker(t))
	conn := b.connect()
	defer conn.Close()
	first := b.request(approval.Policy{Questions: true})
	run, err := conn.Submit(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	b.parked(conn, run.SessionID)
	if again, err := conn.Submit(t.Context(), first); err != nil || !again.Duplicate || again.Answered {
		t.Errorf("the first message again: %+v, %v", again, err)
	}
	answer := first
	answer.ClientID, answer.Text = regie.NewID().String(), "the blue one"
	if out, err := conn.Submit(t.Context(), answer); err != nil || !out.Answered {
		t.Fatalf("the answer: %+v, %v", out, err)
	}
	var second regie.Question
	b.until(conn, run.SessionID, func(*regie.Event) bool {
		inbox, err := conn.Inbox(t.Context(), store.InboxFilter{SessionID: run.SessionID})
		if err == nil && len(inbox.Questions) == 1 && inbox.Questions[0].Module.Text == "second?" {
			second = inbox.Questions[0]
		}
		return !second.ID.IsZero()
	})
	for _, in := range []int{1, 2} {
		if again, err := conn.Submit(t.Context(), answer); err != nil || !again.Duplicate || again.Answered {
			t.Errorf("the answer again, %d: %+v, %v", in, again, err)
		}
	}
	inbox, err := conn.Inbox(t.Context(), store.InboxFilter{SessionID: run.SessionID})
	if err != nil || len(inbox.Questions) != 1 || inbox.Questions[0].ID != second.ID {
		t.Fatalf("the second question is %+v, %v", inbox, err)
	}
	answer.ClientID, answer.Text = regie.NewID().String(), "the red one"
	if _, err := conn.Submit(t.Context(), answer); err != nil {
		t.Fatal(err)
	}
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "SUCCEEDED")
	if strings.Count(m.last(), "the blue one") != 1 || strings.Count(m.last(), "the red one") != 1 {
		t.Errorf("the model read %s", m.last())
	}
}

// TestInterruptBeforeTheThreadIsRead stops a round between its claim and its first request: it
// ends, in this engine.
func TestInterruptBeforeTheThreadIsRead(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t, says("hello"), says("never")))
	var conn *app.Conn
	var round atomic.Pointer[regie.ID]
	var submitting atomic.Bool // whoever submits asks the model what it can
	opened := make(chan struct{})
	models := app.Models(b.settings)
	conn, err := app.Connect(t.Context(), app.Options{Config: b.settings, Models: func(name string) (provider.Provider, error) {
		if id := round.Load(); id != nil && !submitting.Swap(false) {
			<-opened // submitted, so that the round can be named
			if err := conn.Interrupt(t.Context(), *round.Load()); err != nil {
				t.Error(err)
			}
			round.Store(nil)
		}
		return models(name)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := b.request(everything)
	run, err := conn.Submit(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	b.await(conn, run)
	in.ClientID = regie.NewID().String()
	submitting.Store(true)
	round.Store(&run.RoundID)
	next, err := conn.Submit(t.Context(), in) // a known session: its thread is read from the store
	if err != nil {
		t.Fatal(err)
	}
	round.Store(&next.RoundID)
	close(opened)
	if view := b.await(conn, next); view.Round.End != regie.EndInterrupted {
		t.Errorf("the round ended %s (%s)", view.Round.End, view.Round.EndNote)
	}
}
