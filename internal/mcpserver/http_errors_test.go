package mcpserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestHTTPProblems: a body that cannot be read, or in two ways, is told as a problem with a
// stable code.
func TestHTTPProblems(t *testing.T) {
	b := newHarness(t)
	status, kind, said := post(t, b.serve(), `{"x":"`+strings.Repeat("x", 5<<20)+`"}`)
	if status != http.StatusRequestEntityTooLarge || kind != "application/problem+json" || !strings.Contains(said, "TOO_LARGE") {
		t.Errorf("%d %s %s", status, kind, said)
	}
	status, kind, said = post(t, b.serve(), `{"jsonrpc":"2.0","id":1,"method":"ping","method":"initialize"}`)
	if status != http.StatusBadRequest || kind != "application/problem+json" || !strings.Contains(said, "repeated keys") {
		t.Errorf("a key twice: %d %s %s", status, kind, said)
	}
}

// post sends a message of a client over HTTP, and returns the status of the answer, its type and
// its body.
func post(t *testing.T, address, body string) (status int, kind, said string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header.Get("Content-Type"), string(data)
}
