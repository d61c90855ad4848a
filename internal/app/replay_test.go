package app_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dialect"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/toolkit/files"
	"github.com/regie-run/regie/internal/toolkit/session"
)

// story is a session in which everything happens that a thread can hold: queries, an unknown tool,
// a duplicate, a payment of which nobody knows and that a person resolves, a question, an edited
// and a denied write, a message that steers, and a batch that waits at the end.
type story struct {
	*harness
	m    *model
	conn *app.Conn
	run  dispatch.Run // the first
	ran  atomic.Int64 // tools
	over atomic.Bool  // from now on nothing may be called
}

func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{}
	quiet := func(h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if s.over.Load() {
				t.Error("the model was asked")
			}
			h(w, r)
		}
	}
	s.m = newModel(t,
		quiet(replyWith("I look.", call{"l", "files__list_files", `{}`}, call{"l", "files__list_files", `{"path":"."}`}, call{"n", "no_such_tool", `{"a":1}`}, call{"d", "files__list_files", `{}`})),
		quiet(replyWith("I pay.", call{"p", "x__pay", `{}`})),
		quiet(replyWith("", call{"q", "session__ask_user", `{"question":"Which colour?","options":["red","blue"]}`})),
		quiet(replyWith("I write.", write("a", "a.txt", "one\n"), write("b", "b.txt", "two\n"))),
		quiet(replyWith("Nearly done.", write("c", "c.txt", "three\n"))),
		quiet(replyWith("As you wish.")),
		quiet(replyWith("Once more.", write("e", "e.txt", "five\n"), call{"r", "files__read_file", `{"path":"a.txt"}`})),
		quiet(replyWith("In the fork.")),
	)
	s.harness = newHarness(t, s.m, action(t, "x.pay", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
		s.ran.Add(1)
		if s.over.Load() {
			t.Error("a tool ran")
		}
		return tool.Result{}, errors.New("the line went dead")
	}, nil))
	s.conn = s.connect()
	t.Cleanup(func() { _ = s.conn.Close() })
	return s
}

// tell runs the story; at is called wherever the session waits for a person, and at the end.
func (s *story) tell(at func()) {
	s.t.Helper()
	must := func(err error) {
		s.t.Helper()
		fatal(s.t, err)
	}
	ctx, policy := s.t.Context(), approval.Policy{Allow: []string{"x.*"}, Questions: true}
	var err error
	s.run, err = s.conn.Submit(ctx, s.request(policy))
	must(err)
	inbox := s.parked(s.conn, s.run.SessionID)
	at()
	_, err = s.conn.Answer(ctx, answer(inbox.Questions[0], "1", regie.QuestionReply{Choices: []string{"blue"}}))
	must(err)
	asked := s.next(s.conn, s.run.SessionID, regie.ID{})
	at()
	_, err = s.conn.Decide(ctx, decide(asked, "2",
		regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow, Arguments: []byte(`{"path":"a.txt","content":"edited\n"}`)},
		regie.Decision{CallID: asked.Reviews[1].CallID, Answer: regie.AnswerDeny, Reason: "not that one"}))
	must(err)
	asked = s.next(s.conn, s.run.SessionID, asked.ID)
	steer := s.request(policy)
	steer.SessionID, steer.Text, steer.WhenBusy = s.run.SessionID, "leave it", store.Steer
	_, err = s.conn.Submit(ctx, steer)
	must(err)
	view := s.await(s.conn, s.run)
	must(s.conn.Resolve(ctx, dispatch.ResolveRequest{CallID: view.Exchanges[1].Calls[0].ID, As: regie.ResolvedHappened, Note: "on the statement"}))
	at()
	again := s.request(policy)
	again.SessionID, again.Text = s.run.SessionID, "once more"
	_, err = s.conn.Submit(ctx, again)
	must(err)
	s.next(s.conn, s.run.SessionID, asked.ID)
	at()
}

// jsonView shows threads in the JSON dialect.
func jsonView(t *testing.T) prompt.View {
	t.Helper()
	builtin, err := files.Tools(nil)
	fatal(t, err)
	own, err := session.Tools(func(context.Context, regie.ID, regie.ID) (string, error) { return "", nil })
	fatal(t, err)
	var definitions []regie.ToolDefinition
	for _, known := range slices.Concat(builtin, own) {
		definitions = append(definitions, known.Definition())
	}
	return prompt.View{JSON: dialect.New(definitions, dialect.Options{Questions: true, Module: session.ParseModule})}
}

// turns renders a session's thread as a model would be asked in it.
func turns(v prompt.View, view store.SessionView) []provider.Turn {
	byID := map[regie.ID]regie.Call{}
	var out []provider.Turn
	for i := range view.Thread {
		m := &view.Thread[i]
		calls := m.Calls
		for _, c := range calls {
			byID[c.ID] = c
		}
		if m.Message.System != nil {
			calls = nil
			for _, id := range m.Message.System.CallIDs {
				calls = append(calls, byID[id])
			}
		}
		out = append(out, v.Turns(&m.Message, calls)...)
	}
	return append(out, v.Turns(&regie.Message{Sender: regie.SenderUser, Text: "go on"}, nil)...)
}

// TestForkEverywhere forks a session at every event of it, each time that it waits for a person and
// at its end (decision 17): each fork is legal for every vendor in both dialects, its log verifies,
// and nothing is called. The last one is gone on with.
func TestForkEverywhere(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	inJSON, forks := jsonView(t), 0
	var last store.Forked
	s.tell(func() {
		source, err := s.conn.Session(t.Context(), s.run.SessionID)
		fatal(t, err)
		asked, ran := s.m.count(), s.ran.Load()
		s.over.Store(true)
		for at := int64(1); at <= source.Head; at++ {
			if last, err = s.conn.Fork(t.Context(), dispatch.ForkRequest{From: s.run.SessionID, At: at}); err != nil {
				t.Fatalf("at %d: %v", at, err)
			}
			view, err := s.conn.Session(t.Context(), last.Session.ID)
			if err != nil || view.Audit == nil || view.State != regie.SessionIdle || view.Rounds != 0 || len(view.Thread) != last.Messages || view.Unread != 0 {
				t.Fatalf("at %d: %+v, %v", at, view, err)
			}
			for name, v := range map[string]prompt.View{"native": {Names: tool.WireName}, "json": inJSON} {
				if err := providertest.Check(provider.Head{Level1: "You are."}, turns(v, view)); err != nil {
					t.Errorf("the fork at %d, %s: %v", at, name, err)
				}
			}
			forks++
		}
		after, err := s.conn.Session(t.Context(), s.run.SessionID)
		if err != nil || after.Head != source.Head || s.m.count() != asked || s.ran.Load() != ran {
			t.Errorf("the source went on: %v, %d requests, %d runs, %v", after.Head, s.m.count()-asked, s.ran.Load()-ran, err)
		}
		s.over.Store(false)
	})
	if forks < 80 || !last.Open {
		t.Fatalf("%d forks; the last of a batch that waits: %v", forks, last.Open)
	}
	in := s.request(approval.Policy{})
	in.SessionID, in.Text = last.Session.ID, "and in another way?"
	// The reply that waits is not part of the fork, so the model is asked for that step; it
	// proposes the same, and waits for its own answer.
	run, err := s.conn.Submit(t.Context(), in)
	fatal(t, err)
	inbox := s.parked(s.conn, run.SessionID)
	if len(inbox.Approvals) != 1 || inbox.Approvals[0].SessionID != last.Session.ID {
		t.Fatalf("the fork waits for %+v", inbox)
	}
	if _, err := s.conn.Decide(t.Context(), decide(inbox.Approvals[0], "f", regie.Decision{CallID: inbox.Approvals[0].Reviews[0].CallID, Answer: regie.AnswerAllow})); err != nil {
		t.Fatal(err)
	}
	if view := s.await(s.conn, run); view.Round.End != regie.EndAnswered || view.Round.Number != 1 || !strings.Contains(s.m.last(), "leave it") {
		t.Errorf("the fork's run ended %s: %s", view.Round.End, s.m.last())
	}
	if replayed, err := s.conn.Replay(t.Context(), run.RoundID); err != nil || replayed.Difference != 0 || replayed.Identical != 2 {
		t.Errorf("the fork's run again: %+v, %v", replayed, err)
	}
}

// TestReplayCallsNothing runs stored rounds once more with a model server and tools that fail the
// test when they are called (invariant 17): each request is what was sent. It is so without an
// engine, without settings, and after a person has resolved what nobody knew.
func TestReplayCallsNothing(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.tell(func() {})
	s.over.Store(true)
	rounds := s.rounds(s.conn, 2)
	check := func(control service, want int) {
		t.Helper()
		asked := s.m.count()
		total := 0
		for _, round := range rounds {
			out, err := control.Replay(t.Context(), round.Round.ID)
			if err != nil || out.Difference != 0 || out.Identical != len(out.Steps) {
				t.Errorf("%+v, %v", out, err)
			}
			total += out.Identical
		}
		if total != want || s.m.count() != asked {
			t.Errorf("%d requests were compared, want %d; the model was asked %d times", total, want, s.m.count()-asked)
		}
	}
	check(s.conn, 7)
	fatal(t, s.conn.Close())
	s.m.server.Close()
	s.settings.BaseURL, s.settings.Model, s.settings.APIKey = "", "", ""
	look := func(tools ...tool.Tool) *app.Conn {
		t.Helper()
		return s.attach(app.Options{Tools: append([]tool.Tool{}, tools...), ReadOnly: true})
	}
	check(look(s.tools...), 7)
	// What was declared then is stored: the tools need not be here.
	check(look(), 7)
}

// TestFailedCallsSayWhatTheyWereSent has a model call fail once, and one for good: each says what
// it was sent, byte for byte, and a replay compares it (decision 14).
func TestFailedCallsSayWhatTheyWereSent(t *testing.T) {
	t.Parallel()
	for _, format := range providertest.Formats() {
		t.Run(format.Name, func(t *testing.T) {
			scenes := []providertest.Scene{
				{Status: 500, Message: "not now"},
				{Calls: []provider.Call{{ID: "one", Name: "files__list_files", Arguments: `{}`}}, Input: 900, Output: 20},
				{Status: 400, Message: "not like that"},
			}
			var asked [][]byte
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if r.Method != http.MethodPost || r.URL.Path == "/api/show" || len(asked) == len(scenes) {
					http.NotFound(w, r)
					return
				}
				asked = append(asked, body)
				format.Play(w, r, scenes[len(asked)-1])
			}))
			defer server.Close()
			b := &harness{t: t, root: t.TempDir(), settings: settingsFor(t, format.Name, server.URL+format.Path)}
			view := b.run(everything)
			if view.Round.End != regie.EndProviderError || len(asked) != 3 || len(view.Exchanges) != 2 {
				t.Fatalf("%s, %d requests, %d exchanges", view.Round.End, len(asked), len(view.Exchanges))
			}
			first, second := view.Exchanges[0], view.Exchanges[1]
			if second.State != regie.ExchangeFailed || second.Request != regie.HashOf(asked[2]) || second.LastSeq <= first.LastSeq {
				t.Errorf("the failed exchange: %+v", second.Exchange)
			}
			conn := b.attach(app.Options{ReadOnly: true})
			for i, sent := range asked[1:] {
				in := dispatch.PromptRequest{RoundID: view.Round.ID, Exchange: i + 1}
				if p, err := conn.Prompt(t.Context(), in); err != nil || !p.Exact() || !bytes.Equal(p.Body, sent) {
					t.Errorf("exchange %d: %v\n%s", i+1, err, p.Body)
				}
			}
			in := dispatch.PromptRequest{RoundID: view.Round.ID, Exchange: 3}
			if _, err := conn.Prompt(t.Context(), in); regie.CodeOf(err) != regie.CodeNotFound {
				t.Errorf("an exchange that was not made: %v", err)
			}
			if out, err := conn.Replay(t.Context(), view.Round.ID); err != nil || out.Identical != 1 || out.Difference != 0 {
				t.Errorf("once more: %+v, %v", out, err)
			}
		})
	}
}
