package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/control"
)

// counted are the tokens that a request to an agent is estimated at.
func (h *house) counted(body string) int {
	h.t.Helper()
	var out struct {
		Tokens int `json:"input_tokens"`
	}
	h.json("POST", passMessages+"/count_tokens", body, 200, &out)
	return out.Tokens
}

// TestCountTokens counts what a model would really be sent: the agent's own levels and tools, the
// client's tools, the history, and the thread of a session.
func TestCountTokens(t *testing.T) {
	m := newModel(t, says("Hello."))
	h := newBed(t, m).serve("127.0.0.1:0")
	const hi = `{"model":"main","max_tokens":9,"messages":[{"role":"user","content":"hi"}]`
	plain := h.counted(hi + `}`)
	response := h.ask("POST", passMessages, hi+`}`)
	_ = response.Body.Close()
	session := response.Header.Get("X-Regie-Session")
	sent := len(m.last())
	if bytes := plain * 3; bytes < sent*2/3 || bytes > sent*3/2 {
		t.Errorf("%d tokens are counted of a request of %d bytes", plain, sent)
	}
	if want := float64(sent) / 4; math.Abs(float64(plain)-want) > 2 { // what opens the round is in it
		t.Errorf("%d tokens are counted of a request of %d bytes, which the engine takes for %.0f", plain, sent, want)
	}
	long := strings.Repeat("word ", 3000)
	for name, c := range map[string]struct {
		body string
		more int
	}{
		"a tool":    {hi + `,"tools":[{"name":"f","description":"` + long + `","input_schema":{"type":"object"}}]}`, 3000},
		"a text":    {`{"model":"main","messages":[{"role":"user","content":"` + long + `"}]}`, 3000},
		"a history": {`{"model":"main","messages":[{"role":"user","content":"` + long + `"},{"role":"assistant","content":"` + long + `"},{"role":"user","content":"hi"}]}`, 6000},
		"a session": {`{"model":"main","messages":[{"role":"user","content":"` + long + `"}],"metadata":{"session_id":"` + session + `"}}`, 3000},
	} {
		if got := h.counted(c.body); got < plain+c.more || got > plain+2*c.more {
			t.Errorf("%s: %d tokens, and %d without", name, got, plain)
		}
	}
	if m.count() != 1 {
		t.Errorf("the model was asked %d times", m.count())
	}
	var list struct{ Items []json.RawMessage }
	h.json("GET", "/api/v1/sessions?api=true", "", 200, &list)
	if len(list.Items) != 1 {
		t.Errorf("%d sessions", len(list.Items))
	}
	h.json("POST", passMessages+"/count_tokens", hi+`,"metadata":{"session_id":"0197e0a1-2b3c-7d4e-8f50-61728394a5b6"}}`, 404, nil)
}

// TestModels lists all models on one page in Anthropic's form.
func TestModels(t *testing.T) {
	v := newVendor(t, answersWhole)
	h := passingHouse(t, v, func(c *config.Config) {
		near := c.Providers["near"]
		near.Models = map[string]string{}
		for i := range 24 {
			near.Models[fmt.Sprint("alias", i)] = fmt.Sprintf("m%02d", i)
		}
		c.Providers["near"] = near
	})
	var whole struct {
		Data []struct{ ID string }
		More bool   `json:"has_more"`
		From string `json:"first_id"`
		To   string `json:"last_id"`
	}
	h.json("GET", "/v1/models?limit=3", "", 200, &whole, carrying("Anthropic-Version", "2023-06-01"))
	if len(whole.Data) != 25 || whole.More || whole.From != "main" || whole.To != whole.Data[24].ID {
		t.Fatalf("%+v", whole)
	}
	var open struct{ Data []struct{ ID string } }
	h.json("GET", "/v1/models", "", 200, &open)
	if len(open.Data) < 2 {
		t.Errorf("%+v", open)
	}
}

// TestCompatCutBody: a body that ends before its end is told without the connection's own words.
func TestCompatCutBody(t *testing.T) {
	h := newBed(t, newModel(t)).serve("127.0.0.1:0")
	conn := h.raw("POST " + passChat + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + h.token + "\r\nContent-Length: 99\r\n\r\n{\"model\"")
	half, _ := conn.(*net.TCPConn)
	fatal(t, half.CloseWrite())
	said, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(said), "HTTP/1.1 400 ") || !strings.Contains(string(said), `"message":"the request ended before its body did"`) || !strings.Contains(string(said), `"code":"BAD_REQUEST"`) {
		t.Errorf("%v: %s", err, said)
	}
}

// TestCompatAdvice: what a client is told of an approval can be done with its token, or says that
// it cannot.
func TestCompatAdvice(t *testing.T) {
	writes := func(text string) http.HandlerFunc {
		return says(text, call{"w", "files__write_file", `{"path":"x","content":"x"}`})
	}
	h := newBed(t, newModel(t, writes("One."), writes("Two."))).serve("127.0.0.1:0")
	for _, may := range []bool{true, false} {
		scopes := []regie.TokenScope{regie.ScopeCompletions}
		if may {
			scopes = append(scopes, regie.ScopeApprove)
		}
		token := h.add(control.TokenRequest{Name: fmt.Sprint("may ", may), Scopes: scopes, OnApproval: "park"})
		var out answered
		h.json("POST", passChat, `{"model":"main","messages":[{"role":"user","content":"write"}]}`, 200, &out, bearer(token.Secret))
		said := out.Choices[0].Message.Content
		if strings.Contains(said, "POST /api/v1/approvals/") != may || strings.Contains(said, "may not decide") == may || !strings.Contains(said, "regie approve ") {
			t.Errorf("%v: %s", may, said)
		}
	}
}

// TestMessagesThread continues a session as Anthropic's own clients continue a thread, and tells
// them in their words where that is not possible.
func TestMessagesThread(t *testing.T) {
	m := newModel(t, says("Hello."), says("More."))
	h := newBed(t, m).serve("127.0.0.1:0")
	ask := func(text, thread string, status int) (out struct {
		ID       string
		Metadata map[string]string
		anthropicError
	},
	) {
		h.json("POST", passMessages, `{"model":"main","max_tokens":9,"messages":[{"role":"user","content":"`+text+`"}],"thread":`+thread+`}`, status, &out)
		return out
	}
	after := func(id string) string { return `{"type":"continue","previous_message_id":"` + id + `"}` }
	first := ask("one", `{"type":"create"}`, 200)
	second := ask("two", after(first.ID), 200)
	if second.Metadata["session_id"] != first.Metadata["session_id"] || !strings.Contains(m.last(), "one") {
		t.Errorf("%+v after %+v", second, first)
	}
	for id, c := range map[string]struct {
		status int
		code   string
	}{
		first.ID: {409, "thread_already_continued"}, "msg_x": {404, "thread_not_found"}, "msg_0197e0a1-2b3c-7d4e-8f50-61728394a5b6": {404, "thread_not_found"},
	} {
		if out := ask("three", after(id), c.status); out.Error.Details.Code != c.code {
			t.Errorf("%s: %+v", id, out)
		}
	}
	if m.count() != 2 {
		t.Errorf("the model was asked %d times", m.count())
	}
}

// TestCompatRoot: the endpoint's own address is answered by it, in its form, and not by a redirect.
func TestCompatRoot(t *testing.T) {
	h := newBed(t, newModel(t)).serve("127.0.0.1:0")
	for _, path := range []string{"/v1", "/v1/", "/v1?x=1"} {
		for _, method := range []string{"GET", "POST"} {
			var out answered
			h.json(method, path, `{}`, 404, &out)
			if out.Error.Code != string(regie.CodeNotFound) || out.Error.Message == "" {
				t.Errorf("%s %s: %+v", method, path, out)
			}
		}
		var none answered
		if h.json("GET", path, "", 401, &none, func(r *http.Request) { r.Header.Del("Authorization") }); none.Error.Code != string(regie.CodeNoToken) {
			t.Errorf("%s without a token: %+v", path, none)
		}
	}
}
