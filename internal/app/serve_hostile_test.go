package app_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/httpapi"
)

// TestPipelinedStream says more on a stream's connection than its request: that connection is cut,
// and the server goes on.
func TestPipelinedStream(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	for _, path := range []string{"/api/v1/events", "/api/v1/sessions/" + h.session() + "/events"} {
		request := "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + h.token + "\r\n\r\n"
		said, _ := io.ReadAll(h.raw(request + request)) // it ends, with whatever was said before
		if strings.Count(string(said), "HTTP/1.1") > 1 {
			t.Errorf("%s was answered twice: %q", path, said)
		}
	}
	h.json("GET", "/api/v1/sessions", "", 200, nil)
}

// TestGuardTimes: an answer may be long in coming, a body may not.
func TestGuardTimes(t *testing.T) {
	const moment = 50 * time.Millisecond
	guard := &httpapi.Guard{Gate: &access.Gate{Owner: "token"}, AnswerTime: moment, BodyTime: moment}
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for range 3 {
			timer := time.NewTimer(2 * moment)
			select {
			case <-timer.C:
			case <-r.Context().Done():
				return
			}
			_, _ = io.WriteString(w, "piece ")
			_ = http.NewResponseController(w).Flush()
		}
	})
	server := httptest.NewServer(guard.Wrap(slow, func(_ string, err error) string { return err.Error() }))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
	fatal(t, err)
	request.Header.Set("Authorization", "Bearer token")
	response, err := http.DefaultClient.Do(request)
	fatal(t, err)
	defer response.Body.Close()
	if data, err := io.ReadAll(response.Body); err != nil || string(data) != "piece piece piece " {
		t.Errorf("an answer that took its time: %q, %v", data, err)
	}
	for _, authorization := range []string{"Bearer token", "Bearer wrong"} {
		var dialer net.Dialer
		conn, err := dialer.DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		fatal(t, err)
		_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\nContent-Length: 1000\r\n\r\n{", authorization)
		if _, err := io.Copy(io.Discard, conn); err != nil { // it ends by itself
			t.Logf("%s: %v", authorization, err)
		}
		_ = conn.Close()
	}
}

// TestStreamsThatEnd: a stream whose message nobody will answer ends, and so does one whose session
// is removed; one that begins behind the log's end is refused.
func TestStreamsThatEnd(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", call{"w", "files__write_file", `{"path":"x","content":"x"}`})))
	h := b.serve("127.0.0.1:0")
	session := h.session()
	asked := h.parks(session, "write")
	full := h.ask("POST", "/api/v1/sessions/"+session+"/messages", `{"content":"and then"}`, carrying("Accept", "text/event-stream"))
	defer full.Body.Close()
	plain := h.ask("POST", "/api/v1/sessions/"+session+"/messages?format=openai", `{"content":"and more"}`)
	defer plain.Body.Close()
	follow := h.ask("GET", "/api/v1/sessions/"+session+"/events", "")
	defer follow.Body.Close()
	line := bufio.NewReader(follow.Body)
	if _, err := line.ReadString('\n'); err != nil { // it is there
		t.Fatal(err)
	}
	h.json("POST", "/api/v1/sessions/"+session+"/stop", "", 200, nil)
	if got := kinds(frames(t, full.Body, nil)); len(got) == 0 || got[len(got)-1] != "message_withdrawn" {
		t.Errorf("the stream of a withdrawn message: %v", got)
	}
	if data, err := io.ReadAll(plain.Body); err != nil || !strings.HasSuffix(string(data), "data: [DONE]\n\n") {
		t.Errorf("its plain form: %q, %v", data, err)
	}
	h.json("GET", "/api/v1/sessions/"+session+"/events?after=9999", "", 409, nil)
	h.json("GET", "/api/v1/sessions/"+session+"/events", "", 409, nil, carrying("Last-Event-ID", "9999"))
	fatal(t, h.engine.Wait(t.Context(), asked.RoundID)) // the word is obeyed
	h.json("DELETE", "/api/v1/sessions/"+session, "", 200, nil)
	if got := kinds(frames(t, line, nil)); len(got) == 0 || got[len(got)-1] != "erased" {
		t.Errorf("the stream of a removed session: %v", got)
	}
}

// TestOwnDirectory: what decides what agents may do is no workspace of theirs, and no file of one.
func TestOwnDirectory(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	dir := filepath.Dir(app.TokenPath(h.settings.DataDir))
	for _, path := range []string{dir, filepath.Join(dir, "blobs")} {
		body, _ := json.Marshal(map[string]string{"path": path})
		if status, _ := h.said("POST", "/api/v1/workspaces", string(body)); status < 400 {
			t.Errorf("%s is a workspace: %d", path, status)
		}
	}
	h.json("POST", "/api/v1/sessions", `{}`, 400, nil)
}

// TestOwnDirectoryOfOthers: an engine of a PostgreSQL database keeps what it has in a directory of
// its own in the data directory. All of that is closed, what other engines keep beside it too.
func TestOwnDirectoryOfOthers(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	around := t.TempDir()
	home := filepath.Join(around, "data")
	b.settings.DataHome, b.settings.DataDir = home, filepath.Join(home, "postgres-0123456789ab")
	for _, name := range []string{"data/token", "data/postgres-other/token", "notes.txt"} {
		name = filepath.Join(around, name)
		fatal(t, os.MkdirAll(filepath.Dir(name), 0o700))
		fatal(t, os.WriteFile(name, []byte("canary"), 0o600))
	}
	h := b.serve("127.0.0.1:0")
	for _, path := range []string{home, filepath.Join(home, "postgres-other"), b.settings.DataDir} {
		body, _ := json.Marshal(map[string]any{"path": path, "here": true})
		h.json("POST", "/api/v1/workspaces", string(body), 403, nil)
	}
	place := h.placeAt(around)
	for name, open := range map[string]bool{"data/token": false, "data/postgres-other/token": false, "notes.txt": true} {
		body, _ := json.Marshal(map[string]any{"workspace_id": place.ID, "tool": "files.read_file", "arguments": map[string]string{"path": name}})
		if _, said := h.said("POST", "/api/v1/queries", string(body)); strings.Contains(said, "canary") != open {
			t.Errorf("reading %s: %s", name, said)
		}
	}
}

// TestWorkspaceByName: whoever names a workspace in a request gets none that Detect would refuse,
// by no other name either (decision 32).
func TestWorkspaceByName(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("done"))).serve("127.0.0.1:0")
	link := filepath.Join(t.TempDir(), "link")
	fatal(t, os.Symlink(h.settings.DataDir, link))
	file := filepath.Join(t.TempDir(), "file")
	fatal(t, os.WriteFile(file, nil, 0o600))
	for root, status := range map[string]int{"/": 403, "/etc": 403, "/usr/bin": 403, os.Getenv("HOME"): 403, link: 403, file: 422, "/nowhere/at/all": 404} {
		body, _ := json.Marshal(dispatch.RunRequest{ClientID: "x", SessionID: regie.NewID(), Root: root, Text: "go", Policy: approval.Policy{OnApproval: approval.Park}})
		h.json("POST", "/api/v1/runs", string(body), status, nil)
	}
	body, _ := json.Marshal(map[string]string{"path": "/etc"})
	h.json("POST", "/api/v1/workspaces", string(body), 403, nil)
	h.json("POST", "/api/v1/workspaces", `{"path":"/etc","here":true}`, 200, nil)
}

// TestHostileLines says to a server what no client's library does: each is answered at once, with a
// code, and nothing is done.
func TestHostileLines(t *testing.T) {
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	session := h.session()
	for name, c := range map[string]struct{ line, header, body, status, code string }{
		// net/http's own answer, in front of ours
		"two hosts":        {"GET /api/v1/sessions HTTP/1.1", "Host: localhost", "", "400", ""},
		"another host":     {"GET http://evil/api/v1/sessions HTTP/1.1", "", "", "403", "FORBIDDEN"},
		"no path":          {"CONNECT 127.0.0.1:80 HTTP/1.1", "", "", "404", "NOT_FOUND"},
		"options of all":   {"OPTIONS * HTTP/1.1", "", "", "404", "NOT_FOUND"},
		"two slashes":      {"GET //evil.example/%2e%2e HTTP/1.1", "", "", "404", "NOT_FOUND"},
		"dots to an API":   {"GET /v1/../api/v1/sessions HTTP/1.1", "", "", "404", "not_found"},
		"two places":       {"GET /api/v1/sessions/" + session + "/events HTTP/1.1", "Last-Event-ID: 1\r\nLast-Event-ID: 2", "", "400", "BAD_REQUEST"},
		"lengths and both": {"POST /api/v1/sessions HTTP/1.1", "Content-Length: 2\r\nContent-Length: 3", "{}", "400", ""},
	} {
		request := c.line + "\r\nHost: localhost\r\nAuthorization: Bearer " + h.token + "\r\nConnection: close\r\n"
		if c.header != "" {
			request += c.header + "\r\n"
		}
		said, err := io.ReadAll(h.raw(request + "\r\n" + c.body))
		if err != nil || !strings.HasPrefix(string(said), "HTTP/1.1 "+c.status+" ") || !strings.Contains(strings.ToUpper(string(said)), strings.ToUpper(c.code)) {
			t.Errorf("%s: %.400s (%v)", name, said, err)
		}
	}
}
