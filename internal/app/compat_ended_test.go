package app_test

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
)

// endedCases are requests whose token ends while they are answered.
var endedCases = []struct {
	path, body string
	streams    bool
	want       string
}{
	{passChat, `{"model":"MODEL","messages":[{"role":"user","content":"hi"}]}`, false, `"code":"TOKEN_ENDED"`},
	{passChat, `{"model":"MODEL","messages":[{"role":"user","content":"hi"}],"stream":true}`, true, `"message":"the token was revoked`},
	{"/v1/responses", `{"model":"MODEL","input":"hi"}`, false, `"code":"TOKEN_ENDED"`},
	{"/v1/responses", `{"model":"MODEL","input":"hi","stream":true}`, true, `"message":"the token was revoked`},
	{passMessages, `{"model":"MODEL","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, false, `"type":"authentication_error"`},
	{passMessages, `{"model":"MODEL","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"stream":true}`, true, "event: error\ndata: {\"error\":{\"details\":{\"error_code\":\"TOKEN_ENDED\""},
}

// ends asks with a token of its own, ends that once ready, and reads what the client is told: of a
// stream its beginning first.
func (h *house) ends(path, body string, streams bool, ready <-chan struct{}, changes ...func(*http.Request)) (status int, text string) {
	h.t.Helper()
	made := h.add(control.TokenRequest{Name: "x", Scopes: []regie.TokenScope{regie.ScopeCompletions}})
	type said struct {
		status int
		text   string
	}
	heard, first := make(chan said, 1), make(chan struct{})
	go func() {
		response := h.ask(http.MethodPost, path, body, append(changes, bearer(made.Secret))...)
		defer response.Body.Close()
		in, begun := bufio.NewReader(response.Body), ""
		if response.StatusCode == http.StatusOK && streams {
			begun, _ = in.ReadString('\n') // what is cut is seen by the rest
			close(first)
		}
		rest, err := io.ReadAll(in)
		if err != nil {
			h.t.Errorf("%s is cut: %v", path, err)
		}
		heard <- said{response.StatusCode, begun + string(rest)}
	}()
	select {
	case <-ready:
	case early := <-heard:
		h.t.Fatalf("%s is answered %d %s", path, early.status, early.text)
	}
	if streams {
		<-first
	}
	h.json(http.MethodDelete, "/api/v1/tokens/"+made.Token.ID.String(), "", 200, nil)
	out := <-heard
	return out.status, out.text
}

// TestPassedOnEnded: who is passed on and has no token any more is told so at once.
func TestPassedOnEnded(t *testing.T) {
	began := make(chan struct{}, 1)
	v := newVendor(t, func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
	})
	h := passingHouse(t, v, nil)
	for calls, path := range []string{passChat, passMessages} {
		model := map[string]string{passChat: "far/x", passMessages: "near/x"}[path]
		got, text := h.ends(path, `{"model":"`+model+`","max_tokens":9,"messages":[]}`, false, began)
		if got != http.StatusUnauthorized || !strings.Contains(text, "TOKEN_ENDED") {
			t.Errorf("%s: %d %s", path, got, text)
		}
		logged, err := h.engine.Proxied(t.Context(), calls+1)
		if err != nil || logged[0].Code != regie.CodeStopRequested {
			t.Fatalf("%s: logged as %+v %v", path, logged, err)
		}
	}
}

// halfway is a model that says something and then no more, until on closes.
func halfway(began chan<- struct{}, on <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, map[string]any{"content": "Half"})
		began <- struct{}{}
		select {
		case <-on:
			replyWith(" whole")(w, r)
		case <-r.Context().Done():
		}
	}
}

// TestAgentEnded: who waits for an agent and has no token any more is told so in the API's form.
func TestAgentEnded(t *testing.T) {
	began, on := make(chan struct{}, 1), make(chan struct{})
	defer close(on)
	h := newHarness(t, newModel(t, slices.Repeat([]http.HandlerFunc{halfway(began, on)}, len(endedCases))...)).serve("127.0.0.1:0")
	for _, c := range endedCases {
		want := map[bool]int{false: http.StatusUnauthorized, true: http.StatusOK}[c.streams]
		status, text := h.ends(c.path, strings.Replace(c.body, "MODEL", "main", 1), c.streams, began)
		if status != want || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s", c.body, status, text)
		}
	}
}

// TestMCPEnded: a call whose token ends while it waits ends, by either protocol.
func TestMCPEnded(t *testing.T) {
	began, on := make(chan struct{}, 1), make(chan struct{})
	defer close(on)
	h := newHarness(t, newModel(t, slices.Repeat([]http.HandlerFunc{halfway(began, on)}, 2)...)).serve("127.0.0.1:0")
	place := h.placeAt(t.TempDir())
	for _, protocol := range []string{"", "2025-11-25"} {
		made := h.add(control.TokenRequest{Name: "mcp", Scopes: []regie.TokenScope{regie.ScopeMCP}})
		session := h.mcpSession(made.Secret, protocol)
		ended := make(chan error, 1)
		go func() {
			_, err := session.CallTool(t.Context(), &sdk.CallToolParams{
				Name: "start_session", Arguments: map[string]any{"prompt": "hi", "workspace": place.ID.String(), "wait": 600},
			})
			ended <- err
		}()
		<-began
		h.json(http.MethodDelete, "/api/v1/tokens/"+made.Token.ID.String(), "", 200, nil)
		if err := <-ended; err == nil {
			t.Errorf("by protocol %q it is told %v", protocol, err)
		}
	}
}

// TestKeyReplays: an answer of an agent that is told again says so, and what is no key is refused.
func TestKeyReplays(t *testing.T) {
	h := newHarness(t, newModel(t, replyWith("Hello."))).serve("127.0.0.1:0")
	const agent = `{"model":"main","messages":[{"role":"user","content":"hi"}]}`
	for again := range 2 {
		if status, text, of := h.keyed(passChat, "k", agent); status != http.StatusOK || (of.Get("Idempotent-Replayed") == "true") != (again > 0) {
			t.Errorf("%d: %d %s %v", again, status, text, of)
		}
	}
	for _, key := range []string{"", " ", "a\tb", "é", strings.Repeat("x", 201)} {
		for path, body := range map[string]string{passChat: agent, "/api/v1/sessions": `{}`} {
			if status, text, _ := h.keyed(path, key, body); status != http.StatusBadRequest || !strings.Contains(text, "Idempotency-Key") {
				t.Errorf("%s with the key %q: %d %s", path, key, status, text)
			}
		}
	}
	if status, text, _ := h.keyed(passChat, "search", `{"model":"main","messages":[{"role":"user","content":"hi"}],"web_search_options":{}}`); status != http.StatusBadRequest || !strings.Contains(text, "web_search_options") {
		t.Errorf("a search: %d %s", status, text)
	}
}
