package app_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// parked waits until a session waits for people and returns what it waits for.
func (b *bed) parked(control chat.Control, session regie.ID) store.Inbox {
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
	if err != nil {
		b.t.Fatal(err)
	}
	return inbox
}

// next waits for an approval after another one, which may be none.
func (b *bed) next(control chat.Control, session, after regie.ID) (next regie.Approval) {
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
		says("I write four files.", write("a", "a.txt", "one\n"), write("b", "b.txt", "two\n"), write("c", "c.txt", "three\n"), write("d", "d.txt", "four\n")),
		says("Done what you allowed."))
	b := newBed(t, m)
	conn := b.connect()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
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
	if err := conn.Wait(t.Context(), run.RoundID); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Decide(t.Context(), decide(asked, "1", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow},
		regie.Decision{CallID: asked.Reviews[1].CallID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"path":"b2.txt","content":"edited\n"}`)})); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}

	engine, client := b.connect(), b.connect()
	defer engine.Close()
	defer client.Close()
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
	for i, control := range []chat.Control{engine, client} {
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
	for _, want := range []string{"not that one", "USER_REJECTED", "a person changed the arguments", "b2.txt"} {
		if !strings.Contains(m.last(), want) {
			t.Errorf("the model is not told %q", want)
		}
	}
}

// TestDecideRefuses answers as one must not; each says why and changes nothing.
func TestDecideRefuses(t *testing.T) {
	t.Parallel()
	m := newModel(t, says("", write("a", "a.txt", "one\n"), call{"l", "files__list_files", `{}`}), says("ok"))
	b := newBed(t, m)
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
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
	// All that was asked is denied without a word: nobody wants the run to go on (decision 20).
	expect(t, b.await(conn, run), regie.EndDenied, "NOT_RUN DENIED", "SUCCEEDED")
	if m.count() != 1 {
		t.Errorf("the model was asked %d times", m.count())
	}
}

// TestStandingAnswers allows a call for the session and always: what lies within the scope is not
// asked about again, what does not is.
func TestStandingAnswers(t *testing.T) {
	t.Parallel()
	m := newModel(t, says("", write("a", "docs/a.txt", "one\n")), says("", write("b", "docs/b.txt", "two\n")), says("", write("c", "c.txt", "three\n")), says("ok"))
	b := newBed(t, m)
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
	if under == nil {
		t.Fatalf("no scope below a directory is proposed: %+v", asked.Reviews[0].Preview.Scopes)
	}
	if _, err := conn.Decide(t.Context(), decide(asked, "x", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAlways, Scope: under})); err != nil {
		t.Fatal(err)
	}
	next := b.next(conn, run.SessionID, asked.ID)
	if !strings.Contains(string(next.Reviews[0].Arguments), "c.txt") {
		t.Errorf("asked about %s", next.Reviews[0].Arguments)
	}
	if _, err := conn.Decide(t.Context(), decide(next, "y", regie.Decision{CallID: next.Reviews[0].CallID, Answer: regie.AnswerAllow})); err != nil {
		t.Fatal(err)
	}
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED")
}

// TestStalePreview changes the file after the person saw the diff: the approved write does not run
// (decision 20).
func TestStalePreview(t *testing.T) {
	t.Parallel()
	m := newModel(t, says("", call{"a", "files__write_file", `{"path":"a.txt","content":"new\n","mode":"overwrite"}`}), says("I see."))
	b := newBed(t, m)
	path := filepath.Join(b.root, "a.txt")
	if err := os.WriteFile(path, []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	asked := b.parked(conn, run.SessionID).Approvals[0]
	if err := os.WriteFile(path, []byte("changed by somebody\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Decide(t.Context(), decide(asked, "x", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})); err != nil {
		t.Fatal(err)
	}
	expect(t, b.await(conn, run), regie.EndAnswered, "FAILED")
	if got, _ := os.ReadFile(path); string(got) != "changed by somebody\n" || !strings.Contains(m.last(), "STALE_PREVIEW") {
		t.Errorf("the file holds %q", got)
	}
}

// TestStopsWhileWaiting says each stopping word to a run that waits for an approval (decision 6).
func TestStopsWhileWaiting(t *testing.T) {
	t.Parallel()
	park := func(t *testing.T) (*bed, chat.Control, dispatch.Run, regie.Approval) {
		t.Helper()
		b := newBed(t, newModel(t, says("", write("a", "a.txt", "one\n")), says("ok")))
		conn := b.connect()
		t.Cleanup(func() { _ = conn.Close() })
		run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
		if err != nil {
			t.Fatal(err)
		}
		return b, conn, run, b.parked(conn, run.SessionID).Approvals[0]
	}
	allow := func(a regie.Approval) dispatch.DecideRequest {
		return decide(a, "x", regie.Decision{CallID: a.Reviews[0].CallID, Answer: regie.AnswerAllow})
	}
	t.Run("interrupt", func(t *testing.T) {
		b, conn, run, asked := park(t)
		if err := conn.Interrupt(t.Context(), run.RoundID); err != nil {
			t.Fatal(err)
		}
		expect(t, b.await(conn, run), regie.EndInterrupted, "NOT_RUN INTERRUPTED")
		if _, err := conn.Decide(t.Context(), allow(asked)); regie.CodeOf(err) != regie.CodeConflict {
			t.Errorf("an approval after the interrupt: %v", err)
		}
	})
	t.Run("stop", func(t *testing.T) {
		b, conn, run, _ := park(t)
		for range 2 {
			if _, err := conn.Stop(t.Context(), run.SessionID); err != nil {
				t.Fatal(err)
			}
			view := b.await(conn, run)
			expect(t, view, regie.EndStopped, "NOT_RUN INTERRUPTED")
			if view.Session.State != regie.SessionClosed || view.Session.EndReason != regie.SessionCancelled {
				t.Errorf("the session is %s %s", view.Session.State, view.Session.EndReason)
			}
		}
	})
	t.Run("pause", func(t *testing.T) {
		b, conn, run, asked := park(t)
		if err := conn.Pause(t.Context(), run.RoundID); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Decide(t.Context(), allow(asked)); err != nil { // it stays answerable
			t.Fatal(err)
		}
		view, err := conn.Get(t.Context(), run.RoundID)
		if err != nil || view.Session.State != regie.SessionPaused || states(view)[0] != "APPROVED" {
			t.Errorf("a paused session went on: %s %v %v", view.Session.State, states(view), err)
		}
		if err := conn.Resume(t.Context(), run.RoundID); err != nil {
			t.Fatal(err)
		}
		expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
	})
}

// TestMessagesWhileBusy writes into a session whose round runs or waits (decision 10).
func TestMessagesWhileBusy(t *testing.T) {
	t.Parallel()
	follow := func(b *bed, run dispatch.Run, text string, when store.WhenBusy) dispatch.RunRequest {
		in := b.request(approval.Policy{})
		in.SessionID, in.Text, in.WhenBusy = run.SessionID, text, when
		return in
	}
	t.Run("queue, over a restart", func(t *testing.T) {
		m := newModel(t, says("", write("a", "a.txt", "one\n")), says("first"), says("second"))
		b := newBed(t, m)
		conn := b.connect()
		run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
		if err != nil {
			t.Fatal(err)
		}
		asked := b.parked(conn, run.SessionID).Approvals[0]
		for _, text := range []string{"and then this", "and that"} {
			queued, err := conn.Submit(t.Context(), follow(b, run, text, store.Queue))
			if err != nil || !queued.Pending || queued.RoundID != run.RoundID {
				t.Fatalf("%+v, %v", queued, err)
			}
		}
		if _, err := conn.Submit(t.Context(), follow(b, run, "now or never", store.Reject)); regie.CodeOf(err) != regie.CodeRoundInProgress {
			t.Errorf("rejected with %v", err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		conn = b.connect()
		defer conn.Close()
		if _, err := conn.Decide(t.Context(), decide(asked, "x", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})); err != nil {
			t.Fatal(err)
		}
		expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
		list := b.rounds(conn, 2)
		view := b.await(conn, dispatch.Run{SessionID: run.SessionID, RoundID: list[0].Round.ID})
		if got := view.Exchanges[0].Reply.AI.Text(); got != "second" {
			t.Errorf("the next round answered %q", got)
		}
		if !strings.Contains(m.last(), "and then this") || !strings.Contains(m.last(), "and that") || strings.Contains(m.last(), "now or never") {
			t.Errorf("the model read %s", m.last())
		}
	})
	t.Run("steer", func(t *testing.T) {
		m := newModel(t, says("", write("a", "a.txt", "one\n")), says("As you like."))
		b := newBed(t, m)
		conn := b.connect()
		defer conn.Close()
		run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
		if err != nil {
			t.Fatal(err)
		}
		b.parked(conn, run.SessionID)
		if _, err := conn.Submit(t.Context(), follow(b, run, "do not write, just say hello", store.Steer)); err != nil {
			t.Fatal(err)
		}
		view := b.await(conn, run)
		expect(t, view, regie.EndAnswered, "NOT_RUN SUPERSEDED")
		if !strings.Contains(m.last(), "just say hello") || len(view.Exchanges) != 2 {
			t.Errorf("the model read %s", m.last())
		}
	})
	t.Run("stop gives them back", func(t *testing.T) {
		asked := make(chan struct{}, 1)
		b := newBed(t, newModel(t, hangs(asked), says("again")))
		conn := b.connect()
		defer conn.Close()
		run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
		if err != nil {
			t.Fatal(err)
		}
		<-asked
		if _, err := conn.Submit(t.Context(), follow(b, run, "later", store.Queue)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Stop(t.Context(), run.SessionID); err != nil {
			t.Fatal(err)
		}
		view := b.await(conn, run)
		expect(t, view, regie.EndStopped)
		if list := b.rounds(conn, 1); len(list) != 1 || view.Session.State != regie.SessionClosed {
			t.Errorf("%d rounds, %s", len(list), view.Session.State)
		}
	})
}

// rounds lists the rounds of the workspace once there are n.
func (b *bed) rounds(control chat.Control, n int) []store.RoundSummary {
	b.t.Helper()
	list, err := control.List(b.t.Context(), store.RoundFilter{Root: b.root, Limit: 10})
	if err != nil || len(list) < n {
		b.t.Fatalf("%d rounds, want %d: %v", len(list), n, err)
	}
	return list
}

// TestExpiry lets nobody answer in time: what was asked is not run, and the run ends with that
// (decision 11).
func TestExpiry(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t, says("", write("a", "a.txt", "one\n"))))
	b.approvalTTL = 30 * time.Millisecond
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, b.await(conn, run), regie.EndDenied, "NOT_RUN EXPIRED")
	inbox, err := conn.Inbox(context.WithoutCancel(t.Context()), store.InboxFilter{SessionID: run.SessionID})
	if err != nil || len(inbox.Approvals) != 0 {
		t.Errorf("%+v, %v", inbox, err)
	}
}

// TestList_StuckRun: a run that was answered where its provider has another address is listed as
// one that cannot go on.
func TestList_StuckRun(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t, says("", write("a", "a.txt", "one\n"))))
	request := b.request(approval.Policy{})
	request.Settings = b.settings.Fingerprint()
	conn := b.connect()
	run, err := conn.Submit(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	asked := b.parked(conn, run.SessionID).Approvals[0]
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	moved := newBed(t, newModel(t)) // another server
	b.settings.BaseURL, b.settings.Providers = moved.settings.BaseURL, moved.settings.Providers
	conn = b.connect()
	defer conn.Close()
	if _, err := conn.Decide(t.Context(), decide(asked, "x", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})); err != nil {
		t.Fatal(err)
	}
	runs, err := conn.List(t.Context(), store.RoundFilter{Root: b.root})
	if err != nil || len(runs) != 1 || !runs[0].Stuck {
		t.Errorf("%+v, %v", runs, err)
	}
}
