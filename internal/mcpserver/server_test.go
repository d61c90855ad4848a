package mcpserver_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/store"
)

// TestTools: what is offered, with hints that are true, over both transports.
func TestTools(t *testing.T) {
	for _, over := range []string{"stdio", "http"} {
		t.Run(over, func(t *testing.T) {
			b := newHarness(t)
			connect := b.stdio
			if over == "http" {
				connect = b.http
			}
			tools, err := connect(nil).ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tool := range tools.Tools {
				line := tool.Name
				if tool.Annotations.ReadOnlyHint {
					line += " reads"
				}
				got = append(got, line)
			}
			want := "files__list_files reads, files__read_file reads, files__search_semantic reads, files__search_text reads, list_sessions reads, send_message, session_status reads, start_session, stop_session"
			if strings.Join(got, ", ") != want {
				t.Errorf("the tools are %s\nwant %s", strings.Join(got, ", "), want)
			}
		})
	}
}

// TestQueries: the workspace is read as agents read it, and no further.
func TestQueries(t *testing.T) {
	b := newHarness(t)
	outside := filepath.Join(filepath.Dir(b.root), "outside.txt")
	if err := os.WriteFile(outside, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(b.root, "link.txt")); err != nil {
		t.Fatal(err)
	}
	session := b.stdio(nil)
	for _, row := range []struct {
		name, tool string
		arguments  any
		want       string
		failed     bool
	}{
		{"a file", "files__read_file", object{"path": "a.txt"}, "1\talpha", false},
		{"a list", "files__list_files", object{}, "a.txt", false},
		{"exact words", "files__search_text", object{"query": "alpha"}, "a.txt:1: alpha", false},
		{"by meaning", "files__search_semantic", object{"query": "alpha"}, "a.txt", false},
		{"a secret", "files__read_file", object{"path": ".env"}, "(PATH_PROTECTED)", true},
		{"up", "files__read_file", object{"path": "../outside.txt"}, "(PATH_OUTSIDE)", true},
		{"absolute", "files__read_file", object{"path": outside}, "(PATH_", true},
		{"through a link", "files__read_file", object{"path": "link.txt"}, "(PATH_OUTSIDE)", true},
		{"not there", "files__read_file", object{"path": "b.txt"}, "(FILE_NOT_FOUND)", true},
		{"no path", "files__read_file", object{}, "(INVALID_ARGUMENTS)", true},
		{"an unknown parameter", "files__read_file", object{"path": "a.txt", "pth": "x"}, "(INVALID_ARGUMENTS)", true},
		{"another workspace", "files__read_file", object{"path": "a.txt", "workspace": "x"}, "(INVALID_ARGUMENTS)", true},
		{"a number for a text", "files__read_file", object{"path": 7}, "(INVALID_ARGUMENTS)", true},
		{"a list for an object", "files__read_file", []any{}, "(INVALID_ARGUMENTS)", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			text, _, failed := call(t, session, row.tool, row.arguments)
			if failed != row.failed || !strings.Contains(text, row.want) {
				t.Errorf("failed: %v, %q; want %q", failed, text, row.want)
			}
			if strings.Contains(text, "canary") || strings.Contains(text, "\x1b") {
				t.Errorf("it gave away or did what it must not: %q", text)
			}
		})
	}
	if text, _, _ := call(t, session, "files__search_text", object{"query": "hidden"}); strings.Contains(text, "h.txt") {
		t.Errorf("an ignored file was found: %s", text)
	}
	if text, _, _ := call(t, session, "files__search_text", object{"query": "TOKEN"}); strings.Contains(text, ".env") {
		t.Errorf("a secret was found: %s", text)
	}
}

// TestNoActions: what acts, asks or belongs to a session is no query, whatever a client calls it.
func TestNoActions(t *testing.T) {
	b := newHarness(t)
	place, err := b.conn.Workspaces.Open(t.Context(), dispatch.WorkspaceRequest{Path: b.root})
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]regie.Code{
		"files.write_file": regie.CodeForbidden, "files.delete_file": regie.CodeForbidden, "shell.shell_exec": regie.CodeForbidden,
		"session.ask_user": regie.CodeForbidden, "session.read_result": regie.CodeForbidden, "session.complete": regie.CodeForbidden,
		"nothing.here": regie.CodeUnknownTool,
	} {
		arguments := map[string]string{
			"files.write_file": `{"path":"x","content":"x"}`, "files.delete_file": `{"path":"a.txt"}`, "shell.shell_exec": `{"command":"touch x"}`,
			"session.ask_user": `{"question":"really?","options":["a","b"]}`, "session.read_result": `{"call_id":"` + regie.NewID().String() + `"}`,
			"session.complete": `{"summary":"x"}`,
		}[tool]
		_, err := b.conn.Workspaces.Query(t.Context(), dispatch.QueryRequest{WorkspaceID: place.ID, Tool: tool, Arguments: []byte(arguments)})
		if code := regie.CodeOf(err); code != want && code != regie.CodeBadArguments || err == nil {
			t.Errorf("%s: %v, want %s", tool, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(b.root, "x")); err == nil {
		t.Error("something was written")
	}
	if _, err := b.conn.Workspaces.Query(t.Context(), dispatch.QueryRequest{WorkspaceID: regie.NewID(), Tool: "files.list_files"}); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("a workspace that is not there: %v", err)
	}
}

// TestSession: a job, its answer, one message more, the list, the transcript, the stop.
func TestSession(t *testing.T) {
	b := newHarness(t)
	session := b.stdio(nil)
	text, data, failed := call(t, session, "start_session", object{"prompt": "say hello", "wait": 30})
	if failed || data["answer"] != "Hello there." || data["end_reason"] != "ANSWERED" || data["state"] != "IDLE" || !strings.Contains(text, "Hello") || strings.Contains(text, "\x1b") {
		t.Fatalf("%v %s %v", failed, text, data)
	}
	id, _ := data["session_id"].(string)
	_, again, failed := call(t, session, "send_message", object{"session_id": id, "text": "and again", "wait": 30})
	if failed || again["round_id"] == data["round_id"] || again["ended"] != true {
		t.Errorf("%v", again)
	}
	if _, list, _ := call(t, session, "list_sessions", object{}); len(items(list["sessions"])) != 1 {
		t.Errorf("the list is %v", list)
	}
	if _, stopped, failed := call(t, session, "stop_session", object{"session_id": id}); failed || stopped["state"] != "CLOSED" {
		t.Errorf("%v", stopped)
	}
}

// TestBadInput: what a client may send that is not meant so.
func TestBadInput(t *testing.T) {
	b := newHarness(t)
	session := b.stdio(nil)
	for name, row := range map[string]struct {
		tool      string
		arguments any
		want      string
	}{
		"no prompt":            {"start_session", object{}, "prompt"},
		"an empty prompt":      {"start_session", object{"prompt": " "}, "(BAD_REQUEST)"},
		"an unknown member":    {"start_session", object{"prompt": "x", "allow": "*"}, "allow"},
		"a policy":             {"start_session", object{"prompt": "x", "policy": object{"allow": []string{"*.*"}}}, "policy"},
		"another workspace":    {"start_session", object{"prompt": "x", "workspace": "/"}, "(BAD_REQUEST)"},
		"an agent that is not": {"start_session", object{"prompt": "x", "agent": "../evil"}, "("},
		"no id":                {"session_status", object{"session_id": "7"}, "(BAD_ID)"},
		"no such session":      {"session_status", object{"session_id": regie.NewID().String()}, "(NOT_FOUND)"},
		"a stop of nothing":    {"stop_session", object{"session_id": regie.NewID().String()}, "(NOT_FOUND)"},
		"a message to nobody":  {"send_message", object{"session_id": regie.NewID().String(), "text": "x"}, "(NOT_FOUND)"},
		"too many sessions":    {"list_sessions", object{"limit": 101}, "(BAD_REQUEST)"},
	} {
		t.Run(name, func(t *testing.T) {
			if text, _, failed := call(t, session, row.tool, row.arguments); !failed || !strings.Contains(text, row.want) {
				t.Errorf("failed: %v, %q; want %q", failed, text, row.want)
			}
		})
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "answer_approval", Arguments: object{}}); err == nil {
		t.Error("approvals can be answered although nobody said so")
	}
}

// TestConfined: a server of one workspace knows nothing of another's sessions (spec 2.1); one of
// none has the workspace named.
func TestConfined(t *testing.T) {
	b := newHarness(t)
	elsewhere := filepath.Join(filepath.Dir(b.root), "elsewhere", ".regie")
	if err := os.MkdirAll(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	other, err := b.conn.Workspaces.Open(t.Context(), dispatch.WorkspaceRequest{Path: filepath.Dir(elsewhere)})
	if err != nil {
		t.Fatal(err)
	}
	made, err := b.conn.NewSession(t.Context(), dispatch.SessionRequest{WorkspaceID: other.ID})
	if err != nil {
		t.Fatal(err)
	}
	session := b.stdio(nil)
	if text, _, failed := call(t, session, "session_status", object{"session_id": made.ID.String()}); !failed || !strings.Contains(text, "(NOT_FOUND)") {
		t.Errorf("%s", text)
	}
	if text, _, failed := call(t, session, "files__list_files", object{}); failed { // which makes it known
		t.Error(text)
	}
	b.config.Request = dispatch.RunRequest{}
	wide := b.http(nil)
	if text, _, failed := call(t, wide, "files__list_files", object{}); !failed || !strings.Contains(text, "list_workspaces") {
		t.Errorf("%v %s", failed, text)
	}
	if _, known, _ := call(t, wide, "list_workspaces", object{}); len(items(known["workspaces"])) != 2 {
		t.Errorf("known are %v", known)
	}
	for _, named := range []string{b.root, "place"} {
		if text, _, failed := call(t, wide, "files__list_files", object{"workspace": named}); failed || !strings.Contains(text, "a.txt") {
			t.Errorf("%s: %s", named, text)
		}
	}
	if text, _, failed := call(t, wide, "files__list_files", object{"workspace": "/"}); !failed || !strings.Contains(text, "(NOT_FOUND)") {
		t.Errorf("a directory that is no workspace: %s", text)
	}
	if _, status, failed := call(t, wide, "start_session", object{"prompt": "hi", "workspace": other.ID.String(), "wait": 30}); failed || status["answer"] != "Hello there." {
		t.Errorf("%v", status)
	}
}

// TestApprovalIsAPersons: a client cannot decide; a person does, elsewhere, while it waits.
func TestApprovalIsAPersons(t *testing.T) {
	b := newHarness(t, writes(), providertest.Scene{Text: []string{"Written."}})
	session := b.stdio(nil)
	text, data, failed := call(t, session, "start_session", object{"prompt": "write it", "wait": 30})
	if failed || data["state"] != "WAITING_VALIDATION" || !strings.Contains(text, "+one") {
		t.Fatalf("%s %v", text, data)
	}
	inbox, err := b.conn.Inbox(t.Context(), store.InboxFilter{})
	if err != nil || len(inbox.Approvals) != 1 {
		t.Fatalf("%v %v", inbox, err)
	}
	if _, err := b.conn.Decide(t.Context(), dispatch.DecideRequest{
		ApprovalID: inbox.Approvals[0].ID, Request: "x", Decisions: []regie.Decision{{CallID: inbox.Approvals[0].Reviews[0].CallID, Answer: regie.AnswerAllow}},
	}); err != nil {
		t.Fatal(err)
	}
	if _, data, _ = call(t, session, "session_status", object{"session_id": data["session_id"], "wait": 30}); data["answer"] != "Written." {
		t.Errorf("%v", data)
	}
	if _, err := os.Stat(filepath.Join(b.root, "new.txt")); err != nil {
		t.Error(err)
	}
}

// TestAllowed: where the owner has said so the client decides, once each.
func TestAllowed(t *testing.T) {
	for decision, want := range map[string]string{"allow": "SUCCEEDED", "deny": "NOT_RUN"} {
		t.Run(decision, func(t *testing.T) {
			b := newHarness(t, writes(), providertest.Scene{Text: []string{"So be it."}})
			b.config.AllowApprovals = true
			session := b.http(nil)
			_, data, _ := call(t, session, "start_session", object{"prompt": "write it", "wait": 30})
			asked := first(data["waits_for"])
			answer := object{"approval_id": asked["id"], "decisions": []any{object{"call_id": first(asked["calls"])["call_id"], "decision": decision, "reason": "because"}}}
			if decision == "allow" {
				delete(first(answer["decisions"]), "reason")
				always := object{"approval_id": asked["id"], "decisions": []any{object{"call_id": first(asked["calls"])["call_id"], "decision": "allow_always"}}}
				if text, _, failed := call(t, session, "answer_approval", always); !failed || !strings.Contains(text, "(BAD_REQUEST)") {
					t.Errorf("a standing rule was made: %s", text)
				}
			}
			if text, _, failed := call(t, session, "answer_approval", answer); failed {
				t.Fatal(text)
			}
			_, data, _ = call(t, session, "session_status", object{"session_id": data["session_id"], "wait": 30})
			if data["ended"] != true || data["answer"] != "So be it." {
				t.Errorf("%v", data)
			}
			text, _ := data["round_id"].(string)
			id, _ := regie.ParseID(text)
			view, err := b.conn.Get(t.Context(), id)
			if err != nil || string(view.Exchanges[0].Calls[0].State) != want {
				t.Errorf("%v %+v", err, view.Exchanges[0].Calls)
			}
			if text, _, failed := call(t, session, "answer_approval", answer); !failed {
				t.Errorf("it was decided twice: %s", text)
			}
		})
	}
}

// TestElicitation: the person at the client's end decides, and the audit says through whom.
func TestElicitation(t *testing.T) {
	for decision, want := range map[string]string{"allow": "SUCCEEDED", "deny": "NOT_RUN", "decline": ""} {
		t.Run(decision, func(t *testing.T) {
			b := newHarness(t, writes(), providertest.Scene{Text: []string{"So be it."}})
			b.config.Elicit = true
			var message string
			session := old(t, b, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				message = request.Params.Message
				if decision == "decline" {
					return &mcp.ElicitResult{Action: "decline"}, nil
				}
				return &mcp.ElicitResult{Action: "accept", Content: object{"decision": decision, "reason": "not today"}}, nil
			}})
			_, data, failed := call(t, session, "start_session", object{"prompt": "write it", "wait": 30})
			if failed || !strings.Contains(message, "+one") {
				t.Fatalf("%v, asked was %q", data, message)
			}
			if decision == "decline" {
				if data["state"] != "WAITING_VALIDATION" {
					t.Errorf("what was left open is %v", data)
				}
				return
			}
			text, _ := data["round_id"].(string)
			id, _ := regie.ParseID(text)
			view, err := b.conn.Get(t.Context(), id)
			if err != nil || data["answer"] != "So be it." || string(view.Exchanges[0].Calls[0].State) != want {
				t.Fatalf("%v %v %+v", err, data, view.Exchanges[0].Calls)
			}
			inbox, err := b.conn.Inbox(t.Context(), store.InboxFilter{SessionID: view.Session.ID, Closed: true})
			if err != nil || inbox.Approvals[0].Reviews[0].Decision.By != "mcp:tester" {
				t.Errorf("%v %+v", err, inbox)
			}
		})
	}
}

// TestCancelled: who stops waiting stops nothing; progress is told to who asks for it.
func TestCancelled(t *testing.T) {
	b := newHarness(t, writes(), providertest.Scene{Text: []string{"Done."}, Pause: 20 * time.Millisecond})
	told := make(chan string, 100)
	session := old(t, b, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
		told <- request.Params.Message
	}})
	b.config.Request.Policy.Allow = nil
	ctx, cancel := context.WithCancel(t.Context())
	params := &mcp.CallToolParams{Name: "start_session", Arguments: object{"prompt": "write it", "wait": 600}}
	params.SetProgressToken("p")
	done := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, params)
		done <- err
	}()
	select {
	case <-told:
	case err := <-done: // the run stood before the call looked at it
		done <- err
	}
	cancel()
	if err := <-done; err != nil { // whatever noticed first
		t.Logf("the call ended with %v", err)
	}
	for { // until it has come to where it waits by itself
		inbox, err := b.conn.Inbox(t.Context(), store.InboxFilter{})
		if err != nil {
			t.Fatal(err)
		}
		if len(inbox.Approvals) == 1 {
			return
		}
	}
}

// items is a list of an answer, and first what it begins with; what is none is empty.
func items(v any) []any {
	list, _ := v.([]any)
	return list
}

func first(v any) object {
	list := items(v)
	if len(list) == 0 {
		return nil
	}
	o, _ := list[0].(object)
	return o
}
