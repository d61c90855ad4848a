package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/compat"
	"github.com/regie-run/regie/internal/control"
)

// TestCompatAllSaid goes on from an answer with more than one message of the user: none of them is
// lost. Of a session that is only named the last one counts.
func TestCompatAllSaid(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("", call{"w", "client__get_weather", `{"place":"Bern"}`}), replyWith("Sun."), replyWith("Two."), replyWith("Three."), replyWith("Four."))
	d := newHarness(t, m).door()
	first := d.chat(map[string]any{"messages": []any{message("user", "weather?")}, "tools": weather}, nil)
	calls := first.Choices[0].Message.ToolCalls
	d.chat(map[string]any{"tools": weather, "messages": []any{
		message("user", "weather?"),
		map[string]any{"role": "assistant", "tool_calls": calls},
		map[string]any{"role": "tool", "tool_call_id": calls[0].ID, "content": "sun"},
		message("user", "user A"), message("user", "user B"),
	}}, nil)
	if asked := m.last(); !strings.Contains(asked, "user A") || !strings.Contains(asked, "user B") {
		t.Errorf("behind the results: %s", asked)
	}
	response := d.do(http.MethodPost, "/v1/responses", `{"model":"main","input":"begin"}`, nil)
	d.do(http.MethodPost, "/v1/responses", `{"model":"main","previous_response_id":"`+response.ID+`","input":[{"role":"user","content":"item A"},{"role":"user","content":"item B"}]}`, nil)
	if asked := m.last(); !strings.Contains(asked, "item A") || !strings.Contains(asked, "item B") {
		t.Errorf("behind a response: %s", asked)
	}
	d.chat(map[string]any{"messages": []any{message("user", "not this"), message("user", "only this")}}, header{compat.HeaderSession: first.header.Get(compat.HeaderSession)})
	if asked := m.last(); strings.Contains(asked, "not this") || !strings.Contains(asked, "only this") {
		t.Errorf("of a named session: %s", asked)
	}
}

// TestCompatFrench tells a client in its language what is no model's word: that an approval is
// waited for.
func TestCompatFrench(t *testing.T) {
	h := newHarness(t, newModel(t, replyWith("", call{"w", "files__write_file", `{"path":"x","content":"x"}`}))).serve("127.0.0.1:0")
	token := h.add(control.TokenRequest{Name: "f", Scopes: []regie.TokenScope{regie.ScopeCompletions}, OnApproval: "park"})
	var out answered
	h.json("POST", passChat, `{"model":"main","messages":[{"role":"user","content":"write"}]}`, 200, &out, bearer(token.Secret), carrying("Accept-Language", "fr"))
	if said := out.Choices[0].Message.Content; !strings.Contains(said, "attend l'autorisation") {
		t.Errorf("%s", said)
	}
}
