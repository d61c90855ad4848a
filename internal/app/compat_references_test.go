package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
)

// TestResponses_References resolves items of earlier responses by their ids, for the token that
// may continue them.
func TestResponses_References(t *testing.T) {
	t.Parallel()
	m := newModel(t, callsOffered(t, "w", "places__get_weather", `{"place":"Bern"}`), replyWith("Sun."), replyWith("Still."))
	h := newHarness(t, m).serve("127.0.0.1:0")
	own := h.add(control.TokenRequest{Name: "own", Scopes: []regie.TokenScope{regie.ScopeCompletions}})
	other := h.add(control.TokenRequest{Name: "other", Scopes: []regie.TokenScope{regie.ScopeCompletions}})
	type item struct {
		ID, Name, Namespace string
		CallID              string `json:"call_id"`
	}
	ask := func(token, input string, status int) (items []item, body string) {
		t.Helper()
		response := h.ask("POST", "/v1/responses", `{"model":"main","input":[{"role":"user","content":"weather?"}`+input+`],"tools":[{"type":"web_search"},
			{"type":"namespace","name":"places","tools":[{"type":"function","name":"get_weather","parameters":{"type":"object"}}]}]}`, bearer(token))
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != status {
			t.Fatalf("%s: %d %s %v, want %d", input, response.StatusCode, data, err, status)
		}
		var out struct{ Output []item }
		fatal(t, json.Unmarshal(data, &out))
		if got := response.Header.Get("X-Regie-Ignored"); status == http.StatusOK && got != "tools[0] (web_search)" {
			t.Errorf("ignored: %q", got)
		}
		return out.Output, string(data)
	}
	reference := func(id string) string { return `,{"type":"item_reference","id":"` + id + `"}` }
	first, _ := ask(own.Secret, "", http.StatusOK)
	if len(first) != 1 || first[0].Name != "get_weather" || first[0].Namespace != "places" {
		t.Fatalf("%+v", first)
	}
	result := `,{"type":"function_call_output","call_id":"` + first[0].CallID + `","output":"sun"}`
	second, _ := ask(own.Secret, reference(first[0].ID)+result, http.StatusOK)
	more := `,{"role":"user","content":"and?"}`
	ask(own.Secret, reference(first[0].ID)+result+reference(second[0].ID)+more, http.StatusOK)
	if asked := m.last(); !strings.Contains(asked, `"content":"Sun."`) || !strings.Contains(asked, `"content":"sun"`) {
		t.Errorf("the third request lacks what it refers to: %s", asked)
	}
	for _, c := range []struct{ token, id string }{
		{own.Secret, "msg_x"},
		{own.Secret, "rs_1"},
		{own.Secret, "fc_" + second[0].ID[4:]},
		{own.Secret, "msg_0197e0a1-2b3c-7d4e-8f50-61728394a5b6"},
		{other.Secret, second[0].ID},
		{other.Secret, first[0].ID},
	} {
		if _, body := ask(c.token, reference(c.id)+more, http.StatusNotFound); !strings.Contains(body, `"param":"input[1].id"`) {
			t.Errorf("%s: %s", c.id, body)
		}
	}
	if m.count() != 3 {
		t.Errorf("the model was asked %d times", m.count())
	}
}
