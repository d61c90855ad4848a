package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpapi"
	"github.com/regie-run/regie/internal/store"
)

// TestForkOfAnothersSession: what a token may not read it may not copy. To one without read a
// session that it did not begin is not there for a fork, its own is; and a fork of its own under an
// id that somebody else's has is refused.
func TestForkOfAnothersSession(t *testing.T) {
	t.Parallel()
	h := newBed(t, newModel(t, says("A secret answer."), says("Mine."), says("Theirs."))).serve("127.0.0.1:0")
	theirs := h.session()
	h.read("POST", "/api/v1/sessions/"+theirs+"/messages", `{"content":"a secret question"}`, nil, carrying("Accept", "text/event-stream"))
	_, chatter := h.with("chatter", regie.ScopeChat)
	both, mcp := h.with("both", regie.ScopeChat, regie.ScopeMCP)
	_, reader := h.with("reader", regie.ScopeChat, regie.ScopeRead)
	for name, as := range map[string]func(*http.Request){"chat": chatter, "chat and mcp": mcp} {
		for what, body := range map[string]string{"all": `{}`, "under a name": `{"name":"x"}`, "under an id": `{"session_id":"` + regie.NewID().String() + `"}`} {
			status, said := h.said("POST", "/api/v1/sessions/"+theirs+"/fork", body, as)
			if status != 404 || !strings.Contains(said, "NOT_FOUND") || strings.Contains(said, "secret") {
				t.Errorf("%s forks %s: %d %s", name, what, status, said)
			}
		}
	}
	call := h.mcp(both.Secret)
	if said, failed := call("list_sessions", map[string]any{}); failed || strings.Contains(said, "secret") || !strings.Contains(said, `"sessions":[]`) {
		t.Errorf("it has %s", said)
	}
	h.json("POST", "/api/v1/sessions/"+theirs+"/fork", `{}`, 201, nil, reader)
	h.json("POST", "/api/v1/sessions/"+theirs+"/fork", `{}`, 201, nil)

	said, failed := call("start_session", map[string]any{"prompt": "begin", "wait": 30})
	if failed {
		t.Fatal(said)
	}
	_, own, _ := strings.Cut(said, `"session_id":"`)
	own, _, _ = strings.Cut(own, `"`)
	h.json("POST", "/api/v1/sessions/"+own+"/fork", `{}`, 201, nil, mcp)
	var others store.Forked
	h.json("POST", "/api/v1/sessions/"+own+"/fork", `{"name":"a secret way"}`, 201, &others)
	if status, said := h.said("POST", "/api/v1/sessions/"+own+"/fork", `{"session_id":"`+others.Session.ID.String()+`"}`, mcp); status != 409 || strings.Contains(said, "secret") {
		t.Errorf("a fork under the id of somebody else's: %d %s", status, said)
	}
}

// TestChatAloneIsToldNoNames: who may speak in a session that they may not read is not told over
// MCP what was said there: its name, which is its first message, among that.
func TestChatAloneIsToldNoNames(t *testing.T) {
	t.Parallel()
	h := newBed(t, newModel(t, says("A secret answer."), says("", call{"w", "files__write_file", `{"path":"secret.txt","content":"one\n"}`}), says("On."))).serve("127.0.0.1:0")
	theirs := h.session()
	h.read("POST", "/api/v1/sessions/"+theirs+"/messages", `{"content":"a secret question"}`, nil, carrying("Accept", "text/event-stream"))
	chatter, _ := h.with("chatter", regie.ScopeMCP, regie.ScopeChat)
	reader, _ := h.with("reader", regie.ScopeMCP, regie.ScopeChat, regie.ScopeRead)
	speak := map[string]any{"session_id": theirs, "text": "more", "wait": 30}
	if said, failed := h.mcp(chatter.Secret)("send_message", speak); failed || strings.Contains(said, "secret") {
		t.Errorf("to who may chat: %s", said)
	}
	if said, failed := h.mcp(reader.Secret)("session_status", map[string]any{"session_id": theirs}); failed || !strings.Contains(said, "a secret question") || !strings.Contains(said, "secret.txt") {
		t.Errorf("to who may read: %s", said)
	}
	if said, failed := h.mcp(chatter.Secret)("stop_session", map[string]any{"session_id": theirs}); failed || strings.Contains(said, "secret") {
		t.Errorf("once it is stopped: %s", said)
	}
}

// TestUndoTellsNoOthersWork: to who may undo what they may not read, the answer says that it was
// done, not what the session's agent had made.
func TestUndoTellsNoOthersWork(t *testing.T) {
	t.Parallel()
	h := newBed(t, newModel(t, says("", call{"w", "files__write_file", `{"path":"secret.txt","content":"one\n"}`}), says("On."))).serve("127.0.0.1:0")
	_, chatter := h.with("chatter", regie.ScopeChat)
	reader, _ := h.with("reader", regie.ScopeMCP, regie.ScopeChat, regie.ScopeRead)
	call, theirs := h.mcp(reader.Secret), h.session()
	said, failed := call("send_message", map[string]any{"session_id": theirs, "text": "begin", "wait": 30})
	if failed {
		t.Fatal(said)
	}
	var inbox store.Inbox
	h.json("GET", "/api/v1/inbox?session="+theirs, "", 200, &inbox)
	if len(inbox.Approvals) != 1 {
		t.Fatalf("the inbox is %+v", inbox)
	}
	a := &inbox.Approvals[0]
	h.json("POST", "/api/v1/approvals/"+a.ID.String(), `{"request_id":"x","by":"x","decisions":[{"call_id":"`+a.Reviews[0].CallID.String()+`","decision":"allow"}]}`, 200, nil)
	if said, failed = call("session_status", map[string]any{"session_id": theirs, "wait": 30}); failed || !strings.Contains(said, `"ended":true`) {
		t.Fatal(said)
	}
	secret := filepath.Join(h.root, "secret.txt")
	fatal(t, os.WriteFile(secret, []byte("two\n"), 0o600))
	for name, where := range map[string][2]string{
		"its session": {"/api/v1/sessions/" + theirs + "/undo", `{}`},
		"its run":     {"/api/v1/undos", `{"target":"` + a.RoundID.String() + `"}`},
	} {
		for who, as := range map[string]func(*http.Request){"chatter": chatter, "owner": func(*http.Request) {}} {
			status, refused := h.said("POST", where[0], where[1], as)
			if status != http.StatusConflict || !strings.Contains(refused, string(regie.CodeUndoConflict)) || strings.Contains(refused, "secret.txt") != (who == "owner") {
				t.Errorf("to the %s, who names %s: %d %s", who, name, status, refused)
			}
		}
	}
	fatal(t, os.WriteFile(secret, []byte("one\n"), 0o600))
	var undo regie.Undo
	h.json("POST", "/api/v1/sessions/"+theirs+"/undo", `{}`, 200, &undo, chatter)
	if undo.State != regie.UndoDone || len(undo.Files)+len(undo.Makes)+len(undo.Removes)+len(undo.Effects) != 0 {
		t.Errorf("to who may not read: %+v", undo)
	}
	h.json("POST", "/api/v1/undos", `{"target":"`+undo.ID.String()+`"}`, 200, &undo)
	if len(undo.Files) != 1 {
		t.Errorf("to the owner: %+v", undo)
	}
	if status, planned := h.said("POST", "/api/v1/undos/plan", `{"target":"`+undo.ID.String()+`"}`, chatter); status != http.StatusForbidden || strings.Contains(planned, "secret") {
		t.Errorf("what would be undone: %d %s", status, planned)
	}
}

// TestUndoTellsOnesOwnWork: who may not read what others began is told of a session of its own
// which file is in the way, however it is named.
func TestUndoTellsOnesOwnWork(t *testing.T) {
	t.Parallel()
	h := newBed(t, newModel(t, says("", call{"w", "files__write_file", `{"path":"mine.txt","content":"one\n"}`}), says("Done."))).serve("127.0.0.1:0")
	_, chatter := h.with("chatter", regie.ScopeChat)
	session := regie.NewID().String()
	var sent httpapi.Accepted
	h.json("POST", "/api/v1/sessions", `{"session_id":"`+session+`","workspace_id":"`+h.placeAt(h.root).ID.String()+`"}`, 201, nil, chatter)
	h.json("POST", "/api/v1/sessions/"+session+"/messages", `{"content":"begin"}`, 202, &sent, chatter)
	conn := h.connect()
	id, err := regie.ParseID(session)
	fatal(t, err)
	asked := h.parked(conn, id).Approvals[0]
	h.decide(conn, asked, allow(asked.Reviews[0]))
	fatal(t, h.engine.Wait(t.Context(), sent.RoundID))
	fatal(t, os.WriteFile(filepath.Join(h.root, "mine.txt"), []byte("two\n"), 0o600))
	for where, body := range map[string]string{"/api/v1/sessions/" + session + "/undo": `{}`, "/api/v1/undos": `{"target":"` + sent.RoundID.String() + `"}`} {
		if status, refused := h.said("POST", where, body, chatter); status != http.StatusConflict || !strings.Contains(refused, "mine.txt") {
			t.Errorf("%s: %d %s", where, status, refused)
		}
	}
}
