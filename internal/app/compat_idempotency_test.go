package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestCompatKeyBegun: where something was done before a provider refused, the answer stands.
func TestCompatKeyBegun(t *testing.T) {
	t.Parallel()
	d, m, down := burning(t, replyWith("Looking.", call{"l", "files__list_files", `{}`}))
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
