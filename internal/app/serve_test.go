package app_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
)

// house is a harness that is being served.
type house struct {
	*harness
	engine *app.Engine
	served *app.Served
	token  string
}

func (b *harness) serve(addr string) *house {
	b.t.Helper()
	return b.serveOn(app.ServeConfig{Addr: addr, Version: "test"}, nil)
}

// serveOn serves in a way of its own, with an engine that is opened so.
func (b *harness) serveOn(c app.ServeConfig, change func(*app.Options)) *house {
	b.t.Helper()
	options := app.Options{Config: b.settings, Tools: b.tools, Models: b.watched()}
	if change != nil {
		change(&options)
	}
	engine, err := app.OpenEngine(b.t.Context(), options)
	fatal(b.t, err)
	b.t.Cleanup(func() { _ = engine.Close() }) // a test that closes it says what came of that
	h := &house{harness: b, engine: engine}
	h.served, err = engine.Serve(b.t.Context(), c)
	fatal(b.t, err)
	h.token, err = app.ReadToken(b.settings.DataDir)
	fatal(b.t, err)
	return h
}

// ask sends a request as a program does, changed by what changes it.
func (h *house) ask(method, path, body string, changes ...func(*http.Request)) *http.Response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.served.URL+path, strings.NewReader(body))
	fatal(h.t, err)
	r.Header.Set("Authorization", "Bearer "+h.token)
	for _, change := range changes {
		change(r)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	fatal(h.t, err)
	described(h.t, r, body, response)
	h.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// read asks for what ends by itself, or is read until enough of it came.
func (h *house) read(method, path, body string, enough func(frame string) bool, changes ...func(*http.Request)) (int, []string) { //nolint:unparam // a method, as in ask
	h.t.Helper()
	response := h.ask(method, path, body, changes...)
	defer response.Body.Close()
	return response.StatusCode, frames(h.t, response.Body, enough)
}

// json asks and reads the answer.
func (h *house) json(method, path, body string, status int, into any, changes ...func(*http.Request)) {
	h.t.Helper()
	response := h.ask(method, path, body, changes...)
	defer response.Body.Close()
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

// session makes a session in the harness's workspace.
func (h *house) session() string {
	h.t.Helper()
	var place regie.Workspace
	var made regie.Session
	path, _ := json.Marshal(h.root)
	h.json("POST", "/api/v1/workspaces", `{"path":`+string(path)+`}`, 200, &place)
	h.json("POST", "/api/v1/sessions", `{"workspace_id":"`+place.ID.String()+`"}`, 201, &made)
	return made.ID.String()
}

// parks says something in a session whose agent then waits for an approval.
func (h *house) parks(session, text string) regie.Approval {
	h.t.Helper()
	id, err := regie.ParseID(session)
	fatal(h.t, err)
	h.json("POST", "/api/v1/sessions/"+session+"/messages", `{"content":"`+text+`"}`, 202, nil)
	return h.parked(h.engine.Control(), id).Approvals[0]
}

// websocket follows as a token does.
func (h *house) websocket(secret string) *websocket.Conn {
	h.t.Helper()
	conn, _, err := websocket.Dial(h.t.Context(), h.served.URL+"/api/v1/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + secret}}}) //nolint:bodyclose // the library has it
	fatal(h.t, err)
	h.t.Cleanup(func() { _ = conn.CloseNow() }) // it may be closed by then
	return conn
}

// upgraded is a connection that is a WebSocket, and what comes on it.
func (h *house) upgraded(secret string) (net.Conn, *bufio.Reader) {
	h.t.Helper()
	conn := h.raw("GET /api/v1/ws HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secret + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	read := bufio.NewReader(conn)
	answer, err := http.ReadResponse(read, nil) //nolint:bodyclose // the connection is
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		h.t.Fatalf("%+v, %v", answer, err)
	}
	return conn, read
}

func carrying(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

// TestServeKeepsOut asks for everything as those do who have no business there (spec 11.2, 12.5).
func TestServeKeepsOut(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
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
		"its own page":                 {"GET", "/api/v1/sessions", []func(*http.Request){carrying("Origin", own)}, 200, ""},
		"no token":                     {"GET", "/api/v1/sessions", []func(*http.Request){nobody}, 401, regie.CodeNoToken},
		"wrong token":                  {"GET", "/api/v1/sessions", []func(*http.Request){carrying("Authorization", "Bearer "+h.token+"x")}, 401, regie.CodeNoToken},
		"empty token":                  {"GET", "/api/v1/sessions", []func(*http.Request){carrying("Authorization", "Bearer ")}, 401, regie.CodeNoToken},
		"basic":                        {"GET", "/api/v1/sessions", []func(*http.Request){carrying("Authorization", "Basic "+h.token)}, 401, regie.CodeNoToken},
		"two tokens":                   {"GET", "/api/v1/sessions", []func(*http.Request){func(r *http.Request) { r.Header.Add("Authorization", "Bearer x") }}, 401, regie.CodeNoToken},
		"token in the address":         {"GET", "/api/v1/sessions?token=" + h.token, []func(*http.Request){nobody}, 400, regie.CodeBadRequest},
		"token beside the header":      {"GET", "/api/v1/sessions?access_token=x", nil, 400, regie.CodeBadRequest},
		"token as anything":            {"GET", "/docs?x=" + h.token, nil, 400, regie.CodeBadRequest},
		"forged cookie":                {"GET", "/api/v1/sessions", []func(*http.Request){nobody, carrying("Cookie", "regie-"+port[1:]+"=99999999999.x.y")}, 401, regie.CodeNoToken},
		"the docs":                     {"GET", "/docs", []func(*http.Request){nobody}, 401, regie.CodeNoToken},
		"the document":                 {"GET", "/openapi.json", []func(*http.Request){nobody}, 401, regie.CodeNoToken},
		"a stream":                     {"GET", "/api/v1/events", []func(*http.Request){nobody}, 401, regie.CodeNoToken},
		"a websocket":                  {"GET", "/api/v1/ws", []func(*http.Request){nobody, carrying("Upgrade", "websocket")}, 401, regie.CodeNoToken},
		"evil host":                    {"GET", "/api/v1/sessions", []func(*http.Request){host("evil.example" + port)}, 403, regie.CodeForbidden},
		"evil host, open path":         {"GET", "/version", []func(*http.Request){host("127.0.0.1.evil.example")}, 403, regie.CodeForbidden},
		"no host's name":               {"GET", "/healthz", []func(*http.Request){host("0.0.0.0" + port)}, 403, regie.CodeForbidden},
		"evil origin":                  {"GET", "/api/v1/sessions", []func(*http.Request){carrying("Origin", "https://evil.example")}, 403, regie.CodeForbidden},
		"origin of another port":       {"GET", "/api/v1/sessions", []func(*http.Request){carrying("Origin", "http://127.0.0.1:1")}, 403, regie.CodeForbidden},
		"no origin's name":             {"GET", "/api/v1/sessions", []func(*http.Request){carrying("Origin", "null")}, 403, regie.CodeForbidden},
		"evil origin of a stream":      {"GET", "/api/v1/events", []func(*http.Request){carrying("Origin", "https://evil.example")}, 403, regie.CodeForbidden},
		"evil origin of a websocket":   {"GET", "/api/v1/ws", []func(*http.Request){carrying("Origin", "https://evil.example"), carrying("Upgrade", "websocket")}, 403, regie.CodeForbidden},
		"cross-site read":              {"GET", "/api/v1/sessions", []func(*http.Request){carrying("Sec-Fetch-Site", "cross-site")}, 403, regie.CodeForbidden},
		"cross-site write":             {"POST", "/api/v1/sessions", []func(*http.Request){carrying("Sec-Fetch-Site", "cross-site")}, 403, regie.CodeForbidden},
		"same-site write":              {"POST", "/api/v1/sessions", []func(*http.Request){carrying("Sec-Fetch-Site", "same-site")}, 403, regie.CodeForbidden},
		"anybody's healthz":            {"GET", "/healthz", []func(*http.Request){nobody}, 204, ""},
		"anybody's version":            {"GET", "/version", []func(*http.Request){nobody}, 200, ""},
		"anybody's readyz":             {"GET", "/readyz", []func(*http.Request){nobody}, 200, ""},
		"setup without a code":         {"POST", "/setup", []func(*http.Request){nobody}, 401, regie.CodeNoToken},
		"setup by another's page":      {"POST", "/setup", []func(*http.Request){nobody, carrying("Origin", "https://evil.example")}, 403, regie.CodeForbidden},
		"the method of something else": {"TRACE", "/api/v1/sessions", nil, 405, regie.CodeNoMethod},
	} {
		t.Run(name, func(t *testing.T) {
			h := *h
			h.harness = &harness{t: t}
			response := h.ask(c.method, c.path, "", c.changes...) //nolint:bodyclose // at the end of the test
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

// TestServeToken: the token is its owner's alone, and stays the same; one that others can read is
// not used.
func TestServeToken(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	h := b.serve("127.0.0.1:0")
	info, err := os.Stat(app.TokenPath(b.settings.DataDir))
	if err != nil || info.Mode().Perm() != 0o600 || len(h.token) < 40 {
		t.Errorf("%v, %v: %d characters", info.Mode(), err, len(h.token))
	}
	fatal(t, h.engine.Close())
	if again := b.serve("127.0.0.1:0"); again.token != h.token {
		t.Error("the token is another one after a restart")
	} else if err := again.engine.Close(); err != nil {
		t.Fatal(err)
	}
	fatal(t, os.Chmod(app.TokenPath(b.settings.DataDir), 0o644))
	engine, err := app.OpenEngine(t.Context(), app.Options{Config: b.settings})
	fatal(t, err)
	defer engine.Close()
	if _, err := engine.Serve(t.Context(), app.ServeConfig{Addr: "127.0.0.1:0"}); regie.CodeOf(err) != regie.CodeNoPermission {
		t.Errorf("a token that others can read: %v", err)
	}
}

// TestServeWhere: beyond this machine nothing is served without HTTPS, and what cannot be listened
// on is said.
func TestServeWhere(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	h := b.serve("127.0.0.1:0")
	taken := strings.TrimPrefix(h.served.URL, "http://")
	for addr, want := range map[string]regie.Code{
		"0.0.0.0:0": regie.CodeForbidden, ":0": regie.CodeForbidden, "[::]:0": regie.CodeForbidden, "example.com:0": regie.CodeForbidden,
		taken: regie.CodeBadRequest, "7333": regie.CodeBadRequest, "127.0.0.1:99999": regie.CodeBadRequest,
	} {
		if _, err := h.engine.Serve(t.Context(), app.ServeConfig{Addr: addr}); regie.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", addr, err, want)
		}
	}
	wide := newHarness(t, newModel(t)).serveOn(app.ServeConfig{Addr: "0.0.0.0:0", PlainHTTP: true, Hosts: []string{"regie.example"}}, nil)
	port := wide.served.URL[strings.LastIndexByte(wide.served.URL, ':'):]
	wide.served.URL = "http://127.0.0.1" + port
	for name, want := range map[string]int{"0.0.0.0" + port: 403, "[::]" + port: 403, "127.0.0.1" + port: 200, "regie.example": 200, "other.example": 403} {
		wide.json("GET", "/api/v1/agents", "", want, nil, host(name))
	}
	if _, err := h.engine.Serve(t.Context(), app.ServeConfig{Addr: "0.0.0.0:0", CertFile: "none", KeyFile: "none"}); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Errorf("a certificate that is not there: %v", err)
	}
}

// TestSetupLinkIsReachable: the link leads to a name that the server's own guard accepts, however
// it listens; the one that is made later too.
func TestSetupLinkIsReachable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		addr  string
		hosts []string
		want  string // before the port
	}{
		{"127.0.0.1:0", nil, "127.0.0.1"},
		{"0.0.0.0:0", nil, "127.0.0.1"},
		{":0", nil, "127.0.0.1"},
		{"localhost:0", nil, "127.0.0.1"},
		{"0.0.0.0:0", []string{"my.example", "other.example"}, "my.example"},
		{"127.0.0.1:0", []string{"2001:db8::1"}, "[2001:db8::1]"},
	} {
		h := newHarness(t, newModel(t)).serveOn(app.ServeConfig{Addr: c.addr, PlainHTTP: true, Hosts: c.hosts}, nil)
		later, err := h.engine.LinkBrowser(t.Context())
		fatal(t, err)
		at, _ := url.Parse(h.served.URL)
		for _, link := range []string{h.served.Setup, later.URL} {
			u, err := url.Parse(link)
			if err != nil || u.Host != c.want+":"+at.Port() {
				t.Fatalf("served on %s as %v, the link is %s", c.addr, c.hosts, link)
			}
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+at.Port()+u.RequestURI(), nil)
			r.Host = u.Host
			response, err := http.DefaultClient.Do(r)
			fatal(t, err)
			if _ = response.Body.Close(); response.StatusCode != http.StatusOK {
				t.Errorf("served on %s as %v, %s answers %s", c.addr, c.hosts, link, response.Status)
			}
		}
	}
}

// browser is a client that keeps cookies and follows nothing.
func (h *house) browser() *http.Client {
	jar, _ := cookiejar.New(nil) // it does not fail
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// asks has a browser send a form, or nothing, and returns the answer's status, cookies and body.
func (h *house) asks(browser *http.Client, method, path string, form url.Values, changes ...func(*http.Request)) (int, []*http.Cookie, string) {
	h.t.Helper()
	request, err := http.NewRequestWithContext(h.t.Context(), method, h.served.URL+path, strings.NewReader(form.Encode()))
	fatal(h.t, err)
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, change := range changes {
		change(request)
	}
	response, err := browser.Do(request)
	fatal(h.t, err)
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, response.Cookies(), string(body)
}

// TestSetupLink lets one browser in, once, and asks before it does; the cookie is for nobody's
// scripts and no other site.
func TestSetupLink(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	browser := h.browser()
	link, err := url.Parse(h.served.Setup)
	fatal(t, err)
	code := url.Values{"code": {link.Query().Get("code")}}
	for range 2 { // looking uses nothing up
		if status, _, page := h.asks(browser, "GET", link.RequestURI(), nil); status != 200 || !strings.Contains(page, `name="code" value="`+code.Get("code")+`"`) {
			t.Fatalf("%d %s", status, page)
		}
	}
	if status, _, _ := h.asks(browser, "GET", "/api/v1/sessions", nil); status != 401 {
		t.Errorf("before the link was used: %d", status)
	}
	in, cookies, _ := h.asks(browser, "POST", "/setup", code)
	if cookies[0].Name != "regie-"+link.Port() {
		t.Errorf("a cookie that any server of this host name may have: %s", cookies[0].Name)
	}
	if in != 303 || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("%d, %v", in, cookies)
	}
	if status, _, _ := h.asks(browser, "GET", "/api/v1/sessions", nil); status != 200 {
		t.Errorf("after the link was used: %d", status)
	}
	if again, _, _ := h.asks(browser, "POST", "/setup", code); again != 401 {
		t.Errorf("the link a second time: %d", again)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.served.URL+"/setup", strings.NewReader(code.Encode()))
	fatal(t, err)
	r.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"text/html,*/*;q=0.8"}, "Accept-Language": {"fr"}}
	again, err := http.DefaultClient.Do(r)
	fatal(t, err)
	page, err := io.ReadAll(again.Body)
	fatal(t, err)
	_ = again.Body.Close()
	if again.StatusCode != 401 || !strings.Contains(string(page), `<p role="alert">le lien`) || strings.Contains(string(page), "<form") {
		t.Errorf("in a browser: %d %s", again.StatusCode, page)
	}
	cookie := cookies[0].Value
	for name, forged := range map[string]string{"longer": "9" + cookie, "cut": cookie[:len(cookie)-1], "other": strings.ToLower(cookie)} {
		h.json("GET", "/api/v1/sessions", "", 401, nil, func(r *http.Request) {
			r.Header.Del("Authorization")
			t.Log("a cookie that is", name)
			r.AddCookie(&http.Cookie{Name: cookies[0].Name, Value: forged})
		})
	}
}
