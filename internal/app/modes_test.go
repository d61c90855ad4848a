package app_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sandbox"
)

func planned(id string) call {
	return call{id, "session__update_plan", `{"steps":[{"text":"write a.txt","status":"pending"}],"approve":true}`}
}

// TestPlanMode runs queries and no action, whatever a run allows, until a person approves the plan:
// over a restart, after a no with its reason, and on in the mode that the person chose (decisions
// 68 and 71).
func TestPlanMode(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("", call{"l", "files__list_files", `{}`}, write("a", "a.txt", "one\n")), replyWith("", planned("p")), replyWith("", planned("q")),
		replyWith("", write("b", "a.txt", "one\n")), replyWith("Done."))
	b := newHarness(t, m)
	conn := b.connect()
	run := b.submit(conn, func(in *dispatch.RunRequest) {
		in.Policy, in.ApprovalMode = approval.Policy{Questions: true, Allow: []string{"files.list_files"}}, regie.ModePlan
	})
	asked := b.parked(conn, run.SessionID).Questions[0]
	if m := asked.Module; m.Kind != regie.ModuleValidation || !strings.Contains(m.Text, "1. write a.txt") || len(m.Options) != 2 {
		t.Fatalf("the person is asked %+v", m)
	}
	fatal(t, conn.Close())
	conn = b.connect()
	if _, err := conn.Answer(t.Context(), answer(asked, "both", regie.QuestionReply{Yes: new(bool), Choices: asked.Module.Options[:1]})); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Errorf("no, in this way: %v", err)
	}
	_, err := conn.Answer(t.Context(), answer(asked, "no", regie.QuestionReply{Text: "two files, please"}))
	fatal(t, err)
	again := asked
	b.until(conn, run.SessionID, func(*regie.Event) bool {
		inbox := b.parked(conn, run.SessionID)
		again = inbox.Questions[0]
		return again.ID != asked.ID
	})
	view, err := conn.Session(t.Context(), run.SessionID)
	if err != nil || view.ApprovalMode != regie.ModePlan || !strings.Contains(m.last(), "No. Reason: two files, please") {
		t.Fatalf("after a no: mode %q, %v", view.ApprovalMode, err)
	}
	_, err = conn.Answer(t.Context(), answer(again, "yes", regie.QuestionReply{Choices: again.Module.Options[1:]}))
	fatal(t, err)
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "NOT_RUN OUT_OF_SCOPE", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED")
	view, err = conn.Session(t.Context(), run.SessionID)
	if data, _ := os.ReadFile(filepath.Join(b.root, "a.txt")); err != nil || view.ApprovalMode != regie.ModeAcceptEdits || string(data) != "one\n" {
		t.Errorf("after a yes: mode %q, a.txt %q, %v", view.ApprovalMode, data, err)
	}
	for i, want := range map[int]string{0: "Plan mode: only queries run", 1: "PLAN_MODE", 3: "plan mode is over"} {
		if !strings.Contains(string(m.requests[i]), want) {
			t.Errorf("request %d says nothing of %q", i, want)
		}
	}
	if fault := unlikeWritten(t, conn, run.SessionID); fault != "" {
		t.Error(fault)
	}
}

// TestPlanMode_Unattended refuses a plan that nobody can approve, and runs nothing although all is
// allowed.
func TestPlanMode_Unattended(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("", planned("p"), write("a", "a.txt", "one\n")), replyWith("My plan."))
	b := newHarness(t, m)
	conn := b.connect()
	run := b.submit(conn, func(in *dispatch.RunRequest) { in.ApprovalMode = regie.ModePlan })
	expect(t, b.await(conn, run), regie.EndAnswered, "NOT_RUN OUT_OF_SCOPE", "NOT_RUN OUT_OF_SCOPE")
	if !strings.Contains(m.last(), "NOBODY_APPROVES") {
		t.Errorf("the model reads %s", m.last())
	}
}

// TestPlanMode_JSON asks for the approval of a plan in the JSON dialect, where a plan alone would
// be the end of an answer.
func TestPlanMode_JSON(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith(`{"pre_text":"My plan.","plan":{"steps":[{"text":"write a.txt","status":"pending"}],"approve":true}}`), replyWith(`{"pre_text":"Done."}`))
	b := newHarness(t, m)
	conn := b.connect()
	in := b.inJSON(approval.Policy{Questions: true})
	in.ApprovalMode = regie.ModePlan
	run := b.send(conn, in)
	asked := b.parked(conn, run.SessionID).Questions[0]
	in = b.inJSON(approval.Policy{Questions: true})
	in.SessionID, in.Text = run.SessionID, "yes"
	said, err := conn.Submit(t.Context(), in)
	if err != nil || !said.Answered {
		t.Fatalf("a message that says yes to %q: %+v, %v", asked.Module.Text, said, err)
	}
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
	if view, err := conn.Session(t.Context(), run.SessionID); err != nil || view.ApprovalMode != regie.ModeAsk || !strings.Contains(m.last(), "plan mode is over") {
		t.Errorf("mode %q, %v; the model reads %s", view.ApprovalMode, err, m.last())
	}
}

// TestMode_ChangedDuringRun holds a running round to a new mode from its next call on. Commands ask
// in accept_edits; in auto they run in the sandbox, and ask with the network.
func TestMode_ChangedDuringRun(t *testing.T) {
	t.Parallel()
	shell := func(id, arguments string) call { return call{id, "shell__shell_exec", arguments} }
	m := newModel(t, replyWith("", write("a", "a.txt", "one\n")), replyWith("", write("b", "b.txt", "two\n")), replyWith("", shell("c", `{"command":"true"}`)),
		replyWith("", shell("d", `{"command":"ls *"}`)), replyWith("", shell("e", `{"command":"true","network":true}`)), replyWith("Done."))
	b := newHarness(t, m)
	conn := b.connect()
	run := b.startRun(conn, approval.Policy{})
	first := b.parked(conn, run.SessionID).Approvals[0]
	set := func(mode regie.Mode) {
		t.Helper()
		fatal(t, conn.ChangeSession(t.Context(), dispatch.SessionChange{SessionID: run.SessionID, ApprovalMode: mode}))
	}
	allow := func(a regie.Approval) {
		t.Helper()
		_, err := conn.Decide(t.Context(), decide(a, a.ID.String(), regie.Decision{CallID: a.Reviews[0].CallID, Answer: regie.AnswerAllow}))
		fatal(t, err)
	}
	set(regie.ModeAcceptEdits)
	allow(first)
	second := b.next(conn, run.SessionID, first.ID)
	if said := second.Reviews[0].Preview.Sentence.String(); !strings.Contains(said, "run true") {
		t.Fatalf("accept_edits asks: %s", said)
	}
	if strings.Contains(second.Reviews[0].Preview.Sentence.String(), "WITHOUT") {
		t.Skip("no sandbox works here")
	}
	set(regie.ModeAuto)
	allow(second)
	third := b.next(conn, run.SessionID, second.ID)
	if said := third.Reviews[0].Preview.Sentence.String(); !strings.Contains(said, "with the network") {
		t.Fatalf("auto asks: %s", said)
	}
	allow(third)
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED")
}

// TestMode_NeedsApprove refuses a mode to a caller who may not allow calls, and unknown ones.
func TestMode_NeedsApprove(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("Done.")))
	h := b.serve("127.0.0.1:0")
	session := h.session()
	as := bearer(h.add(control.TokenRequest{Name: "ci", Scopes: []regie.TokenScope{regie.ScopeRead, regie.ScopeChat}}).Secret)
	var made regie.Session
	h.json("GET", "/api/v1/sessions/"+session, "", 200, &made)
	for path, body := range map[string]string{
		"PATCH /api/v1/sessions/" + session: `{"approval_mode":"auto"}`,
		"POST /api/v1/runs":                 `{"session_id":"` + session + `","client_message_id":"1","text":"x","approval_mode":"ask"}`,
		"POST /api/v1/sessions":             `{"workspace_id":"` + made.WorkspaceID.String() + `","approval_mode":"accept_edits"}`,
	} {
		method, path, _ := strings.Cut(path, " ")
		response := h.ask(method, path, body, as) //nolint:bodyclose // the harness closes it
		if said, _ := io.ReadAll(response.Body); response.StatusCode != 403 || !strings.Contains(string(said), "MISSING_SCOPE") {
			t.Errorf("%s: %d %s", path, response.StatusCode, said)
		}
	}
	h.json("PATCH", "/api/v1/sessions/"+session, `{"approval_mode":"yolo"}`, 400, nil)
	h.json("PATCH", "/api/v1/sessions/"+session, `{"approval_mode":"plan","name":"x"}`, 400, nil)
	h.json("PATCH", "/api/v1/sessions/"+session, `{"approval_mode":"plan"}`, 200, nil)
	var shown regie.Session
	if h.json("GET", "/api/v1/sessions/"+session, "", 200, &shown); shown.ApprovalMode != regie.ModePlan {
		t.Errorf("the session has the mode %q", shown.ApprovalMode)
	}
}

// TestMode_AutoNamesSecret has the mode auto ask about commands that name a secret file or a git
// directory, however they are joined; others run.
func TestMode_AutoNamesSecret(t *testing.T) {
	t.Parallel()
	shell := func(id, command string) call {
		return call{id, "shell__shell_exec", `{"command":` + strconv.Quote(command) + `}`}
	}
	commands := []string{"cat .env", "sh -c 'cat ./.env | rev'", "cat $PWD/.env", "rm -rf .git", "ls sub/../.git/refs", "true && git commit -m x"}
	turns := []http.HandlerFunc{replyWith("", shell("z", "ls .gitignore"))}
	for i, command := range commands {
		turns = append(turns, replyWith("", shell(strconv.Itoa(i), command)))
	}
	b := newHarness(t, newModel(t, append(turns, replyWith("Done."))...))
	b.file(".env", "KEY=CANARY\n")
	b.file(".gitignore", "x\n")
	conn := b.connect()
	in := b.request(approval.Policy{})
	in.ApprovalMode = regie.ModeAuto
	run := b.send(conn, in)
	var asked regie.Approval
	for _, command := range commands {
		asked = b.next(conn, run.SessionID, asked.ID)
		if said := asked.Reviews[0].Preview.Sentence.String(); strings.Contains(said, "WITHOUT") {
			t.Skip("no sandbox works here")
		} else if !strings.Contains(said, command) {
			t.Fatalf("asks %s instead of %s", said, command)
		}
		_, err := conn.Decide(t.Context(), decide(asked, asked.ID.String(), regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow}))
		fatal(t, err)
	}
	view := b.await(conn, run)
	if view.Round.End != regie.EndAnswered {
		t.Errorf("ended %s", view.Round.End)
	}
}

// TestMode_AutoHidesSecrets hides secret files and git directories from a command that only the
// mode allows, whatever its programs open; an approved one sees them.
func TestMode_AutoHidesSecrets(t *testing.T) {
	t.Parallel()
	if needsSandbox(t) != sandbox.Bubblewrap {
		t.Skip("bubblewrap does not work here")
	}
	b := newHarness(t, newModel(t,
		replyWith("", runs("a", "cat deep/id_*sa; rm -rf .gi?/refs; echo moved > .gi?/HEAD; touch fresh", 20)),
		replyWith("", runs("b", "cat deep/id_rsa && git tag v1", 20)),
		replyWith("Done.")))
	b.file("deep/id_rsa", "CANARY\n")
	git := func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", b.root}, args...)...)
		if said, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, said)
		}
	}
	git("init", "-q")
	git("-c", "user.name=A", "-c", "user.email=a@x", "commit", "-q", "--allow-empty", "-m", "one")
	conn := b.connect()
	in := b.request(approval.Policy{})
	in.ApprovalMode = regie.ModeAuto
	run := b.send(conn, in)
	asked := b.next(conn, run.SessionID, regie.ID{})
	git("rev-parse", "HEAD")
	_, err := conn.Decide(t.Context(), decide(asked, "1",
		regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow}))
	fatal(t, err)
	view := b.await(conn, run)
	expect(t, view, regie.EndAnswered, "SUCCEEDED", "SUCCEEDED")
	unasked, approved := view.Exchanges[0].Calls[0].Result, view.Exchanges[1].Calls[0].Result
	if strings.Contains(unasked, "CANARY") || !strings.Contains(unasked, "Read-only file system") {
		t.Errorf("unasked, it read %s", unasked)
	}
	if !strings.Contains(approved, "CANARY") {
		t.Errorf("approved, it read %s", approved)
	}
	git("rev-parse", "v1")
}
