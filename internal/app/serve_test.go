package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// house is a bed that is being served.
type house struct {
	*bed
	engine *app.Engine
	served *app.Served
	token  string
}

func (b *bed) serve(addr string) *house {
	b.t.Helper()
	engine, err := app.OpenEngine(b.t.Context(), app.Options{Config: b.settings, Tools: b.tools, ApprovalTTL: b.approvalTTL, Models: b.watched()})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = engine.Close() }) // a test that closes it says what came of that
	h := &house{bed: b, engine: engine}
	if h.served, err = engine.Serve(b.t.Context(), app.ServeConfig{Addr: addr, Version: "test"}); err != nil {
		b.t.Fatal(err)
	}
	if h.token, err = app.ReadToken(b.settings.DataDir); err != nil {
		b.t.Fatal(err)
	}
	return h
}

// ask sends a request as a program does, changed by what changes it.
func (h *house) ask(method, path, body string, changes ...func(*http.Request)) *http.Response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.served.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.token)
	for _, change := range changes {
		change(r)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// json asks and reads the answer.
func (h *house) json(method, path, body string, status int, into any, changes ...func(*http.Request)) {
	h.t.Helper()
	response := h.ask(method, path, body, changes...)
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status {
		h.t.Fatalf("%s %s: %d %s (%v), want %d", method, path, response.StatusCode, data, err, status)
	}
	if into != nil {
		if err := json.Unmarshal(data, into); err != nil {
			h.t.Fatalf("%s: %v", data, err)
		}
	}
}

// session makes a session in the bed's workspace.
func (h *house) session() string {
	h.t.Helper()
	var place regie.Workspace
	var made regie.Session
	path, _ := json.Marshal(h.root)
	h.json("POST", "/api/v1/workspaces", `{"path":`+string(path)+`}`, 200, &place)
	h.json("POST", "/api/v1/sessions", `{"workspace_id":"`+place.ID.String()+`"}`, 201, &made)
	return made.ID.String()
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

// TestServeKeepsOut asks for everything as those do who have no business there (spec 11.2, 12.5).
func TestServeKeepsOut(t *testing.T) {
	h := newBed(t, newModel(t)).serve("127.0.0.1:0")
	port := h.served.URL[strings.LastIndexByte(h.served.URL, ':'):]
	own := "http://127.0.0.1" + port
	nobody := func(r *http.Request) { r.Header.Del("Authorization") }
	for name, c := range map[string]struct {
		method, path string
		changes      []func(*http.Request)
		status       int
		code         regie.Code
	}{
		"a program":                    {"GET", "/api/v1/sessions", nil, 200, ""},
		"by name":                      {"GET", "/api/v1/sessions", []func(*http.Request){host("localhost" + port)}, 200, ""},
		"by IPv6":                      {"GET", "/api/v1/sessions", []func(*http.Request){host("[::1]" + port)}, 200, ""},
		"its own page":                 {"GET", "/api/v1/sessions", []func(*http.Request){header("Origin", own)}, 200, ""},
		"no token":                     {"GET", "/api/v1/sessions", []func(*http.Request){nobody}, 401, regie.CodeNoToken},
		"wrong token":                  {"GET", "/api/v1/sessions", []func(*http.Request){header("Authorization", "Bearer "+h.token+"x")}, 401, regie.CodeNoToken},
		"empty token":                  {"GET", "/api/v1/sessions", []func(*http.Request){header("Authorization", "Bearer ")}, 401, regie.CodeNoToken},
		"basic":                        {"GET", "/api/v1/sessions", []func(*http.Request){header("Authorization", "Basic "+h.token)}, 401, regie.CodeNoToken},
		"two tokens":                   {"GET", "/api/v1/sessions", []func(*http.Request){func(r *http.Request) { r.Header.Add("Authorization", "Bearer x") }}, 401, regie.CodeNoToken},
		"token in the address":         {"GET", "/api/v1/sessions?token=" + h.token, []func(*http.Request){nobody}, 401, regie.CodeNoToken},
		"forged cookie":                {"GET", "/api/v1/sessions", []func(*http.Request){nobody, header("Cookie", "regie=99999999999.x.y")}, 401, regie.CodeNoToken},
		"the docs":                     {"GET", "/docs", []func(*http.Request){nobody}, 401, regie.CodeNoToken},
		"the document":                 {"GET", "/openapi.json", []func(*http.Request){nobody}, 401, regie.CodeNoToken},
		"a stream":                     {"GET", "/api/v1/events", []func(*http.Request){nobody}, 401, regie.CodeNoToken},
		"a websocket":                  {"GET", "/api/v1/ws", []func(*http.Request){nobody, header("Upgrade", "websocket")}, 401, regie.CodeNoToken},
		"evil host":                    {"GET", "/api/v1/sessions", []func(*http.Request){host("evil.example" + port)}, 403, regie.CodeForbidden},
		"evil host, open path":         {"GET", "/version", []func(*http.Request){host("127.0.0.1.evil.example")}, 403, regie.CodeForbidden},
		"no host's name":               {"GET", "/healthz", []func(*http.Request){host("0.0.0.0" + port)}, 403, regie.CodeForbidden},
		"evil origin":                  {"GET", "/api/v1/sessions", []func(*http.Request){header("Origin", "https://evil.example")}, 403, regie.CodeForbidden},
		"origin of another port":       {"GET", "/api/v1/sessions", []func(*http.Request){header("Origin", "http://127.0.0.1:1")}, 403, regie.CodeForbidden},
		"no origin's name":             {"GET", "/api/v1/sessions", []func(*http.Request){header("Origin", "null")}, 403, regie.CodeForbidden},
		"evil origin of a stream":      {"GET", "/api/v1/events", []func(*http.Request){header("Origin", "https://evil.example")}, 403, regie.CodeForbidden},
		"evil origin of a websocket":   {"GET", "/api/v1/ws", []func(*http.Request){header("Origin", "https://evil.example"), header("Upgrade", "websocket")}, 403, regie.CodeForbidden},
		"cross-site read":              {"GET", "/api/v1/sessions", []func(*http.Request){header("Sec-Fetch-Site", "cross-site")}, 403, regie.CodeForbidden},
		"cross-site write":             {"POST", "/api/v1/sessions", []func(*http.Request){header("Sec-Fetch-Site", "cross-site")}, 403, regie.CodeForbidden},
		"same-site write":              {"POST", "/api/v1/sessions", []func(*http.Request){header("Sec-Fetch-Site", "same-site")}, 403, regie.CodeForbidden},
		"anybody's healthz":            {"GET", "/healthz", []func(*http.Request){nobody}, 204, ""},
		"anybody's version":            {"GET", "/version", []func(*http.Request){nobody}, 200, ""},
		"anybody's readyz":             {"GET", "/readyz", []func(*http.Request){nobody}, 200, ""},
		"setup without a code":         {"POST", "/setup", []func(*http.Request){nobody}, 401, regie.CodeNoToken},
		"setup by another's page":      {"POST", "/setup", []func(*http.Request){nobody, header("Origin", "https://evil.example")}, 403, regie.CodeForbidden},
		"the method of something else": {"TRACE", "/api/v1/sessions", nil, 405, regie.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			h := *h
			h.bed = &bed{t: t}
			response := h.ask(c.method, c.path, "", c.changes...)
			body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
			if err != nil || response.StatusCode != c.status || c.code != "" && !strings.Contains(string(body), `"code":"`+string(c.code)+`"`) {
				t.Errorf("%d %.200s (%v), want %d %s", response.StatusCode, body, err, c.status, c.code)
			}
			if got := response.Header.Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("others' pages may read it: %q", got)
			}
			if response.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Error("browsers may guess what it is")
			}
		})
	}
}

// TestServeToken: the token is its owner's alone, and stays the same; one that others can read is not used.
func TestServeToken(t *testing.T) {
	b := newBed(t, newModel(t))
	h := b.serve("127.0.0.1:0")
	info, err := os.Stat(app.TokenPath(b.settings.DataDir))
	if err != nil || info.Mode().Perm() != 0o600 || len(h.token) < 40 {
		t.Errorf("%v, %v: %d characters", info.Mode(), err, len(h.token))
	}
	if err := h.engine.Close(); err != nil {
		t.Fatal(err)
	}
	if again := b.serve("127.0.0.1:0"); again.token != h.token {
		t.Error("the token is another one after a restart")
	} else if err := again.engine.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(app.TokenPath(b.settings.DataDir), 0o644); err != nil {
		t.Fatal(err)
	}
	engine, err := app.OpenEngine(t.Context(), app.Options{Config: b.settings})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	if _, err := engine.Serve(t.Context(), app.ServeConfig{Addr: "127.0.0.1:0"}); regie.CodeOf(err) != regie.CodeNoPermission {
		t.Errorf("a token that others can read: %v", err)
	}
}

// TestServeWhere: beyond this machine nothing is served without HTTPS, and what cannot be listened on is said.
func TestServeWhere(t *testing.T) {
	b := newBed(t, newModel(t))
	h := b.serve("127.0.0.1:0")
	taken := strings.TrimPrefix(h.served.URL, "http://")
	for addr, want := range map[string]regie.Code{
		"0.0.0.0:0": regie.CodeForbidden, ":0": regie.CodeForbidden, "[::]:0": regie.CodeForbidden, "example.com:0": regie.CodeForbidden,
		taken: regie.CodeConflict, "7333": regie.CodeBadRequest, "127.0.0.1:99999": regie.CodeBadRequest,
	} {
		if _, err := h.engine.Serve(t.Context(), app.ServeConfig{Addr: addr}); regie.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", addr, err, want)
		}
	}
	if _, err := h.engine.Serve(t.Context(), app.ServeConfig{Addr: "0.0.0.0:0", CertFile: "none", KeyFile: "none"}); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Errorf("a certificate that is not there: %v", err)
	}
}

// TestSetupLink lets one browser in, once, and asks before it does; the cookie is for nobody's scripts and no other site.
func TestSetupLink(t *testing.T) {
	h := newBed(t, newModel(t)).serve("127.0.0.1:0")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(address string) (int, string) {
		t.Helper()
		response, err := browser.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	link, err := url.Parse(h.served.Setup)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // looking uses nothing up
		if status, page := get(h.served.Setup); status != 200 || !strings.Contains(page, `name="code" value="`+link.Query().Get("code")+`"`) {
			t.Fatalf("%d %s", status, page)
		}
	}
	if status, _ := get(h.served.URL + "/api/v1/sessions"); status != 401 {
		t.Errorf("before the link was used: %d", status)
	}
	let := func() *http.Response {
		t.Helper()
		response, err := browser.PostForm(h.served.URL+"/setup", url.Values{"code": {link.Query().Get("code")}})
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response
	}
	in := let()
	cookies := in.Cookies()
	if in.StatusCode != 303 || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("%d, %v", in.StatusCode, cookies)
	}
	if status, _ := get(h.served.URL + "/api/v1/sessions"); status != 200 {
		t.Errorf("after the link was used: %d", status)
	}
	if again := let(); again.StatusCode != 401 {
		t.Errorf("the link a second time: %d", again.StatusCode)
	}
	cookie := cookies[0].Value
	for name, forged := range map[string]string{"longer": "9" + cookie, "cut": cookie[:len(cookie)-1], "other": strings.Replace(cookie, ".", ".a", 1)} {
		response := h.ask("GET", "/api/v1/sessions", "", func(r *http.Request) {
			r.Header.Del("Authorization")
			r.AddCookie(&http.Cookie{Name: "regie", Value: forged})
		})
		if response.StatusCode != 401 {
			t.Errorf("a cookie that is %s: %d", name, response.StatusCode)
		}
	}
}

// frames reads a stream of server-sent events to its end, or until enough says so: each frame as it came.
func frames(t *testing.T, body io.Reader, enough func(frame string) bool) (out []string) {
	t.Helper()
	scanner := bufio.NewReader(body)
	var frame strings.Builder
	for {
		line, err := scanner.ReadString('\n')
		if err != nil {
			return out
		}
		if line != "\n" {
			frame.WriteString(line)
			continue
		}
		whole := frame.String()
		frame.Reset()
		if strings.HasPrefix(whole, ":") || whole == "" {
			continue
		}
		out = append(out, whole)
		if enough != nil && enough(whole) {
			return out
		}
	}
}

// kinds are what frames are called.
func kinds(frames []string) (out []string) {
	for _, f := range frames {
		for line := range strings.Lines(f) {
			if kind, ok := strings.CutPrefix(line, "event: "); ok {
				out = append(out, strings.TrimSpace(kind))
			}
		}
	}
	return out
}

// TestMessageStream says something and reads the round to its end; the plain form is what a client of ten lines reads.
func TestMessageStream(t *testing.T) {
	h := newBed(t, newModel(t, says("I look.", call{"a", "files__list_files", `{}`}), says("Nothing there."), says("Still nothing."))).serve("127.0.0.1:0")
	session := h.session()
	response := h.ask("POST", "/api/v1/sessions/"+session+"/messages", `{"content":"what is here?"}`, header("Accept", "text/event-stream"))
	got := frames(t, response.Body, nil)
	var durable []string // deltas of a quick reply may come with its message alone
	for _, kind := range kinds(got) {
		if !strings.HasPrefix(kind, "stream_") && kind != "session" { // its name comes in between
			durable = append(durable, kind)
		}
	}
	if diff := cmp.Diff([]string{"message", "round", "message", "tool_result", "message", "message", "round"}, durable); response.StatusCode != 200 || diff != "" {
		t.Errorf("%d (-want +got):\n%s", response.StatusCode, diff)
	}
	var last struct {
		Data struct {
			State regie.RoundState `json:"state"`
		} `json:"data"`
	}
	_, data, _ := strings.Cut(got[len(got)-1], "data: ")
	if err := json.Unmarshal([]byte(data), &last); err != nil || last.Data.State != regie.RoundEnded {
		t.Errorf("it ends with %s", got[len(got)-1])
	}
	plain, err := io.ReadAll(h.ask("POST", "/api/v1/sessions/"+session+"/messages?format=openai", `{"content":"and now?"}`).Body)
	var text strings.Builder
	for line := range strings.Lines(string(plain)) {
		var said struct {
			Content string `json:"content"`
		}
		if data, ok := strings.CutPrefix(line, "data: {"); ok && json.Unmarshal([]byte("{"+data), &said) == nil {
			text.WriteString(said.Content)
		}
	}
	if err != nil || text.String() != "Still nothing." || !strings.HasSuffix(string(plain), "data: [DONE]\n\n") {
		t.Errorf("the plain form is %q (%v)", plain, err)
	}
	var named store.SessionView
	if h.json("GET", "/api/v1/sessions/"+session, "", 200, &named); named.Name != "what is here?" {
		t.Errorf("the session is called %q", named.Name)
	}
}

// TestStreamCutEverywhere cuts a session's stream after every event, once with a restart of the server in between, and goes on behind the last id: the
// log that was put together is the stored one, byte for byte.
func TestStreamCutEverywhere(t *testing.T) {
	b := newBed(t, newModel(t, says("I look.", call{"a", "files__list_files", `{}`}, call{"b", "files__read_file", `{"path":"x"}`}), says("Done.")))
	h := b.serve("127.0.0.1:0")
	session := h.session()
	frames(t, h.ask("POST", "/api/v1/sessions/"+session+"/messages", `{"content":"look"}`, header("Accept", "text/event-stream")).Body, nil)
	ended := func(f string) bool { return strings.Contains(f, `"state":"ENDED"`) }
	stored := frames(t, h.ask("GET", "/api/v1/sessions/"+session+"/events", "").Body, ended)
	if len(stored) < 7 {
		t.Fatalf("only %d events", len(stored))
	}
	for restart := range len(stored) {
		var rebuilt []string
		last := ""
		for n := range stored {
			response := h.ask("GET", "/api/v1/sessions/"+session+"/events", "", func(r *http.Request) {
				if last != "" {
					r.Header.Set("Last-Event-ID", last)
				}
			})
			one := frames(t, response.Body, func(string) bool { return true })
			_ = response.Body.Close()
			if len(one) != 1 {
				t.Fatalf("the stream behind %q gave %d events", last, len(one))
			}
			rebuilt = append(rebuilt, one...)
			id, _, _ := strings.Cut(strings.TrimPrefix(one[0], "id: "), "\n")
			last = id
			if n == restart && restart%3 == 0 {
				if err := h.engine.Close(); err != nil {
					t.Fatal(err)
				}
				h = b.serve("127.0.0.1:0")
			}
		}
		if diff := cmp.Diff(stored, rebuilt); diff != "" {
			t.Fatalf("cut everywhere, restarted after %d (-stored +rebuilt):\n%s", restart, diff)
		}
	}
}

// TestStreamOverRestart follows a reply while its server is closed in the middle: the client finds the next one, and has the whole log in order.
func TestStreamOverRestart(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	slowly := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, map[string]any{"content": "one "})
		select {
		case begun <- struct{}{}:
		case <-release:
		case <-r.Context().Done():
			return
		}
		select {
		case <-release:
		case <-r.Context().Done():
			return
		}
		says("two")(w, r)
	}
	b := newBed(t, newModel(t, slowly))
	h := b.serve("127.0.0.1:0")
	addr := strings.TrimPrefix(h.served.URL, "http://")
	session := h.session()
	settings := b.settings
	settings.Server, settings.Token = h.served.URL, h.token
	conn, err := app.Connect(t.Context(), app.Options{Config: settings})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	id, err := regie.ParseID(session)
	if err != nil {
		t.Fatal(err)
	}
	run, err := conn.Submit(t.Context(), dispatch.RunRequest{ClientID: "1", SessionID: id, Text: "count"})
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	var seqs []int64
	said := ""
	followed := make(chan error, 1)
	heard := make(chan struct{})
	go func() {
		first := true
		followed <- conn.Events(t.Context(), id, 0, func(item dispatch.Item) error {
			switch {
			case item.Delta != nil:
				said += item.Delta.Content
				if first {
					first = false
					close(heard)
				}
			case item.Event != nil:
				seqs = append(seqs, item.Event.Seq)
				if strings.Contains(string(item.Event.Body), `"state":"ENDED"`) {
					return errSeen
				}
			}
			return nil
		})
	}()
	<-heard // in the middle of the reply, who joins gets what was said so far
	go func() { close(release) }()
	if err := h.engine.Close(); err != nil {
		t.Fatal(err)
	}
	h = b.serve(addr)
	if err := <-followed; !errors.Is(err, errSeen) {
		t.Fatal(err)
	}
	for i, seq := range seqs {
		if seq != int64(i+1) {
			t.Fatalf("the log came as %v", seqs)
		}
	}
	view, err := conn.Get(t.Context(), run.RoundID)
	if err != nil || view.Round.End != regie.EndAnswered || !strings.HasPrefix(said, "one ") {
		t.Errorf("%s, %v; heard %q", view.Round.End, err, said)
	}
}

// TestRepeatedWrites says each write twice under one Idempotency-Key: the second finds what the first did.
func TestRepeatedWrites(t *testing.T) {
	h := newBed(t, newModel(t, says("Done."), says("Done again."))).serve("127.0.0.1:0")
	session := h.session()
	for name, c := range map[string]struct {
		path, body string
		status     int
		same       string
	}{
		"message": {"/api/v1/sessions/" + session + "/messages", `{"content":"go"}`, 202, "message_id"},
		"fork":    {"/api/v1/sessions/" + session + "/fork", `{}`, 201, "session"},
	} {
		var first, second map[string]json.RawMessage
		h.json("POST", c.path, c.body, c.status, &first, header("Idempotency-Key", name))
		h.json("POST", c.path, c.body, c.status, &second, header("Idempotency-Key", name))
		var a, b struct {
			ID string `json:"id"`
		}
		_, _ = json.Unmarshal(first[c.same], &a), json.Unmarshal(second[c.same], &b)
		if first[c.same] == nil || a != b || a.ID == "" && string(first[c.same]) != string(second[c.same]) {
			t.Errorf("%s: %s, then %s", name, first[c.same], second[c.same])
		}
	}
	response := h.ask("POST", "/api/v1/sessions/"+session+"/fork", `{}`, header("Idempotency-Key", strings.Repeat("x", 300)))
	if response.StatusCode != 400 {
		t.Errorf("a key that is too long: %d", response.StatusCode)
	}
}

// TestPages reads lists part by part: nothing is missing and nothing stands there twice.
func TestPages(t *testing.T) {
	h := newBed(t, newModel(t)).serve("127.0.0.1:0")
	want := map[string]bool{}
	for range 7 {
		want[h.session()] = true
	}
	next := ""
	for page := 0; ; page++ {
		var out struct {
			Items []store.SessionSummary `json:"items"`
			Next  string                 `json:"next_cursor"`
		}
		h.json("GET", "/api/v1/sessions?limit=3&cursor="+next, "", 200, &out)
		for _, s := range out.Items {
			if !want[s.ID.String()] {
				t.Errorf("page %d has %s, which was there or is none of them", page, s.ID)
			}
			delete(want, s.ID.String())
		}
		if next = out.Next; next == "" {
			break
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// TestWebSocket follows two sessions and all of them on one connection.
func TestWebSocket(t *testing.T) {
	h := newBed(t, newModel(t, says("Done."))).serve("127.0.0.1:0")
	one, other := h.session(), h.session()
	conn, _, err := websocket.Dial(t.Context(), strings.Replace(h.served.URL, "http", "ws", 1)+"/api/v1/ws", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + h.token}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	say := func(format string, args ...any) {
		t.Helper()
		if err := conn.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, format, args...)); err != nil {
			t.Fatal(err)
		}
	}
	type told struct {
		Type    string `json:"type"`
		Session string `json:"session_id"`
		ID      int64  `json:"id"`
		Data    struct {
			Code regie.Code `json:"code"`
			Body struct {
				State string `json:"state"`
			} `json:"data"`
		} `json:"data"`
	}
	hear := func() (n told) {
		t.Helper()
		_, data, err := conn.Read(t.Context())
		if err == nil {
			err = json.Unmarshal(data, &n)
		}
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct{ says, kind, code string }{
		{`{"type":"subscribe","session_id":"` + one + `"}`, "subscribed", ""},
		{`{"type":"subscribe","session_id":"` + one + `"}`, "error", "CONFLICT"},
		{`{"type":"subscribe","session_id":"` + regie.NewID().String() + `"}`, "error", "NOT_FOUND"},
		{`{"type":"subscribe","session_id":"x"}`, "error", "BAD_ID"},
		{`{"type":"shout"}`, "error", "BAD_REQUEST"},
		{`{"Type":"subscribe"}`, "error", "BAD_REQUEST"},
		{`nonsense`, "error", "BAD_REQUEST"},
		{`{"type":"subscribe","session_id":"` + other + `","after":-1}`, "error", "BAD_REQUEST"},
		{`{"type":"subscribe","session_id":"` + other + `"}`, "subscribed", ""},
		{`{"type":"subscribe","session_id":"*"}`, "subscribed", ""},
		{`{"type":"unsubscribe","session_id":"` + other + `"}`, "unsubscribed", ""},
	} {
		say("%s", c.says)
		for {
			n := hear()
			if n.ID > 0 { // the logs begin to come
				continue
			}
			if n.Type != c.kind || string(n.Data.Code) != c.code {
				t.Errorf("%s: %+v", c.says, n)
			}
			break
		}
	}
	h.json("POST", "/api/v1/sessions/"+one+"/messages", `{"content":"go"}`, 202, nil)
	var last int64
	watched := false
	for ended := false; !ended || !watched; {
		n := hear()
		switch {
		case n.Session == "*":
			watched = watched || n.Type == "round" && n.Data.Body.State == "ENDED"
		case n.Session != one:
			t.Errorf("news of %s", n.Session)
		case n.ID > 0:
			if last != 0 && n.ID != last+1 {
				t.Errorf("%d after %d", n.ID, last)
			}
			last = n.ID
			ended = n.Type == "round" && n.Data.Body.State == "ENDED"
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- h.engine.Close() }()
	for {
		if _, _, err := conn.Read(t.Context()); err != nil {
			if websocket.CloseStatus(err) != websocket.StatusServiceRestart {
				t.Errorf("the end: %v", err)
			}
			break
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// TestWatch tells a client of the server what happens in all sessions.
func TestWatch(t *testing.T) {
	h := newBed(t, newModel(t, says("Done."))).serve("127.0.0.1:0")
	remote, err := client.New(h.served.URL, h.token, "en")
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- remote.Watch(ctx, func(e regie.Event) error {
			if e.Type == regie.EventSession && !e.SessionID.IsZero() && e.Seq == 1 {
				return errSeen
			}
			return nil
		})
	}()
	for { // sessions until the watcher is there
		h.session()
		select {
		case err := <-ended:
			if !errors.Is(err, errSeen) {
				t.Error(err)
			}
			return
		default:
		}
	}
}
