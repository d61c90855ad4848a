package mcpserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/mcpserver"
)

// foreign are words of the SDK and of decoders, which name types of programs, or are in English.
var foreign = regexp.MustCompile(`malformed|unmarshal|jsonrpc2|wireDecode|JSON RPC not handled|requires|Bad Request|must|Method Not|exceeds|the `)

// TestHTTPProblems: what does not come as far as JSON-RPC is told as a problem with a stable code,
// and arguments that do not fit have theirs.
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
		"no message":            {"POST", `[1,2]`, accepts, "", 400, "BAD_REQUEST"},
		"no body":               {"POST", "", accepts, "", 400, "BAD_REQUEST"},
		"an answer to nothing":  {"POST", `{"jsonrpc":"2.0","method":"nope"}`, accepts, "", 400, "BAD_REQUEST"},
		"no session named":      {"GET", "", stream, "", 400, "BAD_REQUEST"},
		"none to end":           {"DELETE", "", accepts, "", 400, "BAD_REQUEST"},
		"too much":              {"POST", `{"x":"` + strings.Repeat("x", 5<<20) + `"}`, accepts, "", 413, "TOO_LARGE"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), row.method, server.URL, strings.NewReader(row.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", row.accept)
		r.Header.Set("Accept-Language", "fr")
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
			response.Header.Get("Content-Type") != "application/problem+json" || foreign.MatchString(said.Detail) {
			t.Errorf("%s: %d %s %+v %v", name, response.StatusCode, response.Header.Get("Content-Type"), said, err)
		}
	}
	if text, _, failed := call(t, b.stdio(nil), "session_status", map[string]any{"session_id": 1}); !failed || !strings.HasSuffix(text, "(INVALID_ARGUMENTS)") {
		t.Errorf("arguments that do not fit: %s", text)
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

// TestHTTPCallsThatAreNone: what JSON-RPC has an error for is answered by that, as over stdio.
func TestHTTPCallsThatAreNone(t *testing.T) {
	b := newBed(t)
	address := b.serve()
	for name, row := range map[string]struct{ body, want string }{
		"an unknown method":   {`{"jsonrpc":"2.0","id":"seven","method":"nope\u001b"}`, `{"jsonrpc":"2.0","id":"seven","error":{"code":-32601,"message":"method not found: \"nope␛\""}}`},
		"without parameters":  {`{"jsonrpc":"2.0","id":7,"method":"initialize"}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"invalid request: missing required \"params\""}}`},
		"a notice with an id": {`{"jsonrpc":"2.0","id":8,"method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":8,"error":{"code":-32600,"message":"invalid request: unexpected id for \"notifications/initialized\""}}`},
	} {
		if status, kind, said := post(t, address, row.body); status != http.StatusOK || kind != "application/json" || said != row.want {
			t.Errorf("%s: %d %s %s, want %s", name, status, kind, said, row.want)
		}
	}
}
