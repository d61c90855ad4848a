package mcpserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/mcpserver"
)

// TestHTTPProblems: what does not come as far as JSON-RPC is told as a problem with a stable code, and arguments that do not fit have theirs.
func TestHTTPProblems(t *testing.T) {
	b := newBed(t)
	handler, err := mcpserver.Handler(t.Context(), b.config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	const accepts, stream = "application/json, text/event-stream", "text/event-stream"
	for name, row := range map[string]struct {
		method, body, accept, session string
		status                        int
		code                          string
	}{
		"no JSON":               {"POST", "nothing", accepts, "", 400, "BAD_REQUEST"},
		"a strange Accept":      {"POST", "{}", "text/html", "", 400, "BAD_REQUEST"},
		"no such session":       {"GET", "", stream, "x", 404, "NOT_FOUND"},
		"a method that is none": {"PUT", "", accepts, "", 405, "METHOD_NOT_ALLOWED"},
		"too much":              {"POST", `{"x":"` + strings.Repeat("x", 5<<20) + `"}`, accepts, "", 413, "TOO_LARGE"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), row.method, server.URL, strings.NewReader(row.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", row.accept)
		r.Header.Set("Content-Type", "application/json")
		if row.session != "" {
			r.Header.Set("Mcp-Session-Id", row.session)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var said struct {
			Status       int
			Code, Detail string
		}
		err = json.NewDecoder(response.Body).Decode(&said)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != row.status || said.Status != row.status || said.Code != row.code || said.Detail == "" ||
			response.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s %+v %v", name, response.StatusCode, response.Header.Get("Content-Type"), said, err)
		}
	}
	if text, _, failed := call(t, b.stdio(nil), "session_status", map[string]any{"session_id": 1}); !failed || !strings.HasSuffix(text, "(INVALID_ARGUMENTS)") {
		t.Errorf("arguments that do not fit: %s", text)
	}
}
