package app_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

func TestFoundRuleAndLink(t *testing.T) {
	t.Parallel()
	m := newModel(t, says("", write("a", "docs/a.txt", "one\n")), says("", call{"b", "files__write_file", `{"path":"docs/link/secret.txt","content":"owned","mode":"overwrite"}`}), says("ok"))
	b := newBed(t, m)
	for _, d := range []string{"docs", "src"} {
		if err := os.Mkdir(filepath.Join(b.root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.WriteFile(filepath.Join(b.root, "src", "secret.txt"), []byte("mine\n"), 0o600)
	if err := os.Symlink("../src", filepath.Join(b.root, "docs", "link")); err != nil {
		t.Fatal(err)
	}
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	asked := b.parked(conn, run.SessionID).Approvals[0]
	var under *regie.Scope
	for i, scope := range asked.Reviews[0].Preview.Scopes {
		if scope.Kind == regie.ScopeUnder {
			under = &asked.Reviews[0].Preview.Scopes[i]
		}
	}
	if _, err := conn.Decide(t.Context(), decide(asked, "x", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAlways, Scope: under})); err != nil {
		t.Fatal(err)
	}
	again := b.next(conn, run.SessionID, asked.ID) // a person is asked about the write through the link
	if warning := again.Reviews[0].Preview.Warnings; len(warning) == 0 || !strings.Contains(warning[0].String(), "leads through a link to src/secret.txt") {
		t.Errorf("the warnings are %v", warning)
	}
	got, _ := os.ReadFile(filepath.Join(b.root, "src", "secret.txt"))
	if string(got) == "owned" {
		t.Error("the rule for docs/ let a file of src/ be written")
	}
}

func TestFoundPausedBeforeAsking(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t))
	in, said := make(chan struct{}), make(chan struct{})
	fake := &fakeModel{}
	fake.send = func(context.Context) (*provider.Reply, error) {
		close(in)
		<-said
		return &provider.Reply{Parts: []provider.Part{{Type: regie.PartCall, Call: &provider.Call{ID: "a", Name: "files__write_file", Arguments: `{"path":"a.txt","content":"x"}`}}}, StopReason: "stop"}, nil
	}
	conn, err := app.Connect(t.Context(), app.Options{Config: b.settings, Models: func(string) (provider.Provider, error) { return fake, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	<-in
	if err := conn.Pause(t.Context(), run.RoundID); err != nil {
		t.Fatal(err)
	}
	close(said)
	if err := conn.Wait(t.Context(), run.RoundID); err != nil {
		t.Fatal(err)
	}
	view, _ := conn.Get(t.Context(), run.RoundID)
	if fault := unlikeWritten(t, conn, view.Session.ID); fault != "" {
		t.Errorf("%v the log does not verify: %s", states(view), fault)
	}
}

func TestFoundSteerWhileQueryRuns(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	slow := query(t, "q.slow", regie.RiskInternal, false, func(_ context.Context, _ *tool.Invocation) (tool.Result, error) {
		<-free
		return tool.Result{Content: "slow"}, nil
	})
	b := newBed(t, newModel(t, says("", call{"q", "q__slow", `{}`}, write("w", "a.txt", "x")), says("ok")), slow)
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	b.next(conn, run.SessionID, regie.ID{})
	in := b.request(approval.Policy{})
	in.SessionID, in.WhenBusy = run.SessionID, store.Steer
	if _, err := conn.Submit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	close(free)
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "NOT_RUN SUPERSEDED")
}

func TestFoundEscapedFlag(t *testing.T) {
	t.Parallel()
	var got string
	act := action(t, "x.act", regie.ClassOnce, func(_ context.Context, inv *tool.Invocation) (tool.Result, error) {
		got = string(inv.Arguments)
		return tool.Result{Content: "done"}, nil
	}, nil)
	b := newBed(t, newModel(t, says("", call{"a", "x__act", `{"\u005fvalidate":false,"name":"a"}`}), says("ok")), act)
	view := b.run(everything)
	t.Log(states(view), got, view.Exchanges[0].Calls[0].Error)
	if states(view)[0] != "SUCCEEDED" {
		t.Error("valid arguments fail")
	}
}

func TestFoundPausedThenPreviewFails(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t))
	in, said := make(chan struct{}), make(chan struct{})
	var n atomic.Int64
	fake := &fakeModel{}
	fake.send = func(context.Context) (*provider.Reply, error) {
		if n.Add(1) > 1 {
			return &provider.Reply{Parts: []provider.Part{{Type: regie.PartText, Text: "ok"}}, StopReason: "stop"}, nil
		}
		close(in)
		<-said
		return &provider.Reply{Parts: []provider.Part{{Type: regie.PartCall, Call: &provider.Call{ID: "a", Name: "files__write_file", Arguments: `{"path":"a.txt","content":"x"}`}}}, StopReason: "stop"}, nil
	}
	conn, err := app.Connect(t.Context(), app.Options{Config: b.settings, Models: func(string) (provider.Provider, error) { return fake, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	<-in
	if err := conn.Pause(t.Context(), run.RoundID); err != nil {
		t.Fatal(err)
	}
	close(said)
	if err := conn.Wait(t.Context(), run.RoundID); err != nil {
		t.Fatal(err)
	}
	_ = os.WriteFile(filepath.Join(b.root, "a.txt"), []byte("somebody else's"), 0o600)
	for range 3 {
		err := conn.Resume(t.Context(), run.RoundID)
		werr := conn.Wait(t.Context(), run.RoundID)
		view, _ := conn.Get(t.Context(), run.RoundID)
		t.Log(err, werr, states(view), view.Round.State, view.Session.State, view.Round.Counters.Resumes)
	}
	view, _ := conn.Get(t.Context(), run.RoundID)
	if view.Round.State == regie.RoundRunning {
		t.Error("the round is stuck")
	}
}

func TestFoundVerifyBindsWhatRan(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t, says("", write("a", "a.txt", "one\n")), says("ok")))
	b.alters()
	conn := b.connect()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	asked := b.parked(conn, run.SessionID).Approvals[0]
	if _, err := conn.Decide(t.Context(), decide(asked, "x", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"path":"b.txt","content":"edited\n"}`)})); err != nil {
		t.Fatal(err)
	}
	b.await(conn, run)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(b.settings.DataDir, "*.db"))
	t.Log(files)
	db, err := sql.Open("sqlite", files[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE calls SET executed = '{"path":"forged"}', intent = '{}'`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE reviews SET decided_by = 'mallory', edited = NULL, preview = '{}', arguments = '{}'`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	conn = b.connect()
	defer conn.Close()
	view, err := conn.Get(t.Context(), run.RoundID)
	if err != nil {
		t.Fatal(err)
	}
	if unlikeWritten(t, conn, view.Session.ID) == "" {
		t.Errorf("verify finds nothing: the executed arguments are %s", view.Exchanges[0].Calls[0].Executed)
	}
}

func TestFoundStopAClosedChat(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t, says("ok")))
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	b.await(conn, run)
	if err := conn.CloseSession(t.Context(), run.SessionID); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Stop(t.Context(), run.SessionID); err != nil {
		t.Fatal(err)
	}
	view, _ := conn.Get(t.Context(), run.RoundID)
	if view.Session.EndReason != regie.SessionCancelled {
		t.Errorf("stopped, and it is %s %q", view.Session.State, view.Session.EndReason)
	}
}

func TestFoundLongAnswer(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t, says("", call{"q", "session__ask_user", `{"question":"Which?","options":["a","b"],"allow_free_text":true}`}), says("ok")))
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(questions))
	if err != nil {
		t.Fatal(err)
	}
	b.state(conn, run.SessionID, regie.SessionWaitingResponse)
	in := b.request(questions)
	in.SessionID, in.WhenBusy, in.Text = run.SessionID, store.Steer, strings.Repeat("a log line\r", 2000)
	out, err := conn.Submit(t.Context(), in)
	if err != nil {
		t.Errorf("a message that would be taken at any other time is lost: %v %+v", err, out)
	}
}

func TestFoundTwoMessagesOneQuestion(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t, says("", call{"q", "session__ask_user", `{"question":"Which?","options":["a","b"],"allow_free_text":true}`}), says("ok"), says("so"), says("well")))
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(questions))
	if err != nil {
		t.Fatal(err)
	}
	b.state(conn, run.SessionID, regie.SessionWaitingResponse)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			in := b.request(questions)
			in.SessionID, in.Text = run.SessionID, fmt.Sprint("message ", i)
			if _, err := conn.Submit(t.Context(), in); err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		})
	}
	group.Wait()
}

func TestFoundLinkMovedAfterApproval(t *testing.T) {
	t.Parallel()
	m := newModel(t, says("", call{"a", "files__write_file", `{"path":"docs/link/new.txt","content":"x\n"}`}), says("ok"))
	b := newBed(t, m)
	for _, d := range []string{"docs", "one", "two"} {
		_ = os.Mkdir(filepath.Join(b.root, d), 0o755)
	}
	link := filepath.Join(b.root, "docs", "link")
	_ = os.Symlink("../one", link)
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	asked := b.parked(conn, run.SessionID).Approvals[0]
	t.Log(asked.Reviews[0].Preview.Sentence.String(), asked.Reviews[0].Preview.Preconditions)
	_ = os.Remove(link)
	_ = os.Symlink("../two", link)
	if _, err := conn.Decide(t.Context(), decide(asked, "x", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})); err != nil {
		t.Fatal(err)
	}
	view := b.await(conn, run)
	if _, err := os.Stat(filepath.Join(b.root, "two", "new.txt")); err == nil {
		t.Errorf("written to another place than was shown: %v", states(view))
	}
}
