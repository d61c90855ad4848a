package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/compat"
)

// TestCompatKeyBegun: where something was done before a provider refused, the answer stands.
func TestCompatKeyBegun(t *testing.T) {
	t.Parallel()
	d, m, down := burning(t, says("Looking.", call{"l", "files__list_files", `{}`}))
	down.Store(true)
	const body = `{"model":"main","messages":[{"role":"user","content":"hi"}]}`
	first := d.do(http.MethodPost, passChat, body, header{"Idempotency-Key": "k"})
	if first.status != http.StatusServiceUnavailable || first.header.Get("X-Should-Retry") != "false" || strings.Contains(first.body, "Idempotency-Key") {
		t.Errorf("%d %v %s", first.status, first.header, first.body)
	}
	down.Store(false)
	before := m.count()
	again := d.do(http.MethodPost, passChat, body, header{"Idempotency-Key": "k"})
	if again.status != http.StatusServiceUnavailable || again.header.Get("X-Should-Retry") != "false" || again.header.Get("Idempotent-Replayed") != "true" ||
		m.count() != before {
		t.Errorf("%d %v %s", again.status, again.header, again.body)
	}
	if fresh := d.do(http.MethodPost, passChat, body, header{"Idempotency-Key": "k2"}); fresh.status != http.StatusOK {
		t.Errorf("with a new key: %d %s", fresh.status, fresh.body)
	}
}

// TestCompatResultsAgain: results of calls count once. Where their round was refused, a message
// goes on.
func TestCompatResultsAgain(t *testing.T) {
	t.Parallel()
	d, _, down := burning(t, says("", call{"w", "client__get_weather", `{"place":"Bern"}`}))
	first := d.chat(map[string]any{"messages": []any{message("user", "weather?")}, "tools": weather}, nil)
	down.Store(true)
	results := `{"model":"main","messages":[{"role":"tool","tool_call_id":"` + first.Choices[0].Message.ToolCalls[0].ID + `","content":"sun"}]}`
	session := header{compat.HeaderSession: first.header.Get(compat.HeaderSession), "Idempotency-Key": "k"}
	for range 2 {
		out := d.do(http.MethodPost, passChat, results, session)
		if out.status != http.StatusServiceUnavailable || out.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%d %v %s", out.status, out.header, out.body)
		}
	}
	down.Store(false)
	on := d.chat(map[string]any{"messages": []any{message("user", "go on")}}, header{compat.HeaderSession: session[compat.HeaderSession]})
	if on.Choices[0].Message.Content != "Here." {
		t.Errorf("%s", on.body)
	}
}
