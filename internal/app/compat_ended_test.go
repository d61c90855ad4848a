package app_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
)

// endedCases are requests whose token ends while they are answered.
var endedCases = []struct {
	path, body string
	streams    bool
	want       string
}{
	{passChat, `{"model":"MODEL","messages":[{"role":"user","content":"hi"}]}`, false, `"code":"TOKEN_ENDED"`},
	{passChat, `{"model":"MODEL","messages":[{"role":"user","content":"hi"}],"stream":true}`, true, `data: {"error":{"message":"the token was revoked`},
	{"/v1/responses", `{"model":"MODEL","input":"hi"}`, false, `"code":"TOKEN_ENDED"`},
	{"/v1/responses", `{"model":"MODEL","input":"hi","stream":true}`, true, "event: error\ndata: {\"code\":\"TOKEN_ENDED\""},
	{passMessages, `{"model":"MODEL","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, false, `"type":"authentication_error"`},
	{passMessages, `{"model":"MODEL","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"stream":true}`, true, "event: error\ndata: {\"error\":{\"details\":{\"error_code\":\"TOKEN_ENDED\""},
}

// ends asks with a token of its own, ends that once ready, and reads what the client is told: of a stream its beginning first.
func (h *house) ends(path, body string, streams bool, ready <-chan struct{}, changes ...func(*http.Request)) (status int, text string) {
	h.t.Helper()
	made := h.add(dispatch.TokenRequest{Name: "x", Scopes: []regie.TokenScope{regie.ScopeCompletions}})
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

// TestPassedOnEnded: who is passed on and has no token any more is told so at once, whatever stands of the answer, and with a key the provider goes on.
func TestPassedOnEnded(t *testing.T) {
	began, on := make(chan struct{}, 1), make(chan struct{})
	first := ""
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		if first != "" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, first)
			_ = http.NewResponseController(w).Flush()
		}
		began <- struct{}{}
		select {
		case <-on:
			_, _ = io.WriteString(w, "data: [DONE]\n\n")
		case <-r.Context().Done():
		}
	})
	h := passingHouse(t, v, func(c *config.Config) {
		other := c.Providers["far"]
		other.Name, other.API = "other", config.APIResponses
		c.Providers["other"] = other
	})
	calls := 0
	for _, key := range []string{"", "k"} {
		for _, c := range endedCases {
			model := map[string]string{passChat: "far/x", passMessages: "near/x", "/v1/responses": "other/x"}[c.path]
			body := strings.Replace(c.body, "MODEL", model, 1)
			for _, streams := range []bool{false, true} { // what streams may have begun, or not
				if streams && !c.streams {
					continue
				}
				want, status := c.want, http.StatusOK
				if first = ""; streams {
					first = "event: x\ndata: {\"one\":1}\n"
				} else {
					want, status = "TOKEN_ENDED", http.StatusUnauthorized
				}
				var changes []func(*http.Request)
				if key != "" {
					changes = append(changes, carrying("Idempotency-Key", key))
				}
				got, text := h.ends(c.path, body, streams, began, changes...)
				if got != status || !strings.Contains(text, want) || !strings.HasPrefix(text, first) {
					t.Errorf("%s, begun %v, key %q: %d %s", body, streams, key, got, text)
				}
				calls++
				wantCode := regie.CodeStopRequested
				if key != "" {
					on <- struct{}{}
					wantCode = ""
				}
				logged, err := h.engine.Proxied(t.Context(), calls)
				if err != nil || logged[0].Code != wantCode {
					t.Fatalf("%s, begun %v, key %q: logged as %+v %v", body, streams, key, logged, err)
				}
			}
		}
	}
}
