package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// soon is far less than a body may take to come, and far more than an answer does.
const soon = 8 * time.Second

// raw connects to the server and says a request's beginning, whose connection is closed at the end
// of the test.
func (h *house) raw(said string) net.Conn {
	h.t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(h.t.Context(), "tcp", strings.TrimPrefix(h.served.URL, "http://"))
	fatal(h.t, err)
	h.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(soon))
	if _, err := io.WriteString(conn, said); err != nil {
		h.t.Fatal(err)
	}
	return conn
}

// TestRefusalsWaitForNoBody: what is refused whatever its body says is refused before that comes,
// and the connection ends soon.
func TestRefusalsWaitForNoBody(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	_, chatless := h.with("metrics", "metrics")
	var shown http.Request
	shown.Header = http.Header{}
	chatless(&shown)
	for name, c := range map[string]struct {
		path, host, more, status, code string
	}{
		"too large":            {"/api/v1/sessions", "localhost", "Authorization: Bearer " + h.token + "\r\nContent-Length: 99999999", "413", "TOO_LARGE"},
		"large with Expect":    {"/api/v1/sessions", "localhost", "Authorization: Bearer " + h.token + "\r\nExpect: 100-continue\r\nContent-Length: 99999999", "413", "TOO_LARGE"},
		"too large, chat":      {passChat, "localhost", "Authorization: Bearer " + h.token + "\r\nContent-Length: 99999999", "413", ""},
		"too large, responses": {"/v1/responses", "localhost", "Authorization: Bearer " + h.token + "\r\nContent-Length: 99999999", "413", ""},
		"too large, messages":  {passMessages, "localhost", "Authorization: Bearer " + h.token + "\r\nContent-Length: 99999999", "413", "request_too_large"},
		"too large to count":   {passMessages + "/count_tokens", "localhost", "Authorization: Bearer " + h.token + "\r\nContent-Length: 99999999", "413", "request_too_large"},
		"no token":             {"/api/v1/sessions", "localhost", "Content-Length: 100", "401", "NO_TOKEN"},
		"no token with Expect": {"/api/v1/sessions", "localhost", "Expect: 100-continue\r\nContent-Length: 100", "401", "NO_TOKEN"},
		"no token in chunks":   {"/api/v1/sessions", "localhost", "Transfer-Encoding: chunked", "401", "NO_TOKEN"},
		"a wrong token":        {"/v1/responses", "localhost", "Authorization: Bearer x\r\nContent-Length: 100", "401", ""},
		"another scope":        {"/api/v1/sessions", "localhost", "Authorization: " + shown.Header.Get("Authorization") + "\r\nContent-Length: 100", "403", "MISSING_SCOPE"},
		"another host":         {"/api/v1/sessions", "evil.example", "Content-Length: 100", "403", "FORBIDDEN"},
		"another origin":       {"/api/v1/sessions", "localhost", "Origin: http://evil.example\r\nContent-Length: 100", "403", "FORBIDDEN"},
		"nothing there":        {"/nowhere", "localhost", "Authorization: Bearer " + h.token + "\r\nContent-Length: 100", "404", "NOT_FOUND"},
		"MCP without a token":  {"/mcp", "localhost", "Content-Length: 100", "401", "NO_TOKEN"},
		"open to anybody":      {"/healthz", "localhost", "Content-Length: 100", "405", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := h.raw(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", c.path, c.host, c.more))
			said, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(said), "HTTP/1.1 "+c.status+" ") || !strings.Contains(string(said), c.code) || !strings.Contains(string(said), "\r\nConnection: close\r\n") {
				t.Errorf("%v: %s", err, said)
			}
		})
	}
}

// TestRefusedBodyIsRead: who sends all of a small body before it reads is told why it is refused,
// and the connection of who is let in goes on.
func TestRefusedBodyIsRead(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	conn := h.raw("POST /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("x", 200000))
	if said, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(said), "HTTP/1.1 401 ") {
		t.Errorf("%v: %s", err, said)
	}
	request := "POST /api/v1/presence HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + h.token + "\r\nContent-Length: 2\r\n\r\n{}"
	conn = h.raw(request)
	from := bufio.NewReader(conn)
	for range 2 {
		answer, err := http.ReadResponse(from, nil)
		if err != nil || answer.StatusCode != http.StatusOK || answer.Close {
			t.Fatalf("%v: %+v", err, answer)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
	}
}
