package httpapi_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestMethodsAndHeaders holds what is seldom asked: other methods, bodies that nobody reads,
// preconditions, and which form of an answer is wanted.
func TestMethodsAndHeaders(t *testing.T) {
	const id = "0197e0a1-2b3c-7d4e-8f50-61728394a5b6"
	const session = "/api/v1/sessions/" + id
	for name, c := range map[string]struct {
		method, path, body string
		header             [2]string
		status             int
		says               string // of the body
		told               [2]string
	}{
		"a body for nobody":    {method: "POST", path: session + "/pause", body: `{"now":true}`, status: 400, says: string(regie.CodeBadRequest)},
		"a body of a read":     {method: "GET", path: "/api/v1/rounds", body: `{"limit":1}`, status: 400, says: string(regie.CodeBadRequest)},
		"a body of a removal":  {method: "DELETE", path: session, body: `[]`, status: 400, says: string(regie.CodeBadRequest)},
		"an empty object":      {method: "POST", path: session + "/pause", body: " {\n} ", status: 200},
		"blanks":               {method: "POST", path: session + "/pause", body: "\r\n", status: 200},
		"a large one":          {method: "POST", path: session + "/pause", body: strings.Repeat(" ", 17<<20), status: 413, says: string(regie.CodeTooLarge)},
		"head of a list":       {method: "HEAD", path: "/api/v1/rounds", status: 200, told: [2]string{"Content-Type", "application/json"}},
		"trace":                {method: "TRACE", path: session, status: 405, told: [2]string{"Allow", "DELETE, GET, HEAD, PATCH"}},
		"not kept by proxies":  {method: "GET", path: "/api/v1/rounds", status: 200, told: [2]string{"Cache-Control", "no-store"}},
		"nor what went wrong":  {method: "GET", path: "/api/v1/rounds/x", status: 400, told: [2]string{"Cache-Control", "no-store"}},
		"JSON sooner":          {method: "POST", path: session + "/messages", body: `{"content":"x"}`, header: [2]string{"Accept", "application/json, text/event-stream"}, status: 202},
		"bad Last-Event-ID":    {method: "GET", path: session + "/events", header: [2]string{"Last-Event-ID", "x"}, status: 400, says: string(regie.CodeBadRequest)},
		"an encoded body":      {method: "POST", path: session + "/messages", body: `{"content":"x"}`, header: [2]string{"Content-Encoding", "gzip"}, status: 400, says: "encoded as gzip"},
		"anything":             {method: "POST", path: session + "/messages", body: `{"content":"x"}`, header: [2]string{"Accept", "*/*"}, status: 202},
		"a message as a page":  {method: "POST", path: session + "/messages", body: `{"content":"x"}`, header: [2]string{"Accept", "text/html"}, status: 202},
		"no body at all":       {method: "POST", path: "/api/v1/rules/revoke", status: 400, says: "the request has no body"},
		"nothing but blanks":   {method: "POST", path: "/api/v1/rules/revoke", body: "\r\n ", status: 400, says: "the request has no body"},
		"two ends of one body": {method: "POST", path: session + "/messages", body: `{"content":"x"}{"content":"y"}`, status: 400, says: string(regie.CodeBadRequest)},
	} {
		t.Run(name, func(t *testing.T) {
			_, handler := newEngine(t, id) // of its own: a stream does not end while another row has paused the round
			request := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
			if c.header[0] != "" {
				request.Header.Set(c.header[0], c.header[1])
			}
			response := httptest.NewRecorder()
			handler.ServeHTTP(response, request)
			if response.Code != c.status || !strings.Contains(response.Body.String(), c.says) {
				t.Errorf("%d %.200s, want %d with %q", response.Code, response.Body, c.status, c.says)
			}
			if c.told[0] != "" && response.Header().Get(c.told[0]) != c.told[1] {
				t.Errorf("%s is %q, want %q", c.told[0], response.Header().Get(c.told[0]), c.told[1])
			}
			if c.method == http.MethodHead && strings.Contains(response.Body.String(), "data:") {
				t.Errorf("a stream was told to who asked for its header: %.200s", response.Body)
			}
		})
	}
}

// slow is a body that does not come in time, as a connection with a deadline says it.
type slow struct{}

func (slow) Read([]byte) (int, error) {
	return 0, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
}

// TestSlowBody: a body that does not come is the client's, with a code, and nothing of this
// machine's connections is said.
func TestSlowBody(t *testing.T) {
	_, handler := newEngine(t, absent)
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/runs", slow{}))
	if said := response.Body.String(); response.Code != http.StatusRequestTimeout || !strings.Contains(said, string(regie.CodeRequestTimeout)) || strings.Contains(said, "tcp") {
		t.Errorf("%d %s", response.Code, said)
	}
}

// TestMisfits: what a body cannot be is said in our own words.
func TestMisfits(t *testing.T) {
	_, handler := newEngine(t, absent)
	for body, want := range map[string]string{
		`{"text":"a","text":"b"}`:   "at /text: the key is repeated",
		`{"txet":"a"}`:              "at /txet: unknown key",
		`{"text":1}`:                "at /text: wrong type",
		`{"session_id":"x"}`:        "at /session_id: ",
		`{"limits":{"turns":"x"}}`:  "at /limits/",
		`{"text":"a`:                "is not JSON from byte ",
		`{"text":"\x00"}`:           "is not JSON from byte ",
		"{\"text\":\"\xff\"}":       "is not JSON from byte ",
		`{"text":"a"} b`:            "is not JSON from byte ",
		`[]`:                        "an object is expected",
		`"a"`:                       "an object is expected",
		strings.Repeat("[", 20_000): "",
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/runs", strings.NewReader(body))
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		said := response.Body.String()
		if response.Code != http.StatusBadRequest || !strings.Contains(said, want) || strings.Contains(said, "json") && !strings.Contains(said, "is not JSON") || strings.Contains(said, "Go ") ||
			strings.Contains(said, "jsontext") || strings.Contains(said, "object member") {
			t.Errorf("%.60s: %d %.300s, want %q", body, response.Code, said, want)
		}
	}
}
