package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/httpapi"
)

// command is a person's own command in a session of the harness.
func (b *harness) command(session regie.ID, command string) dispatch.RunRequest {
	in := b.request(approval.Policy{OnApproval: approval.Park, Questions: true})
	in.SessionID, in.ClientID, in.Text, in.Command = session, regie.NewID().String(), "", command
	return in
}

// gives has a person give a command in a new session.
func (b *harness) gives(control service, command string) (regie.ID, dispatch.Run) {
	b.t.Helper()
	session := regie.NewID()
	run := b.send(control, b.command(session, command))
	return session, run
}

// TestOwnCommand gives a command as a person: it asks as the agent's would, no model is asked for
// it, and the model reads of it with the next message.
func TestOwnCommand(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	m := newModel(t, replyWith("I see."))
	b := newHarness(t, m)
	conn := b.connect()
	session, run := b.gives(conn, "echo one | tee new")
	asked := b.parked(conn, session).Approvals[0]
	b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})
	view := b.await(conn, run)
	expect(t, view, regie.EndCompleted, "SUCCEEDED")
	call := view.Exchanges[0].Calls[0]
	if call.Origin != regie.OriginAPI || call.Result == "" || view.Spent != (regie.Spending{Known: true}) {
		t.Errorf("the call is %+v, spent %+v", call, view.Spent)
	}
	if data, err := os.ReadFile(filepath.Join(b.root, "new")); err != nil || string(data) != "one\n" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	if n := m.count(); n != 0 {
		t.Errorf("a model was asked %d times", n)
	}
	if _, err := conn.Prompt(t.Context(), dispatch.PromptRequest{CallID: call.ID}); regie.CodeOf(err) != regie.CodeConflict || !strings.Contains(err.Error(), "no model was asked") {
		t.Errorf("what was sent for it: %v", err)
	}
	next := b.request(approval.Policy{})
	next.SessionID, next.Text = session, "what did I do?"
	run = b.send(conn, next)
	expect(t, b.await(conn, run), regie.EndAnswered)
	if prompt := m.last(); !strings.Contains(prompt, "!echo one | tee new") || !strings.Contains(prompt, "The person gave this command") || strings.Contains(prompt, `"role":"assistant"`) {
		t.Errorf("the model read %s", prompt)
	}
}

// TestOwnCommandVerdicts: rules say of a person's command what they say of the agent's. What one
// allows is not asked about, what one forbids is refused, what one wants asked about is asked
// about.
func TestOwnCommandVerdicts(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	b := newHarness(t, newModel(t))
	b.configured(`approvals:
  rules:
    - {tool: shell.shell_exec, argv: [touch, made], decision: allow}
    - {tool: shell.shell_exec, argv: [touch, never], decision: forbid}
`)
	conn := b.connect()
	session := regie.NewID()
	give := func(command string) dispatch.Run {
		t.Helper()
		run := b.send(conn, b.command(session, command))
		return run
	}
	expect(t, b.await(conn, give("touch made")), regie.EndCompleted, "SUCCEEDED")
	view := b.await(conn, give(" touch never "))
	expect(t, view, regie.EndDenied, "NOT_RUN DENIED")
	run := give("touch other")
	asked := b.parked(conn, session).Approvals[0]
	if scopes := asked.Reviews[0].Preview.Scopes; len(scopes) != 2 || asked.Reviews[0].Preview.Sentence.IsZero() {
		t.Errorf("the person is shown %+v", asked.Reviews[0].Preview)
	}
	b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerDeny, Reason: "not now"})
	expect(t, b.await(conn, run), regie.EndDenied, "NOT_RUN DENIED") // the reason has no model go on with it
	for name, there := range map[string]bool{"made": true, "never": false, "other": false} {
		if _, err := os.Stat(filepath.Join(b.root, name)); (err == nil) != there {
			t.Errorf("%s is there: %v", name, err == nil)
		}
	}
}

// TestOwnCommandEdited runs what the person made of it, with the timeout that they gave it: nobody
// knows what such a command has done, and the same again is asked about although a rule allows it.
func TestOwnCommandEdited(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	b := newHarness(t, newModel(t))
	conn := b.connect()
	session, run := b.gives(conn, "sleep 60")
	asked := b.parked(conn, session).Approvals[0]
	b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow, Arguments: []byte(`{"command":"echo begun > log; sleep 60","timeout":1}`)})
	view := b.await(conn, run)
	expect(t, view, regie.EndCompleted, "UNKNOWN")
	if call := view.Exchanges[0].Calls[0]; call.Error.Code != regie.CodeTimeout && call.Error.Code != regie.CodeOutcomeUnknown || len(call.Executed) == 0 {
		t.Errorf("the call is %+v", call)
	}
	if data, err := os.ReadFile(filepath.Join(b.root, "log")); err != nil || string(data) != "begun\n" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

// TestOwnCommandInterrupted interrupts a command that runs: it is ended with all that it started,
// and the session stays usable.
func TestOwnCommandInterrupted(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	m := newModel(t, replyWith("I see."))
	b := newHarness(t, m)
	conn := b.connect()
	session := regie.NewID()
	in := b.command(session, "echo begun > log; sleep 60")
	in.Policy.Allow = []string{"shell.*"}
	run := b.send(conn, in)
	b.until(conn, session, func(e *regie.Event) bool { return e.Type == regie.EventToolCall })
	fatal(t, conn.Interrupt(t.Context(), run.RoundID))
	view := b.await(conn, run)
	call := &view.Exchanges[0].Calls[0]
	_, begun := os.Stat(filepath.Join(b.root, "log"))
	// it was interrupted while the sandbox was made
	never := call.State == regie.CallFailed && call.Error.Code == regie.CodeStopRequested && begun != nil
	if view.Round.End != regie.EndInterrupted || call.State != regie.CallUnknown && call.State != regie.CallNotRun && !never {
		t.Errorf("the round ended %s, the call is %s: %+v", view.Round.End, call.State, call.Error)
	}
	next := b.request(approval.Policy{})
	next.SessionID = session
	run = b.send(conn, next)
	expect(t, b.await(conn, run), regie.EndAnswered)
}

// TestOwnCommandRefused: what cannot be a command is refused before anything is stored, and none
// waits for the end of a run.
func TestOwnCommandRefused(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", write("a", "a.txt", "one\n")), replyWith("ok")))
	conn := b.connect()
	change := func(change func(in *dispatch.RunRequest)) dispatch.RunRequest {
		in := b.command(regie.NewID(), "make")
		change(&in)
		return in
	}
	for name, in := range map[string]dispatch.RunRequest{
		"nothing":      change(func(in *dispatch.RunRequest) { in.Command = " \n" }),
		"the last one": change(func(in *dispatch.RunRequest) { in.Command = "!" }),
		"with a text":  change(func(in *dispatch.RunRequest) { in.Text = "and this" }),
		"a long one":   change(func(in *dispatch.RunRequest) { in.Command = strings.Repeat("x", 70_000) }),
		// it was asked about with U+FFFD in its place
		"a NUL":         change(func(in *dispatch.RunRequest) { in.Command = "echo a\x00b" }),
		"an automation": change(func(in *dispatch.RunRequest) { in.Type = regie.SessionAutomation }),
	} {
		if _, err := conn.Submit(t.Context(), in); regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list := b.rounds(conn, 0); len(list) != 0 {
		t.Errorf("there are rounds: %+v", list)
	}
	run := b.send(conn, b.request(approval.Policy{}))
	asked := b.parked(conn, run.SessionID).Approvals[0]
	if _, err := conn.Submit(t.Context(), b.command(run.SessionID, "make")); regie.CodeOf(err) != regie.CodeRoundInProgress {
		t.Errorf("while something is asked: %v", err)
	}
	b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
}

// TestOwnCommandServed gives a command over HTTP: the same request again runs nothing, and a
// message that comes meanwhile is answered behind it, with what came of the command in its prompt.
func TestOwnCommandServed(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	m := newModel(t, replyWith("I see."))
	b := newHarness(t, m)
	h := b.serve("127.0.0.1:0")
	session := h.session()
	id, err := regie.ParseID(session)
	fatal(t, err)
	keyed := func(r *http.Request) { r.Header.Set("Idempotency-Key", "one") }
	var first, again dispatch.Run
	h.json(http.MethodPost, "/api/v1/runs", `{"session_id":"`+session+`","policy":{"on_approval":"park"},"command":"echo one >> log; cat log"}`, http.StatusAccepted, &first, keyed)
	conn := b.connect()
	asked := b.parked(conn, id).Approvals[0]
	var said httpapi.Accepted
	h.json(http.MethodPost, "/api/v1/sessions/"+session+"/messages", `{"content":"and?"}`, http.StatusAccepted, &said)
	b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})
	expect(t, b.await(conn, dispatch.Run{SessionID: id, RoundID: first.RoundID}), regie.EndCompleted, "SUCCEEDED")
	b.until(conn, id, func(e *regie.Event) bool {
		return e.Type == regie.EventRound && strings.Contains(string(e.Body), "ANSWERED")
	})
	h.json(http.MethodPost, "/api/v1/runs", `{"session_id":"`+session+`","policy":{"on_approval":"park"},"command":"echo one >> log; cat log"}`, http.StatusAccepted, &again, keyed)
	if again.RoundID != first.RoundID || said.Admitted {
		t.Errorf("first %+v, again %+v, the message %+v", first, again, said)
	}
	if data, err := os.ReadFile(filepath.Join(b.root, "log")); err != nil || string(data) != "one\n" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	if m.count() != 1 || !strings.Contains(m.last(), "echo one") || !strings.Contains(m.last(), `\"status\":\"SUCCESS\"`) {
		t.Errorf("a model was asked %d times, last %s", m.count(), m.last())
	}
}
