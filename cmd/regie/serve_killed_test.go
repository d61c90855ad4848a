package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// served is a regie serve in a process of its own, which can be killed and started again at the
// same address.
type served struct {
	t          *testing.T
	home, dir  string
	url, token string
	process    *exec.Cmd
}

func (s *served) start(addr string) {
	s.t.Helper()
	data := filepath.Join(s.home, "data")
	s.process = exec.CommandContext(s.t.Context(), "regie", "serve", "--addr", addr, "--data-dir", data, "--provider", "demo")
	s.process.Dir, s.process.Env = s.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "REGIE_LANG=en"}
	out, err := s.process.StdoutPipe()
	if err == nil {
		err = s.process.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "Regie listens on ")
	token, failed := os.ReadFile(filepath.Join(data, "api.token"))
	if err != nil || !ok || failed != nil {
		s.t.Fatalf("it says %q (%v, %v)", line, err, failed)
	}
	s.url, s.token = url, strings.TrimSpace(string(token))
}

// kill is kill -9.
func (s *served) kill() {
	s.t.Helper()
	if err := s.process.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	_ = s.process.Wait() // it was killed
}

func (s *served) ask(method, path, body string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	if response.StatusCode >= 300 {
		said, _ := io.ReadAll(response.Body)
		s.t.Fatalf("%s %s: %d %s", method, path, response.StatusCode, said)
	}
	return response
}

func (s *served) made(path, body string) (id string) {
	s.t.Helper()
	response := s.ask("POST", path, body)
	defer response.Body.Close()
	var out struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(response.Body).Decode(&out); err != nil {
		s.t.Fatal(err)
	}
	return out.ID
}

// logged is an event as a client has it.
type logged struct {
	id   string
	data string
}

// over reports whether an event is the end of a round.
func (e logged) over() bool {
	return strings.Contains(e.data, `"type":"round"`) && strings.Contains(e.data, `"state":"ENDED"`)
}

// events reads the log behind an event by server-sent events: so many of them, or to the end of the
// round.
func (s *served) events(session, after string, most int) (out []logged) {
	s.t.Helper()
	response := s.ask("GET", "/api/v1/sessions/"+session+"/events?after="+after, "")
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	id := ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			s.t.Fatalf("the stream behind %s ended after %d events: %v", after, len(out), err)
		}
		if value, ok := strings.CutPrefix(line, "id: "); ok {
			id = strings.TrimSpace(value)
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || id == "" { // pieces of replies have none
			continue
		}
		out = append(out, logged{id, strings.TrimSpace(data)})
		if id = ""; len(out) == most || out[len(out)-1].over() {
			return out
		}
	}
}

// socket reads it by a WebSocket.
func (s *served) socket(session, after string, most int) (out []logged) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	conn, _, err := websocket.Dial(ctx, s.url+"/api/v1/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + s.token}}}) //nolint:bodyclose // the library's
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }() // it is cut
	conn.SetReadLimit(1 << 20)
	if err := conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"type":"subscribe","session_id":%q,"after":%s}`, session, after)); err != nil {
		s.t.Fatal(err)
	}
	for {
		_, said, err := conn.Read(ctx)
		if err != nil {
			s.t.Fatalf("the WebSocket behind %s ended after %d events: %v", after, len(out), err)
		}
		var news struct {
			ID   int64           `json:"id"`
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(said, &news); err != nil {
			s.t.Fatal(err)
		}
		if news.ID == 0 {
			continue
		}
		out = append(out, logged{fmt.Sprint(news.ID), string(news.Data)})
		if len(out) == most || out[len(out)-1].over() {
			return out
		}
	}
}

// TestCutAndKilledAfterEveryEvent has a session for each event of a run. Both kinds of streams are
// cut right after that event, the server is killed (kill -9) and started again, and each client
// goes on behind the last event that it has: what it put together is the log as it is stored, byte
// for byte.
func TestCutAndKilledAfterEveryEvent(t *testing.T) {
	t.Parallel()
	s := &served{t: t, home: t.TempDir(), dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(s.dir, "facts.txt"), []byte("the boiler is from 1987\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start("127.0.0.1:0")
	defer func() { s.kill() }()
	address := strings.TrimPrefix(s.url, "http://")
	place := s.made("/api/v1/workspaces", fmt.Sprintf(`{"path":%q}`, s.dir))
	rest := func(session string, have []logged, read func(session, after string, most int) []logged) []logged {
		if have[len(have)-1].over() {
			return have
		}
		return append(have, read(session, have[len(have)-1].id, 0)...)
	}
	for cut, whole := 1, 2; cut <= whole; cut++ {
		session := s.made("/api/v1/sessions", fmt.Sprintf(`{"workspace_id":%q}`, place))
		_ = s.ask("POST", "/api/v1/sessions/"+session+"/messages", `{"content":"what is in facts.txt"}`).Body.Close()
		bySSE, bySocket := s.events(session, "0", cut), s.socket(session, "0", cut)
		s.kill()
		s.start(address)
		bySSE, bySocket = rest(session, bySSE, s.events), rest(session, bySocket, s.socket)
		stored := s.events(session, "0", 0)
		whole = len(stored)
		for i := range stored {
			if stored[i].id != fmt.Sprint(i+1) {
				t.Fatalf("cut after %d: event %d has the number %s", cut, i+1, stored[i].id)
			}
		}
		if fmt.Sprint(bySSE) != fmt.Sprint(stored) {
			t.Errorf("cut after %d, server-sent events:\n%v\nstored:\n%v", cut, bySSE, stored)
		}
		if fmt.Sprint(bySocket) != fmt.Sprint(stored) {
			t.Errorf("cut after %d, WebSocket:\n%v\nstored:\n%v", cut, bySocket, stored)
		}
		if whole < 7 {
			t.Fatalf("the run has only %d events", whole)
		}
	}
}
