package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/compat"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/httpapi"
	"github.com/regie-run/regie/internal/store"
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
		m := newModel(t, replyWith("", call{"l", "files__list_files", `{}`}, ask, write("a", "a.txt", "one\n")), replyWith("Blue it is."))
		b := newHarness(t, m)
		conn, run := b.start(questions)
		asked := b.parked(conn, run.SessionID).Questions[0]
		fatal(t, conn.Close())
		conn = b.connect()
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
		m := newModel(t, replyWith("", ask), replyWith("Then not."))
		b := newHarness(t, m)
		conn, run := b.start(questions)
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
	t.Run("not offered where nobody is there", func(t *testing.T) {
		m := newModel(t, replyWith("", ask), replyWith("I took red."))
		expect(t, newHarness(t, m).run(everything), regie.EndAnswered, "NOT_RUN OUT_OF_SCOPE")
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
		m := newModel(t, replyWith("", done, write("a", "a.txt", "one\n"), call{"p", "session__update_plan", `{"steps":[{"text":"write","status":"done"}]}`}))
		b := newHarness(t, m)
		conn, run := b.start(everything)
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
		b := newHarness(t, newModel(t, replyWith("", done, write("a", "a.txt", "one\n"), call{"y", "session__complete", `{"summary":"really done"}`})))
		in := b.request(everything)
		in.Type = regie.SessionAutomation
		expect(t, b.ask(in), regie.EndCompleted, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED")
	})
	t.Run("refused", func(t *testing.T) {
		m := newModel(t, replyWith("", call{"r", "files__read_file", `{"path":"nowhere"}`}, done), replyWith("I could not."))
		view := newHarness(t, m).run(everything)
		expect(t, view, regie.EndAnswered, "FAILED", "FAILED")
		if !strings.Contains(m.last(), "COMPLETE_REFUSED") || view.Round.Counters.Retries != 1 {
			t.Errorf("retries %d, the model reads %s", view.Round.Counters.Retries, m.last())
		}
	})
}

// The questions take a free text.
var (
	colour = call{"q", "session__ask_user", `{"question":"Which colour?","options":["red","blue"],"allow_free_text":true}`}
	size   = call{"r", "session__ask_user", `{"question":"Which size?","options":["small","large"],"allow_free_text":true}`}
)

// TestCompatAnswersQuestion: a message of a client of `/v1` that is taken as the answer to a
// question is answered by what the round comes to (decision 10).
func TestCompatAnswersQuestion(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"main","messages":[{"role":"user","content":"green, please"}]STREAM}`,
		"/v1/responses":        `{"model":"main","input":"green, please"STREAM}`,
		"/v1/messages":         `{"model":"main","max_tokens":100,"messages":[{"role":"user","content":"green, please"}]STREAM}`,
	} {
		for _, stream := range []string{"", `,"stream":true`} {
			t.Run(path+stream, func(t *testing.T) {
				d := newHarness(t, newModel(t, replyWith("", colour, size), replyWith("Green it is."))).door()
				run, err := d.conn.Submit(t.Context(), d.request(approval.Policy{Questions: true}))
				fatal(t, err)
				d.parked(d.conn, run.SessionID)
				for _, want := range []string{"waits for an answer", "Green it is."} {
					if got := d.soon(path, strings.Replace(body, "STREAM", stream, 1), run.SessionID); !strings.Contains(got, want) {
						t.Errorf("%q is missing in %s", want, got)
					}
				}
				expect(t, d.await(d.conn, run), regie.EndAnswered, "SUCCEEDED", "SUCCEEDED")
			})
		}
	}
}

// soon says something in a session, and fails where no answer comes.
func (d *door) soon(path, body string, session regie.ID) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.server.URL+path, strings.NewReader(body))
	fatal(d.t, err)
	r.Header.Set(compat.HeaderSession, session.String())
	response, err := http.DefaultClient.Do(r)
	fatal(d.t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		d.t.Fatalf("%d %s (%v)", response.StatusCode, data, err)
	}
	return string(data)
}

// TestStreamOfAnAnswer: the stream of a message that is taken as the answer to a question tells
// that answer and what follows it, and nothing of what was said before; without a stream the answer
// says where it stands (spec 10.2).
func TestStreamOfAnAnswer(t *testing.T) {
	t.Parallel()
	for name, plain := range map[string]bool{"events": false, "format=openai": true} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t, newModel(t, replyWith("Long ago."), replyWith("I ask.", colour), replyWith("And again.", size), replyWith("Green it is.")))
			h := b.serve("127.0.0.1:0")
			session := h.session()
			id, err := regie.ParseID(session)
			fatal(t, err)
			path := "/api/v1/sessions/" + session + "/messages"
			h.read("POST", path, `{"content":"hi"}`, nil, carrying("Accept", "text/event-stream"))
			h.json("POST", path, `{"content":"begin"}`, 202, nil)
			first := b.parked(h.engine.Control(), id).Questions[0].ID
			var sent httpapi.Accepted
			h.json("POST", path, `{"content":"purple"}`, 202, &sent)
			page := httpapi.Page[store.MessageView]{}
			h.json("GET", fmt.Sprintf("/api/v1/sessions/%s/messages?after=%d&limit=1", session, sent.Seq-1), "", 200, &page)
			if !sent.Answered || len(page.Items) != 1 || page.Items[0].Message.ID != sent.MessageID || page.Items[0].Seq != sent.Seq || page.Items[0].Message.Text != "purple" {
				t.Errorf("%+v was accepted, there is %+v", sent, page.Items)
			}
			h.until(h.engine.Control(), id, func(*regie.Event) bool {
				inbox, err := h.engine.Service().Approvals.Inbox(access.AsOwner(t.Context()), store.InboxFilter{SessionID: id})
				return err == nil && len(inbox.Questions) == 1 && inbox.Questions[0].ID != first
			})
			if plain {
				path += "?format=openai"
			}
			response := h.ask("POST", path, `{"content":"green"}`, carrying("Accept", "text/event-stream")) //nolint:bodyclose // at the end of the test
			told, err := io.ReadAll(response.Body)
			if err != nil || !strings.Contains(string(told), "Green it is.") || strings.Contains(string(told), "Long ago.") || strings.Contains(string(told), "I ask.") ||
				strings.Contains(string(told), "And again.") || !plain && !strings.Contains(string(told), `"text_content":"green"`) {
				t.Errorf("it is told %s (%v)", told, err)
			}
		})
	}
}

// TestAnswerNeedsApprove: what a person was asked is answered or withdrawn by a message only of who
// may answer, over each surface; it says who that was.
func TestAnswerNeedsApprove(t *testing.T) {
	t.Parallel()
	closed := call{"q", "session__ask_user", `{"question":"Which colour?","options":["red","blue"]}`}
	for name, asked := range map[string]call{"a question": colour, "one without free text": closed, "an approval": write("w", "a.txt", "x")} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t, newModel(t, replyWith("I ask.", asked), replyWith("Done.")))
			h := b.serve("127.0.0.1:0")
			session := h.session()
			id, err := regie.ParseID(session)
			fatal(t, err)
			path := "/api/v1/sessions/" + session + "/messages"
			h.json("POST", path, `{"content":"begin"}`, 202, nil)
			before := b.parked(h.engine.Control(), id)
			scopes := []regie.TokenScope{regie.ScopeRead, regie.ScopeChat, regie.ScopeCompletions, regie.ScopeMCP}
			without := h.add(control.TokenRequest{Name: "ci", Scopes: scopes})
			as := bearer(without.Secret)
			refused := func(what string, response *http.Response) {
				t.Helper()
				said, err := io.ReadAll(response.Body)
				if err != nil || response.StatusCode != 403 || !strings.Contains(string(said), "MISSING_SCOPE") {
					t.Errorf("%s: %d %s (%v)", what, response.StatusCode, said, err)
				}
			}
			when := []string{"steer"}
			if len(before.Questions) > 0 {
				when = append(when, "queue", "")
			}
			for _, when := range when {
				refused("send_message", h.ask("POST", path, `{"content":"green","when_busy":"`+when+`"}`, as)) //nolint:bodyclose // as above
				run := fmt.Sprintf(`{"session_id":%q,"client_message_id":"%s1","text":"green","when_busy":%q}`, session, when, when)
				refused("start_run", h.ask("POST", "/api/v1/runs", run, as)) //nolint:bodyclose // as above
			}
			h.json("POST", "/api/v1/runs", `{"session_id":"`+session+`","text":"green","By":"me"}`, 400, nil, as)
			way := &sdk.StreamableClientTransport{Endpoint: h.served.URL + "/mcp", HTTPClient: &http.Client{Transport: shows(without.Secret)}}
			client, err := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, nil).Connect(t.Context(), way, nil)
			fatal(t, err)
			defer client.Close()
			for _, when := range when {
				out, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "send_message", Arguments: map[string]string{"session_id": session, "text": "green", "when_busy": when}})
				if said, _ := json.Marshal(out); err != nil || !strings.Contains(string(said), "MISSING_SCOPE") {
					t.Errorf("MCP %q: %s (%v)", when, said, err)
				}
			}
			after, err := h.engine.Service().Approvals.Inbox(access.AsOwner(t.Context()), store.InboxFilter{SessionID: id})
			if err != nil || len(after.Questions) != len(before.Questions) || len(after.Approvals) != len(before.Approvals) {
				t.Fatalf("it waits for %+v (%v)", after, err)
			}
			with := h.add(control.TokenRequest{Name: "desk", Scopes: append(scopes, regie.ScopeApprove)})
			var sent httpapi.Accepted
			h.json("POST", path, `{"content":"green","when_busy":"steer"}`, 202, &sent, bearer(with.Secret))
			if name != "a question" {
				return
			}
			closed, err := h.engine.Service().Approvals.Inbox(access.AsOwner(t.Context()), store.InboxFilter{SessionID: id, Closed: true})
			if err != nil || !sent.Answered || len(closed.Questions) != 1 || !strings.HasSuffix(closed.Questions[0].Reply.By, " (token desk)") {
				t.Errorf("%+v, %+v (%v)", sent, closed, err)
			}
		})
	}
}
