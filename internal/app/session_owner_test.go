package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// with makes a token and returns what shows it.
func (h *house) with(name string, scopes ...regie.TokenScope) (control.MadeToken, func(*http.Request)) {
	h.t.Helper()
	made := h.add(control.TokenRequest{Name: name, Scopes: scopes})
	return made, bearer(made.Secret)
}

// said asks, and returns the answer's status and body.
func (h *house) said(method, path, body string, changes ...func(*http.Request)) (int, string) {
	h.t.Helper()
	response := h.ask(method, path, body, changes...)
	defer response.Body.Close()
	data, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(data)
}

// begins has a token begin a session over /v1, and returns the response with that session's id.
func (h *house) begins(as func(*http.Request)) (response, session string) {
	h.t.Helper()
	var out struct {
		ID       string
		Metadata map[string]string
	}
	h.json("POST", "/v1/responses", `{"model":"main","input":"Hello"}`, 200, &out, as)
	return out.ID, out.Metadata["session_id"]
}

// TestCompletionsOwnSessions: a session of /v1 is of the token that began it. To another one it is
// as if not there, but for what the scopes of that open: speaking in it needs chat, reading read,
// removing admin.
func TestCompletionsOwnSessions(t *testing.T) {
	h := newHarness(t, newModel(t, replyWith("Hello."), replyWith("Still here."), replyWith("Chatting."), replyWith("A fork."))).serve("127.0.0.1:0")
	first, one := h.with("one", regie.ScopeCompletions)
	_, two := h.with("two", regie.ScopeCompletions)
	_, reader := h.with("reader", regie.ScopeCompletions, regie.ScopeRead)
	_, chatter := h.with("chatter", regie.ScopeCompletions, regie.ScopeChat)
	_, admin := h.with("admin", regie.ScopeCompletions, regie.ScopeAdmin)
	response, session := h.begins(one)
	nowhere := regie.NewID().String()
	speak := func(session string, as func(*http.Request)) []string {
		var out []string
		for path, body := range map[string]string{
			"/v1/chat/completions": `{"model":"main","messages":[{"role":"user","content":"x"}]}`,
			"/v1/messages":         `{"model":"main","max_tokens":100,"messages":[{"role":"user","content":"x"}]}`,
			"/v1/responses":        `{"model":"main","input":"x"}`,
		} {
			status, body := h.said("POST", path, body, carrying("X-Regie-Session", session), as)
			if status != 404 {
				t.Errorf("%s in a session of somebody else: %d %s", path, status, body)
			}
			out = append(out, path+strings.ReplaceAll(body, session, "ID"))
		}
		return out
	}
	for _, as := range []func(*http.Request){two, reader, admin} {
		got, want := map[string]bool{}, speak(nowhere, as)
		for _, answer := range speak(session, as) {
			got[answer] = true
		}
		for _, answer := range want {
			if !got[answer] {
				t.Errorf("one that is nowhere is answered otherwise: %s, not %v", answer, got)
			}
		}
		h.json("POST", "/v1/responses", `{"model":"main","input":"x","previous_response_id":"`+response+`"}`, 404, nil, as)
		h.json("POST", "/v1/chat/completions", `{"model":"main","metadata":{"session_id":"`+session+`"},"messages":[{"role":"user","content":"x"}]}`, 404, nil, as)
	}
	for _, c := range []struct {
		method string
		as     func(*http.Request)
		want   int
	}{
		{"GET", two, 404},
		{"DELETE", two, 404},
		{"GET", chatter, 404},
		{"DELETE", chatter, 404},
		{"DELETE", reader, 404},
		{"GET", admin, 404},
		{"GET", reader, 200},
		{"GET", one, 200},
	} {
		if status, body := h.said(c.method, "/v1/responses/"+response, "", c.as); status != c.want {
			t.Errorf("%s: %d %s, want %d", c.method, status, body, c.want)
		}
	}
	h.json("POST", "/v1/responses", `{"model":"main","input":"x","previous_response_id":"`+response+`"}`, 200, nil, one)
	h.json("POST", "/v1/chat/completions", `{"model":"main","messages":[{"role":"user","content":"x"}]}`, 200, nil, chatter, carrying("X-Regie-Session", session))
	if view := h.view(session); view.TokenID != first.Token.ID || view.Thread[0].Message.Author.TokenID != first.Token.ID {
		t.Errorf("it is of %s, its first message of %s", view.TokenID, view.Thread[0].Message.Author.TokenID)
	}
	// Whoever forks what they may read has the fork: that of one's own is one's own, and that which
	// somebody else made of it is not.
	both, forker := h.with("forker", regie.ScopeCompletions, regie.ScopeChat, regie.ScopeRead)
	var mine, owners store.Forked
	h.json("POST", "/api/v1/sessions/"+session+"/fork", "{}", 201, &mine, forker)
	h.json("POST", "/api/v1/sessions/"+session+"/fork", "{}", 201, &owners)
	if mine.Session.TokenID != both.Token.ID || !owners.Session.TokenID.IsZero() || h.view(mine.Session.ID.String()).TokenID != both.Token.ID {
		t.Errorf("the forks are of %s and %s", mine.Session.TokenID, owners.Session.TokenID)
	}
	speak(mine.Session.ID.String(), one)
	speak(owners.Session.ID.String(), one)
	h.json("POST", "/v1/chat/completions", `{"model":"main","messages":[{"role":"user","content":"x"}]}`, 200, nil, forker, carrying("X-Regie-Session", mine.Session.ID.String()))
	h.json("DELETE", "/v1/responses/"+response, "", 200, nil, admin)
	h.json("GET", "/v1/responses/"+response, "", 404, nil, one)
}

// TestCompletionsForgetTheirOwn: a token with completions alone removes what it began.
func TestCompletionsForgetTheirOwn(t *testing.T) {
	h := newHarness(t, newModel(t, replyWith("Hello."))).serve("127.0.0.1:0")
	_, one := h.with("one", regie.ScopeCompletions)
	response, session := h.begins(one)
	h.json("DELETE", "/v1/responses/"+response, "", 200, nil, one)
	h.json("GET", "/api/v1/sessions/"+session, "", 404, nil)
}

// TestCompletionsCallsOfAnother: who brings the history of another token's session, with the
// results of its calls, begins a session of its own.
func TestCompletionsCallsOfAnother(t *testing.T) {
	h := newHarness(t, newModel(t, replyWith("", call{"w", "client__get_weather", `{"place":"Lyon"}`}), replyWith("Sunny."))).serve("127.0.0.1:0")
	_, one := h.with("one", regie.ScopeCompletions)
	_, two := h.with("two", regie.ScopeCompletions)
	tools, _ := json.Marshal(weather)
	begun := h.ask("POST", "/v1/chat/completions", `{"model":"main","tools":`+string(tools)+`,"messages":[{"role":"user","content":"x"}]}`, one) //nolint:bodyclose // closed by ask
	var asked answered
	if err := json.NewDecoder(begun.Body).Decode(&asked); err != nil || len(asked.Choices) != 1 || len(asked.Choices[0].Message.ToolCalls) != 1 {
		t.Fatalf("%+v, %v", asked, err)
	}
	calls, _ := json.Marshal(asked.Choices[0].Message.ToolCalls)
	body := `{"model":"main","tools":` + string(tools) + `,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":` + string(calls) +
		`},{"role":"tool","tool_call_id":"` + asked.Choices[0].Message.ToolCalls[0].ID + `","content":"forged"}]}`
	there := h.ask("POST", "/v1/chat/completions", body, two) //nolint:bodyclose // the helper closes it
	if to := there.Header.Get("X-Regie-Session"); there.StatusCode != 200 || to == begun.Header.Get("X-Regie-Session") {
		t.Errorf("%d in %s", there.StatusCode, to)
	}
	if view := h.view(begun.Header.Get("X-Regie-Session")); len(view.History) != 1 || len(view.Thread) != 2 {
		t.Errorf("the other's session went on: %d rounds, %d messages", len(view.History), len(view.Thread))
	}
}

// TestStopGivesBackOnesOwn: to who may not read, a stop gives back what they said themselves.
func TestStopGivesBackOnesOwn(t *testing.T) {
	first := hold(replyWith("Never."))
	h := newHarness(t, newModel(t, first.serve(0))).serve("127.0.0.1:0")
	_, chatter := h.with("chatter", regie.ScopeChat)
	path := "/api/v1/sessions/" + h.session()
	h.json("POST", path+"/messages", `{"content":"the owner's question"}`, 202, nil)
	<-first.asked
	h.json("POST", path+"/messages", `{"content":"the owner's second"}`, 202, nil)
	h.json("POST", path+"/messages", `{"content":"mine"}`, 202, nil, chatter)
	var own, all dispatch.Stopped
	h.json("POST", path+"/stop", "", 200, &own, chatter)
	h.json("POST", path+"/stop", "", 200, &all)
	if len(own.Withdrawn) != 1 || own.Withdrawn[0].Text != "mine" || len(all.Withdrawn) != 2 {
		t.Errorf("the token gets %+v back, the owner %+v", own.Withdrawn, all.Withdrawn)
	}
}

// TestSessionIDTaken: who names the id of a session that is there for another one gets neither of
// them.
func TestSessionIDTaken(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	place, path := h.placeAt(h.root), strconv.Quote(h.root)
	_, chatter := h.with("chatter", regie.ScopeChat)
	_, reader := h.with("reader", regie.ScopeRead)
	_, metrics := h.with("metrics", regie.ScopeMetrics)
	body := func(id string, more string) string {
		return `{"workspace_id":"` + place.ID.String() + `","session_id":"` + id + `"` + more + `}`
	}
	var owners, theirs regie.Session
	h.json("POST", "/api/v1/sessions", body(regie.NewID().String(), `,"name":"secret"`), 201, &owners)
	h.json("POST", "/api/v1/sessions", body(owners.ID.String(), `,"name":"secret"`), 201, nil) // said again
	h.json("POST", "/api/v1/sessions", body(regie.NewID().String(), ""), 201, &theirs, chatter)
	h.json("POST", "/api/v1/sessions", body(theirs.ID.String(), ""), 201, nil, chatter)
	for name, c := range map[string]struct {
		body string
		as   func(*http.Request)
	}{
		"somebody else's":         {body(owners.ID.String(), ""), chatter},
		"one of another type":     {body(theirs.ID.String(), `,"type":"AUTOMATION"`), chatter},
		"one with other guards":   {body(theirs.ID.String(), `,"require_validation":true`), chatter},
		"one of the owner's type": {body(owners.ID.String(), `,"type":"AUTOMATION"`), bearer(h.token)},
	} {
		if status, said := h.said("POST", "/api/v1/sessions", c.body, c.as); status != 409 || !strings.Contains(said, "CONFLICT") || strings.Contains(said, "secret") {
			t.Errorf("%s: %d %s", name, status, said)
		}
	}
	h.json("PUT", "/api/v1/sessions/"+owners.ID.String()+"/read", `{"read_seq":-1}`, 400, nil)
	h.json("POST", "/api/v1/workspaces", `{"path":`+path+`}`, 200, nil, reader) // to look at
	h.json("POST", "/api/v1/workspaces", `{"path":`+path+`}`, 403, nil, metrics)
}

// mcpSession is a client of /mcp with a token, in a protocol, or the newest.
func (h *house) mcpSession(secret, protocol string) *sdk.ClientSession {
	h.t.Helper()
	way := &sdk.StreamableClientTransport{Endpoint: h.served.URL + "/mcp", HTTPClient: &http.Client{Transport: shows(secret)}}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, nil).Connect(h.t.Context(), way, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
	fatal(h.t, err)
	h.t.Cleanup(func() { _ = session.Close() })
	return session
}

// mcp is such a client as a function that calls a tool.
func (h *house) mcp(secret string) func(tool string, arguments any) (string, bool) {
	h.t.Helper()
	return calls(h.t, h.mcpSession(secret, ""))
}

func calls(t *testing.T, session *sdk.ClientSession) func(tool string, arguments any) (string, bool) {
	t.Helper()
	return func(tool string, arguments any) (string, bool) {
		t.Helper()
		out, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
		fatal(t, err)
		data, _ := json.Marshal(out)
		return string(data), out.IsError
	}
}

// TestMCPOwnSessions: to a token with mcp alone a session that it did not begin is as if not there;
// speaking in it and stopping it needs chat, reading read.
func TestMCPOwnSessions(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("A secret."), replyWith("Mine."))).serve("127.0.0.1:0")
	theirs := h.session()
	h.read("POST", "/api/v1/sessions/"+theirs+"/messages", `{"content":"hi"}`, nil, carrying("Accept", "text/event-stream"))
	alone, _ := h.with("alone", regie.ScopeMCP)
	reader, _ := h.with("reader", regie.ScopeMCP, regie.ScopeRead)
	chatter, _ := h.with("chatter", regie.ScopeMCP, regie.ScopeChat)
	call, read, chat := h.mcp(alone.Secret), h.mcp(reader.Secret), h.mcp(chatter.Secret)
	of, speak := map[string]any{"session_id": theirs}, map[string]any{"session_id": theirs, "text": "hello?"}
	for tool, arguments := range map[string]any{"session_status": of, "send_message": speak, "stop_session": of} {
		if said, failed := call(tool, arguments); !failed || !strings.Contains(said, "NOT_FOUND") {
			t.Errorf("%s with mcp alone: %s", tool, said)
		}
	}
	if said, failed := read("session_status", of); failed || !strings.Contains(said, "A secret.") {
		t.Errorf("to who may read: %s", said)
	}
	for _, tool := range []string{"send_message", "stop_session"} {
		if said, failed := read(tool, speak); !failed {
			t.Errorf("%s to who may read: %s", tool, said)
		}
	}
	if said, failed := chat("session_status", of); !failed || strings.Contains(said, "secret") {
		t.Errorf("to who may chat: %s", said)
	}
	said, failed := call("start_session", map[string]any{"prompt": "begin", "wait": 30})
	if failed || !strings.Contains(said, `"answer":"A secret."`) { // of its own session
		t.Fatal(said)
	}
	if said, failed := call("list_sessions", map[string]any{}); failed || strings.Contains(said, theirs) || strings.Count(said, "begin") == 0 {
		t.Errorf("it lists %s", said)
	}
	if said, failed := read("list_sessions", map[string]any{}); failed || !strings.Contains(said, theirs) || !strings.Contains(said, "begin") {
		t.Errorf("to who may read it lists %s", said)
	}
	if said, failed := chat("send_message", map[string]any{"session_id": theirs, "text": "more", "wait": 30}); failed || strings.Contains(said, "secret") {
		t.Errorf("to who may chat: %s", said)
	}
}

// TestMCPSessionOfAnother: an MCP session is its caller's: to another token, which knows its id, it
// is as one that is not there.
func TestMCPSessionOfAnother(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	_, one := h.with("one", regie.ScopeMCP)
	_, two := h.with("two", regie.ScopeMCP)
	speaks := func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	begun := h.ask("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, one, speaks)
	id := begun.Header.Get("Mcp-Session-Id")
	_ = begun.Body.Close()
	if begun.StatusCode != http.StatusOK || id == "" {
		t.Fatalf("%d %v", begun.StatusCode, begun.Header)
	}
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	if status, said := h.said("POST", "/mcp", ping, one, speaks, carrying("Mcp-Session-Id", id)); status != 200 {
		t.Errorf("to its own: %d %s", status, said)
	}
	_, mine := h.said("POST", "/mcp", ping, one, speaks, carrying("Mcp-Session-Id", "nobody"))
	status, said := h.said("POST", "/mcp", ping, two, speaks, carrying("Mcp-Session-Id", id))
	if status != 404 || said != mine || !strings.Contains(said, "NOT_FOUND") || !json.Valid([]byte(said)) {
		t.Errorf("to another: %d %q, where there is none %q", status, said, mine)
	}
}
