package mcp

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// onCall handles the calls of tools itself and leaves everything else to inner.
func onCall(inner http.Handler, handle http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"tools/call"`)) {
			handle(w, r)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// web starts a server behind a URL. The handler gets the toolbox's.
func web(t *testing.T, wrap func(http.Handler) http.Handler) (Config, *httptest.Server) {
	t.Helper()
	noLeak(t)
	box := toolbox()
	handler := http.Handler(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return box }, nil))
	if wrap != nil {
		handler = wrap(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(func() { // those whose client could not say goodbye
		for session := range box.Sessions() {
			session.Close()
		}
	})
	return Config{Name: "far", URL: server.URL, AllowPrivate: true, Timeout: 20 * time.Second}, server
}

func TestHTTP(t *testing.T) {
	var header atomic.Value
	c, server := web(t, func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			header.Store(r.Header.Get("Authorization"))
			inner.ServeHTTP(w, r)
		})
	})
	c.Headers = map[string]string{"Authorization": "Bearer tk-http-canary"}
	s := start(t, c)
	if out := call(t, named(t, s, "far.echo"), `{"a":1}`); out.Result != `{"a":1}` {
		t.Errorf("%+v %+v", out, out.Error)
	}
	inv := invocation("{}")
	if out := tool.Run(t.Context(), named(t, s, "far.meta"), inv); out.Result != inv.CallID.String() {
		t.Errorf("the server saw the key %q", out.Result)
	}
	if header.Load() != "Bearer tk-http-canary" {
		t.Errorf("the server got the header %q", header.Load())
	}
	old := named(t, s, "far.echo")
	if out := call(t, named(t, s, "far.mutates"), "{}"); out.State != regie.CallSucceeded {
		t.Fatalf("%+v", out.Error)
	}
	told(t, s)
	if out := call(t, old, "{}"); out.State != regie.CallFailed || out.Error.Code != regie.CodeToolChanged {
		t.Errorf("a changed tool: %+v %+v", out, out.Error)
	}
	server.CloseClientConnections()
	server.Close()
	out := call(t, named(t, s, "far.meta"), "{}")
	if out.State != regie.CallFailed || out.Error.Code != regie.CodeServerDown {
		t.Errorf("a server that is gone: %+v %+v", out, out.Error)
	}
}

func TestHTTPCancelIsTold(t *testing.T) {
	t.Setenv(envFile, t.TempDir()+"/file")
	c, _ := web(t, nil)
	c.Timeout = 500 * time.Millisecond
	s := start(t, c)
	if out := call(t, named(t, s, "far.waits"), "{}"); out.State != regie.CallUnknown {
		t.Errorf("%+v", out)
	}
	noted(t, Config{Env: map[string]string{envFile: os.Getenv(envFile)}}, "cancelled")
}

// What became of a call is told by what left us and by HTTP's own words.
func TestHTTPOutcomes(t *testing.T) {
	for _, row := range []struct {
		name  string
		wrap  func(http.Handler) http.Handler
		state regie.CallState
		code  regie.Code
		says  string
	}{
		{"401", func(h http.Handler) http.Handler { return status(401, h) }, regie.CallFailed, regie.CodeNoPermission, "401"},
		{"404", func(h http.Handler) http.Handler { return status(404, h) }, regie.CallFailed, regie.CodeServerDown, "404"},
		{"429", func(h http.Handler) http.Handler { return status(429, h) }, regie.CallFailed, regie.CodeServerDown, "429"},
		{"500", func(h http.Handler) http.Handler { return status(500, h) }, regie.CallUnknown, regie.CodeOutcomeUnknown, "500"},
		{"503", func(h http.Handler) http.Handler { return status(503, h) }, regie.CallUnknown, regie.CodeOutcomeUnknown, "503"},
		{"202", func(h http.Handler) http.Handler { return status(202, h) }, regie.CallUnknown, regie.CodeOutcomeUnknown, ""},
		{"redirect", func(h http.Handler) http.Handler {
			return onCall(h, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://elsewhere.example/mcp?key=1", http.StatusTemporaryRedirect)
			})
		}, regie.CallFailed, regie.CodeServerDown, "elsewhere.example/mcp: put"},
		{"lost", func(h http.Handler) http.Handler {
			return onCall(h, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		}, regie.CallUnknown, regie.CodeOutcomeUnknown, "was lost after"},
		{"half an answer", func(h http.Handler) http.Handler {
			return onCall(h, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", "100")
				_, _ = w.Write([]byte(`{"jsonrpc"`))
			})
		}, regie.CallUnknown, regie.CodeOutcomeUnknown, "was lost after"},
		{"too much", func(h http.Handler) http.Handler {
			return onCall(h, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(bytes.Repeat([]byte(" "), maxMessage+1))
			})
		}, regie.CallUnknown, regie.CodeOutcomeUnknown, "more than 16777216 bytes"},
		{"an event too large", func(h http.Handler) http.Handler {
			return onCall(h, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte("data: "))
				_, _ = w.Write(bytes.Repeat([]byte("x"), maxMessage+1))
			})
		}, regie.CallUnknown, regie.CodeOutcomeUnknown, "exceeded"},
		{"asks without end", func(h http.Handler) http.Handler {
			return onCall(h, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := 0; r.Context().Err() == nil; i++ {
					fmt.Fprintf(w, `data: {"jsonrpc":"2.0","id":"q%d","method":"roots/list"}`+"\n\n", i)
				}
			})
		}, regie.CallUnknown, regie.CodeOutcomeUnknown, "more than 1000 times in a minute"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, _ := web(t, row.wrap)
			c.Timeout = 30 * time.Second // no row waits for it
			s := start(t, c)
			out := call(t, named(t, s, "far.echo"), "{}")
			if out.State != row.state || out.Error.Code != row.code || !strings.Contains(out.Error.Message, row.says) || strings.Contains(out.Error.Message, "key=1") {
				t.Errorf("%+v %+v", out, out.Error)
			}
		})
	}
}

// The notice of a cancellation goes out with the call's context. What is answered to it says
// nothing of the call.
func TestFlightIsOfTheFirstRequest(t *testing.T) {
	noLeak(t)
	codes := []int{http.StatusOK, http.StatusNotFound}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(codes[0])
		codes = codes[1:]
	}))
	defer server.Close()
	c := Config{AllowPrivate: true}
	transport := newTransport(c)
	defer transport.CloseIdleConnections()
	client := (&wire{inner: transport, alone: transport, life: t.Context(), c: c}).httpClient()
	ctx, flight := withFlight(t.Context(), true)
	for range 2 {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	if got := flight.status.Load(); got != http.StatusOK || !flight.sent.Load() {
		t.Errorf("the call's status is %d", got)
	}
}

func TestHTTPConnectFails(t *testing.T) {
	noLeak(t)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refuses.Close()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not noticed
		<-r.Context().Done()
	}))
	defer silent.Close()
	for _, row := range []struct {
		name string
		c    Config
		code regie.Code
		says string
	}{
		{"key", Config{URL: refuses.URL, AllowPrivate: true}, regie.CodeNoPermission, "401"},
		{"nobody", Config{URL: "http://127.0.0.1:1/mcp?token=tk-canary", AllowPrivate: true}, regie.CodeServerDown, "refused"},
		{"silent", Config{URL: silent.URL, AllowPrivate: true, StartTimeout: 200 * time.Millisecond}, regie.CodeServerDown, "within 200ms"},
		{"private", Config{URL: refuses.URL}, regie.CodeNoPermission, "allow_private"},
		{"private by name", Config{URL: strings.Replace(refuses.URL, "127.0.0.1", "localhost", 1)}, regie.CodeNoPermission, "allow_private"},
	} {
		row.c.Name = "far"
		_, err := connect(t.Context(), row.c)
		if regie.CodeOf(err) != row.code || !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
