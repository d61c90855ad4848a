package app_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// parked waits until a session waits for people and returns what it waits for.
func (b *harness) parked(control service, session regie.ID) store.Inbox {
	b.t.Helper()
	b.until(control, session, func(e *regie.Event) bool {
		var body struct {
			State regie.SessionState `json:"state"`
		}
		if e.Type != regie.EventSessionState || json.Unmarshal(e.Body, &body) != nil {
			return false
		}
		if body.State != regie.SessionWaitingValidation && body.State != regie.SessionWaitingResponse {
			return false
		}
		inbox, err := control.Inbox(b.t.Context(), store.InboxFilter{SessionID: session})
		return err == nil && len(inbox.Approvals)+len(inbox.Questions) > 0
	})
	inbox, err := control.Inbox(b.t.Context(), store.InboxFilter{SessionID: session})
	fatal(b.t, err)
	return inbox
}

// next waits for an approval after another one, which may be none.
func (b *harness) next(control service, session, after regie.ID) (next regie.Approval) {
	b.t.Helper()
	b.until(control, session, func(*regie.Event) bool {
		inbox, err := control.Inbox(b.t.Context(), store.InboxFilter{SessionID: session})
		if err != nil || len(inbox.Approvals) == 0 {
			return false
		}
		next = inbox.Approvals[0]
		return next.ID != after
	})
	return next
}

func decide(a regie.Approval, request string, decisions ...regie.Decision) dispatch.DecideRequest {
	return dispatch.DecideRequest{ApprovalID: a.ID, Request: request, Decisions: decisions, By: "ada"}
}

func write(id, path, content string) call {
	data, _ := json.Marshal(map[string]string{"path": path, "content": content})
	return call{id, "files__write_file", string(data)}
}

// TestBatchAcrossRestart is the batch of the issue: four writes, of which one is approved, one
// edited, one denied and one left pending, over a restart, with two clients that answer at once
// (decision 20).
func TestBatchAcrossRestart(t *testing.T) {
	t.Parallel()
	m := newModel(t,
		replyWith("I write four files.", write("a", "a.txt", "one\n"), write("b", "b.txt", "two\n"), write("c", "c.txt", "three\n"), write("d", "d.txt", "four\n")),
		replyWith("Done what you allowed."))
	b := newHarness(t, m)
	conn := b.connect()
	run := b.startRun(conn, approval.Policy{})
	inbox := b.parked(conn, run.SessionID)
	if len(inbox.Approvals) != 1 || len(inbox.Approvals[0].Reviews) != 4 {
		t.Fatalf("the inbox holds %+v", inbox)
	}
	asked := inbox.Approvals[0]
	review := asked.Reviews[0]
	if review.Preview.Sentence.String() == "" || !strings.Contains(review.Preview.Diff, "+one") || len(review.Grounds) == 0 || len(review.Preview.Scopes) == 0 ||
		asked.ExpiresAt.Before(time.Now().Add(23*time.Hour)) {
		t.Errorf("the person sees %+v", review)
	}
	fatal(t, conn.Wait(t.Context(), run.RoundID))
	if _, err := conn.Decide(t.Context(), decide(asked, "1", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow},
		regie.Decision{CallID: asked.Reviews[1].CallID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"path":"b2.txt","content":"edited\n"}`)})); err != nil {
		t.Fatal(err)
	}
	fatal(t, conn.Close())

	engine, client := b.connect(), b.connect()
	view, err := client.Get(t.Context(), run.RoundID)
	if err != nil || view.Round.State != regie.RoundWaiting || view.Session.State != regie.SessionWaitingValidation {
		t.Fatalf("after a restart: %s, %s, %v", view.Round.State, view.Session.State, err)
	}
	if fault := unlikeWritten(t, client, view.Session.ID); fault != "" {
		t.Fatal(fault)
	}
	if left, _ := os.ReadDir(b.root); len(left) != 0 {
		t.Errorf("something was written before all was decided: %v", left)
	}
	// Two clients answer the third call at once: one is told that the other did.
	var group sync.WaitGroup
	errs := make([]error, 2)
	for i, control := range []service{engine, client} {
		group.Go(func() {
			_, errs[i] = control.Decide(t.Context(), decide(asked, []string{"engine", "client"}[i],
				regie.Decision{CallID: asked.Reviews[2].CallID, Answer: regie.AnswerDeny, Reason: "not that one"}))
		})
	}
	group.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || regie.CodeOf(errs[0]) != "" && regie.CodeOf(errs[0]) != regie.CodeConflict ||
		regie.CodeOf(errs[1]) != "" && regie.CodeOf(errs[1]) != regie.CodeConflict {
		t.Errorf("two answers at once: %v", errs)
	}
	// The same answer again, as a client says it that has lost the first reply, adds nothing.
	last := decide(asked, "last", regie.Decision{CallID: asked.Reviews[3].CallID, Answer: regie.AnswerAllow})
	for range 2 {
		if _, err := client.Decide(t.Context(), last); err != nil {
			t.Error(err)
		}
	}
	view = b.await(client, run)
	expect(t, view, regie.EndAnswered, "SUCCEEDED", "SUCCEEDED", "NOT_RUN DENIED", "SUCCEEDED")
	for name, want := range map[string]string{"a.txt": "one\n", "b2.txt": "edited\n", "d.txt": "four\n", "b.txt": "", "c.txt": ""} {
		if got, _ := os.ReadFile(filepath.Join(b.root, name)); string(got) != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	for _, want := range []string{"not that one", "USER_REJECTED", `\"executed_params\":{`, "b2.txt"} {
		if !strings.Contains(m.last(), want) {
			t.Errorf("the model is not told %q", want)
		}
	}
}

// TestDecide_EditedTwiceAtOnce repeats an edited answer. While its preview is made the first one is
// accepted and carried out, and the preview fails by its effect; the repetition is still accepted.
func TestDecide_EditedTwiceAtOnce(t *testing.T) {
	t.Parallel()
	var made atomic.Bool
	looks, free := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	act, err := tool.New(regie.ToolDefinition{Name: "test.make", Description: "an action", Kind: regie.KindAction, Class: regie.ClassOnce, Risk: regie.RiskInternal}, tool.Handler[nameArgs]{
		Run: func(context.Context, *tool.Invocation, nameArgs) (tool.Result, error) {
			made.Store(true)
			return tool.Result{Content: "made"}, nil
		},
		Preview: func(_ context.Context, _ *tool.Invocation, args nameArgs) (regie.Preview, error) {
			if args.Name == "edited" && first.CompareAndSwap(false, true) {
				close(looks)
				<-free
			}
			if made.Load() {
				return regie.Preview{}, regie.Errorf(regie.CodeFileExists, "it is there already")
			}
			return regie.Preview{Sentence: regie.Say("make it")}, nil
		},
	})
	fatal(t, err)
	b := newHarness(t, newModel(t, replyWith("", call{"a", "test__make", `{"name":"proposed"}`}), replyWith("ok")), act)
	conn := b.connect()
	run := b.startRun(conn, approval.Policy{})
	asked := b.parked(conn, run.SessionID).Approvals[0]
	request := decide(asked, "once", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"name":"edited"}`)})
	repeated := make(chan error, 1)
	go func() {
		_, err := conn.Decide(t.Context(), request)
		repeated <- err
	}()
	<-looks
	_, err = conn.Decide(t.Context(), request)
	fatal(t, err)
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
	close(free)
	if err := <-repeated; err != nil {
		t.Error(err)
	}
}

// TestDecideRefuses answers as one must not; each says why and changes nothing.
func TestDecideRefuses(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("", write("a", "a.txt", "one\n"), call{"l", "files__list_files", `{}`}), replyWith("ok"))
	b := newHarness(t, m)
	conn := b.connect()
	run := b.startRun(conn, approval.Policy{})
	asked := b.parked(conn, run.SessionID).Approvals[0]
	call := asked.Reviews[0].CallID
	for name, c := range map[string]struct {
		in   dispatch.DecideRequest
		code regie.Code
	}{
		"nothing":           {decide(asked, "x"), regie.CodeBadRequest},
		"unknown approval":  {dispatch.DecideRequest{ApprovalID: regie.NewID(), Decisions: []regie.Decision{{CallID: call, Answer: regie.AnswerAllow}}}, regie.CodeNotFound},
		"unknown call":      {decide(asked, "x", regie.Decision{CallID: regie.NewID(), Answer: regie.AnswerAllow}), regie.CodeNotFound},
		"unknown answer":    {decide(asked, "x", regie.Decision{CallID: call, Answer: "perhaps"}), regie.CodeBadRequest},
		"an answer aloud":   {decide(asked, "x", regie.Decision{CallID: call, Answer: "ALLOW"}), regie.CodeBadRequest},
		"a blank behind it": {decide(asked, "x", regie.Decision{CallID: call, Answer: "allow "}), regie.CodeBadRequest},
		"twice":             {decide(asked, "x", regie.Decision{CallID: call, Answer: regie.AnswerAllow}, regie.Decision{CallID: call, Answer: regie.AnswerDeny}), regie.CodeBadRequest},
		"bad edit":          {decide(asked, "x", regie.Decision{CallID: call, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"path":7}`)}), regie.CodeBadArguments},
		"edit out of place": {decide(asked, "x", regie.Decision{CallID: call, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"path":"../x","content":""}`)}), regie.CodePathOutside},
		"edited denial":     {decide(asked, "x", regie.Decision{CallID: call, Answer: regie.AnswerDeny, Arguments: json.RawMessage(`{"path":"x","content":""}`)}), regie.CodeBadRequest},
		"wider scope":       {decide(asked, "x", regie.Decision{CallID: call, Answer: regie.AnswerAlways, Scope: &regie.Scope{Tool: "shell.exec", Kind: regie.ScopeAny}}), regie.CodeBadRequest},
	} {
		if _, err := conn.Decide(t.Context(), c.in); regie.CodeOf(err) != c.code {
			t.Errorf("%s: %v (%v), want %v", name, regie.CodeOf(err), err, c.code)
		}
	}
	inbox, err := conn.Inbox(t.Context(), store.InboxFilter{Root: b.root})
	if err != nil || len(inbox.Approvals) != 1 || inbox.Approvals[0].Reviews[0].Decision != nil {
		t.Errorf("a refused answer was kept: %+v, %v", inbox, err)
	}
	if _, err := conn.Decide(t.Context(), decide(asked, "x", regie.Decision{CallID: call, Answer: regie.AnswerDeny})); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Decide(t.Context(), decide(asked, "y", regie.Decision{CallID: call, Answer: "perhaps"})); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Errorf("what is no answer, to what is decided: %v", err)
	}
	expect(t, b.await(conn, run), regie.EndAnswered, "NOT_RUN DENIED", "SUCCEEDED")
	if m.count() != 2 {
		t.Errorf("the model was asked %d times", m.count())
	}
}

// TestOnDeny refuses without a reason: the model says why it asked, unless its agent ends then or
// the same call was refused before (decision 65).
func TestOnDeny(t *testing.T) {
	t.Parallel()
	const note = "The person refused without a reason. Say in one or two sentences why you asked"
	for name, c := range map[string]struct {
		agent   config.Agent
		again   call // what the model proposes after the first refusal, and the person refuses too
		end     regie.RoundEnd
		replies int
	}{
		"explain":             {config.Agent{}, call{}, regie.EndAnswered, 2},
		"the same call again": {config.Agent{OnDeny: "explain"}, write("b", "x", "1"), regie.EndDenied, 2},
		"another call":        {config.Agent{}, write("b", "y", "1"), regie.EndAnswered, 3},
		"end":                 {config.Agent{OnDeny: "end"}, call{}, regie.EndDenied, 1},
	} {
		t.Run(name, func(t *testing.T) {
			steps := []http.HandlerFunc{replyWith("", write("a", "x", "1"))}
			if c.again.id != "" {
				steps = append(steps, replyWith("", c.again))
			}
			m := newModel(t, append(steps, replyWith("I wanted to keep your notes. Shall I show them instead?"))...)
			b := newHarness(t, m)
			b.settings.File.Agents = map[string]config.Agent{"main": c.agent}
			conn, run, asked := b.startAsked(approval.Policy{})
			b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerDeny})
			if c.again.id != "" {
				asked = b.next(conn, run.SessionID, asked.ID)
				b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerDeny})
			}
			if view := b.await(conn, run); view.Round.End != c.end || m.count() != c.replies {
				t.Errorf("%s after %d replies", view.Round.End, m.count())
			}
			if strings.Contains(m.last(), note) != (c.replies > 1) {
				t.Errorf("the model was told %s", m.last())
			}
		})
	}
}

// TestStalePreview changes the file after the person saw the diff: the approved write does not run
// (decision 20).
func TestStalePreview(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("", call{"a", "files__write_file", `{"path":"a.txt","content":"new\n","mode":"overwrite"}`}), replyWith("I see."))
	b := newHarness(t, m)
	path := filepath.Join(b.root, "a.txt")
	fatal(t, os.WriteFile(path, []byte("old\n"), 0o600))
	conn := b.connect()
	run := b.startRun(conn, approval.Policy{})
	asked := b.parked(conn, run.SessionID).Approvals[0]
	fatal(t, os.WriteFile(path, []byte("changed by somebody\n"), 0o600))
	b.decide(conn, asked, allow(asked.Reviews[0]))
	expect(t, b.await(conn, run), regie.EndAnswered, "FAILED")
	if got, _ := os.ReadFile(path); string(got) != "changed by somebody\n" || !strings.Contains(m.last(), "STALE_PREVIEW") {
		t.Errorf("the file holds %q", got)
	}
}

// rounds lists the rounds of the workspace once there are n.
func (b *harness) rounds(control service, n int) []store.RoundSummary {
	b.t.Helper()
	list, err := control.List(b.t.Context(), store.RoundFilter{Root: b.root, Limit: 10})
	if err != nil || len(list) < n {
		b.t.Fatalf("%d rounds, want %d: %v", len(list), n, err)
	}
	return list
}
