package app_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/regie-run/regie/internal/compat"
	"github.com/regie-run/regie/internal/httpapi"
)

// TestCompatKeyBusy: what a provider refused for now and nothing came of may be asked again with
// its key, and is done once.
func TestCompatKeyBusy(t *testing.T) {
	t.Parallel()
	const chat, responses = `{"model":"main","messages":[{"role":"user","content":"hi"}]}`, `{"model":"main","input":"hi"}`
	for name, c := range map[string]struct{ path, first, body string }{
		"chat":                {passChat, ``, chat},
		"chat, in a session":  {passChat, chat, chat},
		"chat, streamed":      {passChat, ``, `{"model":"main","stream":true,"messages":[{"role":"user","content":"hi"}]}`},
		"messages":            {passMessages, ``, `{"model":"main","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`},
		"responses":           {"/v1/responses", ``, responses},
		"responses, from one": {"/v1/responses", responses, `{"model":"main","input":"hi","previous_response_id":"ID"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var down atomic.Bool
			answer := func(w http.ResponseWriter, r *http.Request) {
				if down.Load() {
					http.Error(w, `{"error":{"message":"on fire"}}`, http.StatusServiceUnavailable)
					return
				}
				says("Here.")(w, r)
			}
			steps := []http.HandlerFunc{answer}
			m := newModel(t, append(steps, answer)...)
			b := newBed(t, m)
			d := b.doorOf(b.impatient(), func(c *compat.Config) { c.Status = httpapi.Status })
			key, body := header{"Idempotency-Key": "k"}, c.body
			if c.first != "" {
				first := d.do(http.MethodPost, c.path, c.first, nil)
				body = strings.ReplaceAll(body, "ID", first.ID)
				if c.path == passChat {
					key[compat.HeaderSession] = first.header.Get(compat.HeaderSession)
				}
			}
			down.Store(true)
			busy := d.do(http.MethodPost, c.path, body, key)
			if busy.status != http.StatusServiceUnavailable || busy.header.Get("X-Should-Retry") != "true" || busy.header.Get("Retry-After") == "" {
				t.Errorf("%d %v %s", busy.status, busy.header, busy.body)
			}
			down.Store(false)
			before := m.count()
			for i := range 3 {
				out := d.do(http.MethodPost, c.path, body, key)
				if again := out.header.Get("Idempotent-Replayed") == "true"; out.status != http.StatusOK || !strings.Contains(out.body, "Here.") || again != (i > 0) {
					t.Errorf("%d: %d %v %s", i, out.status, out.header, out.body)
				}
			}
			if m.count() != before+1 {
				t.Errorf("asked %d times", m.count()-before)
			}
			if c.first != "" { // of these the house's own memory of keys alone knows
				return
			}
			if other := d.do(http.MethodPost, c.path, strings.Replace(body, `"hi"`, `"bye"`, 1), key); !strings.Contains(other.body, "KEY_REUSED") {
				t.Errorf("another request with the key: %d %s", other.status, other.body)
			}
		})
	}
}

// TestCompatKeyBegun: where something was done before a provider refused, the answer stands, and
// says what it is and how to ask once more.
func TestCompatKeyBegun(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	m := newModel(t, says("Looking.", call{"l", "files__list_files", `{}`}), func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			http.Error(w, `{"error":{"message":"on fire"}}`, http.StatusServiceUnavailable)
			return
		}
		says("Here.")(w, r)
	})
	b := newBed(t, m)
	d := b.doorOf(b.impatient(), func(c *compat.Config) { c.Status = httpapi.Status })
	const body = `{"model":"main","messages":[{"role":"user","content":"hi"}]}`
	first := d.do(http.MethodPost, passChat, body, header{"Idempotency-Key": "k"})
	if first.status != http.StatusServiceUnavailable || first.header.Get("X-Should-Retry") != "false" || strings.Contains(first.body, "Idempotency-Key") {
		t.Errorf("%d %v %s", first.status, first.header, first.body)
	}
	up.Store(true)
	before := m.count()
	again := d.do(http.MethodPost, passChat, body, header{"Idempotency-Key": "k"})
	if again.status != http.StatusServiceUnavailable || again.header.Get("X-Should-Retry") != "false" || again.header.Get("Idempotent-Replayed") != "true" ||
		!strings.Contains(again.Error.Message, "first request with this Idempotency-Key") || !strings.Contains(again.Error.Message, "new key") || m.count() != before {
		t.Errorf("%d %v %s", again.status, again.header, again.body)
	}
	if fresh := d.do(http.MethodPost, passChat, body, header{"Idempotency-Key": "k2"}); fresh.status != http.StatusOK {
		t.Errorf("with a new key: %d %s", fresh.status, fresh.body)
	}
}

// TestCompatResultsAgain: results of calls count once. Where their round was refused, the same ones
// again are told so, and a message goes on.
func TestCompatResultsAgain(t *testing.T) {
	t.Parallel()
	d, _, down := burning(t, says("", call{"w", "client__get_weather", `{"place":"Bern"}`}))
	first := d.chat(map[string]any{"messages": []any{message("user", "weather?")}, "tools": weather}, nil)
	down.Store(true)
	results := `{"model":"main","messages":[{"role":"tool","tool_call_id":"` + first.Choices[0].Message.ToolCalls[0].ID + `","content":"sun"}]}`
	session := header{compat.HeaderSession: first.header.Get(compat.HeaderSession), "Idempotency-Key": "k"}
	for i := range 2 {
		out := d.do(http.MethodPost, passChat, results, session)
		if again := strings.Contains(out.body, "the same results before"); out.status != http.StatusServiceUnavailable || out.header.Get("X-Should-Retry") != "false" || again != (i > 0) {
			t.Errorf("%d: %d %v %s", i, out.status, out.header, out.body)
		}
	}
	down.Store(false)
	on := d.chat(map[string]any{"messages": []any{message("user", "go on")}}, header{compat.HeaderSession: session[compat.HeaderSession]})
	if on.Choices[0].Message.Content != "Here." {
		t.Errorf("%s", on.body)
	}
}
